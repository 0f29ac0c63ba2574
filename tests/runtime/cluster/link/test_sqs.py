"""SDKs of AWS in front of a cluster: boto3 through `penstock frontend --cluster`, as its own process would run it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import boto3

from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.metadata.store.memory import MemoryStore
from penstock.runtime.processes.front_end import open_cluster_front_end
from tests.runtime.cluster.link.harness import SECRET, SmallCluster, small_cluster
from tests.runtime.harness import async_test


@asynccontextmanager
async def sqs(cluster: SmallCluster, directory: Path, name: str = "front") -> AsyncIterator[Any]:
    """A boto3 client of a front end of its own."""
    secret_file = directory / "secret"
    secret_file.write_bytes(SECRET + b"\n")
    front = await open_cluster_front_end(
        FrontendConfig(
            data_directory=str(directory / name),
            cluster_metadata="etcd://unused",
            cluster_secret_file=str(secret_file),
            sqs_listen=Address("127.0.0.1", 0),
            native_listen=Address("127.0.0.1", 0),
            metadata_key_file=str(directory / "key"),
        ),
        MemoryStore(cluster.store._open),
    )
    try:
        assert front.sqs_server is not None
        yield boto3.client(
            "sqs",
            endpoint_url=front.sqs_server.url,
            region_name="us-east-1",
            aws_access_key_id="any",
            aws_secret_access_key="any",
        )
    finally:
        await front.close()


async def call(function: Any, **parameters: Any) -> Any:
    """A call of boto3, which blocks, beside the event loop."""
    return await asyncio.to_thread(function, **parameters)


@async_test
async def test_boto3_sends_receives_and_deletes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, sqs(cluster, tmp_path) as client:
        url = (await call(client.create_queue, QueueName="orders"))["QueueUrl"]
        assert (await call(client.create_queue, QueueName="orders"))["QueueUrl"] == url
        sent = await call(client.send_message, QueueUrl=url, MessageBody="hello")
        got = (await call(client.receive_message, QueueUrl=url, WaitTimeSeconds=5))["Messages"][0]
        assert (got["Body"], got["MessageId"]) == ("hello", sent["MessageId"])
        await call(client.delete_message, QueueUrl=url, ReceiptHandle=got["ReceiptHandle"])
        attributes = await call(client.get_queue_attributes, QueueUrl=url, AttributeNames=["All"])
        assert attributes["Attributes"]["ApproximateNumberOfMessages"] == "0"
        assert attributes["Attributes"]["ApproximateNumberOfMessagesNotVisible"] == "0"


@async_test
async def test_a_queue_made_through_one_front_end_is_used_through_another(tmp_path: Path) -> None:
    async with (
        small_cluster(tmp_path) as cluster,
        sqs(cluster, tmp_path, "one-front") as first,
        sqs(cluster, tmp_path, "two-front") as second,
    ):
        await call(first.create_queue, QueueName="orders", Attributes={"VisibilityTimeout": "7"})
        url = (await call(second.get_queue_url, QueueName="orders"))["QueueUrl"]
        await call(second.send_message, QueueUrl=url, MessageBody="hello")
        got = (await call(second.receive_message, QueueUrl=url, WaitTimeSeconds=5))["Messages"]
        assert [one["Body"] for one in got] == ["hello"]
        attributes = await call(
            second.get_queue_attributes, QueueUrl=url, AttributeNames=["VisibilityTimeout"]
        )
        assert attributes["Attributes"]["VisibilityTimeout"] == "7"


@async_test
async def test_a_partitioned_fifo_queue_keeps_its_groups_in_order(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, sqs(cluster, tmp_path) as client:
        url = (
            await call(
                client.create_queue,
                QueueName="orders.fifo",
                Attributes={
                    "FifoQueue": "true",
                    "ContentBasedDeduplication": "true",
                    "Penstock.Partitions": "3",
                },
            )
        )["QueueUrl"]
        identifiers = set()
        for start in range(0, 30, 10):
            answer = await call(
                client.send_message_batch,
                QueueUrl=url,
                Entries=[
                    {"Id": str(n), "MessageBody": str(n), "MessageGroupId": f"g{n % 5}"}
                    for n in range(start, start + 10)
                ],
            )
            identifiers |= {entry["MessageId"] for entry in answer["Successful"]}
        assert len(identifiers) == 30
        again = await call(client.send_message, QueueUrl=url, MessageBody="7", MessageGroupId="g2")
        assert again["MessageId"] in identifiers
        found: dict[str, list[int]] = {}
        while sum(map(len, found.values())) < 30:
            answer = await call(
                client.receive_message,
                QueueUrl=url,
                MaxNumberOfMessages=10,
                WaitTimeSeconds=5,
                AttributeNames=["MessageGroupId"],
            )
            for message in answer["Messages"]:
                identifiers.remove(message["MessageId"])
                found.setdefault(message["Attributes"]["MessageGroupId"], []).append(int(message["Body"]))
                await call(client.delete_message, QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        assert all(numbers == sorted(numbers) for numbers in found.values())
        assert not identifiers


@async_test
async def test_a_dead_letter_queue_an_attribute_and_a_deletion(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, sqs(cluster, tmp_path) as client:
        dead = (await call(client.create_queue, QueueName="dead"))["QueueUrl"]
        arn = (await call(client.get_queue_attributes, QueueUrl=dead, AttributeNames=["QueueArn"]))[
            "Attributes"
        ]["QueueArn"]
        policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": "3"})
        url = (await call(client.create_queue, QueueName="orders", Attributes={"RedrivePolicy": policy}))[
            "QueueUrl"
        ]
        await call(client.set_queue_attributes, QueueUrl=url, Attributes={"VisibilityTimeout": "11"})
        attributes = await call(client.get_queue_attributes, QueueUrl=url, AttributeNames=["All"])
        assert attributes["Attributes"]["VisibilityTimeout"] == "11"
        assert json.loads(attributes["Attributes"]["RedrivePolicy"])["deadLetterTargetArn"] == arn
        assert len((await call(client.list_queues))["QueueUrls"]) == 2
        await call(client.delete_queue, QueueUrl=url)
        assert (await call(client.list_queues))["QueueUrls"] == [dead]

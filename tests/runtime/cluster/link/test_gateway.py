"""Native clients in front of a cluster: the same client, the same words, as with a single server."""

from __future__ import annotations

import json
import secrets
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import penstock
from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.users.administration import UserAdministration
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.cluster.link.gateway import NativeGateway, bind_gateway, open_gateway
from penstock.runtime.processes.listening import StartError
from penstock.runtime.processes.shared_services import SharedServices, shared_services
from penstock.runtime.processes.user_keys import open_user_keys
from tests.runtime.cluster.link.harness import SmallCluster, small_cluster
from tests.runtime.harness import async_test, until


@asynccontextmanager
async def gateway_of(cluster: SmallCluster) -> AsyncIterator[tuple[NativeGateway, SharedServices]]:
    """A gateway of its own, and its users."""
    link = await cluster.link()
    with tempfile.TemporaryDirectory() as directory:
        mirror = MetadataMirror(cluster.store)
        mirror.start()
        config = FrontendConfig(data_directory=directory)
        records = await shared_services(config, mirror, await open_user_keys(config, cluster.store))
        records.begin_usage("gateway", link)
        bound = bind_gateway(Address("127.0.0.1", 0), has_users=False)
        gateway = await open_gateway(bound, link, records, None, "gateway", WallClock().now_ms)
        try:
            yield gateway, records
        finally:
            await gateway.close()
            await records.close()
            await mirror.close()


@asynccontextmanager
async def connected(cluster: SmallCluster) -> AsyncIterator[penstock.Client]:
    """A client of a gateway of its own."""
    async with (
        gateway_of(cluster) as (gateway, _),
        penstock.connect(f"penstock://{gateway.address}") as client,
    ):
        yield client


@async_test
async def test_a_client_makes_a_queue_sends_and_consumes(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        queue = await client.create_queue("orders")
        await queue.send_batch([b"%d" % number for number in range(250)])
        found = []
        async with queue.consume() as consumer:
            async for message in consumer:
                found.append(bytes(message.body))
                await message.delete()
                if len(found) == 250:
                    break
        assert found == [b"%d" % number for number in range(250)]


@async_test
async def test_a_consumer_gets_messages_of_all_partitions(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        queue = await client.create_queue("orders", partitions=3)
        found: set[bytes] = set()
        async with queue.consume() as consumer:
            for number in range(30):
                await queue.send(b"%d" % number)
            async for message in consumer:
                found.add(bytes(message.body))
                await message.delete()
                if len(found) == 30:
                    break
        assert found == {b"%d" % number for number in range(30)}
        described = await queue.describe()
        assert described.statistics.sent_total == described.statistics.deleted_total == 30
        # Beside the queue's there may be a partition of the record of what was asked.
        assert all(node.leads for node in cluster.nodes.values())


@async_test
async def test_a_producer_keeps_the_order_of_a_group(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        queue = await client.create_queue("orders", ordering="fifo", partitions=3)
        async with queue.producer() as producer:
            for number in range(200):
                await producer.send(penstock.OutgoingMessage(b"%d" % number, group=f"group-{number % 7}"))
        found: dict[str, list[int]] = {}
        count = 0
        async with queue.consume() as consumer:
            async for message in consumer:
                found.setdefault(str(message.group), []).append(int(bytes(message.body)))
                await message.delete()
                count += 1
                if count == 200:
                    break
        assert len(found) == 7
        assert all(numbers == sorted(numbers) for numbers in found.values())


@async_test
async def test_a_queue_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        with pytest.raises(PenstockError) as refused:
            await client.queue("nothing").send(b"x")
        assert refused.value.code is ErrorCode.QUEUE_NOT_FOUND


@async_test
async def test_users_are_let_in_by_their_keys_and_do_what_they_may(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, gateway_of(cluster) as (gateway, records):
        url = f"penstock://{gateway.address}"
        users = UserAdministration(cluster.store, secrets.token_bytes, lambda: 1)
        master_key = records.users._master_key
        _, root, root_secret = await users.create_user("ada", "000000000000", True, {}, master_key)
        allow = {"Effect": "Allow", "Action": ["sqs:SendMessage", "sqs:GetQueueAttributes"], "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [allow]})
        _, some, secret = await users.create_user("sam", "000000000000", False, {"p": policy}, master_key)
        await until(lambda: records.users.find_key(some.key_id) is not None)
        with pytest.raises(PenstockError, match="this server has users"):
            await penstock.connect(url)
        async with (
            penstock.connect(url, access_key=root.key_id, secret_key=root_secret) as owner,
            penstock.connect(url, access_key=some.key_id, secret_key=secret) as client,
        ):
            mine = await owner.create_queue("orders", partitions=2)
            queue = client.queue("orders")
            await queue.send_batch([b"x"] * 20)
            with pytest.raises(PenstockError, match="sqs:ReceiveMessage") as caught:
                await queue.receive()
            assert caught.value.code is ErrorCode.ACCESS_DENIED
            assert (await mine.describe()).statistics.ready == 20
        recorded = records.usage_totals()
        assert recorded.recorded >= 4
        assert recorded.dropped == 0


def test_a_gateway_listens_beyond_this_machine_only_with_users() -> None:
    with pytest.raises(StartError, match="there are no users yet"):
        bind_gateway(Address("0.0.0.0", 0), has_users=False)
    bind_gateway(Address("0.0.0.0", 0), has_users=True)[0].close()

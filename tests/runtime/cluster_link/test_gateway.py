"""Native clients in front of a cluster: the same client, the same words, as with a single server."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import penstock
from penstock.config.address import Address
from penstock.config.frontend import FrontendConfig
from penstock.metadata.mirror import MetadataMirror
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.clock import WallClock
from penstock.runtime.cluster_link.gateway import bind_gateway, open_gateway
from penstock.runtime.records import open_records
from tests.runtime.cluster_link.harness import SmallCluster, small_cluster
from tests.runtime.harness import async_test


@asynccontextmanager
async def connected(cluster: SmallCluster) -> AsyncIterator[penstock.Client]:
    """A client of a gateway of its own."""
    link = await cluster.link()
    with tempfile.TemporaryDirectory() as directory:
        mirror = MetadataMirror(cluster.store)
        mirror.start()
        records = await open_records(FrontendConfig(data_directory=directory), mirror)
        records.begin_usage("gateway", link)
        bound = bind_gateway(Address("127.0.0.1", 0), has_users=False)
        gateway = await open_gateway(bound, link, records, None, "gateway", WallClock().now_ms)
        try:
            async with penstock.connect(f"penstock://{gateway.address}") as client:
                yield client
        finally:
            await gateway.close()
            await records.close()
            await mirror.close()


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

"""A queue of a real cluster that nobody uses goes, through kill -9 of a primary; one that somebody waits at stays."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest

import penstock
from penstock.cluster.layout.entries import decode_queue, queue_key
from penstock.metadata.store.interface import MetadataStore
from tests.etcd_servers import EtcdServers
from tests.process.few_programs import few_programs
from tests.process.test_cluster_nodes import Program
from tests.process.test_cluster_partitions import primary_of

PATIENCE_SECONDS = 300


async def scenario(url: str, place: Path) -> None:
    async with few_programs(url, place, 3, seconds=PATIENCE_SECONDS) as (client, nodes, store, _):
        await expire(client, nodes, store)


async def expire(client: penstock.Client, nodes: dict[str, Program], store: MetadataStore) -> None:
    kept = await client.create_queue("kept", idle_expiry=2, partitions=2, replicas=3)
    fleeting = await client.create_queue("fleeting", idle_expiry=2, partitions=2, replicas=3)
    async with kept.consume() as consumer:
        await fleeting.send(b"left behind")
        listing = await store.list(queue_key("fleeting"))
        await nodes[await primary_of(store, "fleeting", 0)].end(signal.SIGKILL)
        states = [decode_queue(entry.value).state for entry in listing.entries]
        async for change in store.watch(queue_key("fleeting"), listing.version):
            if change.value is None:
                break
            states.append(decode_queue(change.value).state)
        assert states[-1] == "deleting"
        with pytest.raises(penstock.PenstockError, match="queue-not-found"):
            await fleeting.send(b"too late")
        await kept.send(b"still there")
        async for message in consumer:
            assert message.body == b"still there"
            await message.delete()
            break


def test_a_queue_that_nobody_uses_is_deleted_and_one_with_a_consumer_is_not(
    etcd: EtcdServers, tmp_path: Path
) -> None:
    asyncio.run(scenario(etcd.url(), tmp_path))

"""A log read straight from real nodes: one is killed with -9 in the middle, and every message is read once."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import penstock
from penstock.metadata.store.interface import MetadataStore
from tests.etcd_servers import EtcdServers
from tests.process.few_programs import few_programs
from tests.process.test_cluster_nodes import Program
from tests.process.test_cluster_partitions import primary_of

MESSAGES = 3_000
BODIES = [b"%05d" % number + bytes(1_000) for number in range(MESSAGES)]
SIZE = sum(map(len, BODIES))
PATIENCE_SECONDS = 300


async def scenario(url: str, place: Path) -> None:
    readers = ("--reader-listen", "127.0.0.1:0")
    async with few_programs(url, place, 2, *readers, seconds=PATIENCE_SECONDS) as (client, nodes, store, _):
        await read_through_a_kill(client, nodes, store)


async def read_through_a_kill(
    client: penstock.Client, nodes: dict[str, Program], store: MetadataStore
) -> None:
    queue = await client.create_queue("clicks", consumption="log", partitions=2, replicas=2, min_in_sync=1)
    for first in range(0, MESSAGES, 100):
        await queue.send_batch(BODIES[first : first + 100])
    log = queue.log()
    whole = [message.sequence async for message in log.messages(direct=True)]
    assert len(set(whole)) == MESSAGES
    assert log.direct_bytes > SIZE

    found: list[bytes] = []
    numbers: list[int] = []
    victim = ""
    async for piece in log.batches(direct=True, slice_bytes=10_000, in_flight=4):
        found += piece.bodies()
        numbers += range(piece.first, piece.next)
        if not victim and len(found) > MESSAGES // 3:
            victim = await primary_of(store, "clicks", piece.partition)
            await nodes[victim].end(signal.SIGKILL)
    assert victim
    assert sorted(found) == BODIES
    assert sorted(numbers) == sorted(whole)

    before = log.direct_bytes
    again: list[bytes] = []
    while log.direct_bytes - before < SIZE // 2:  # whoever leads now is found and read from
        again = [message.body async for message in log.messages(direct=True)]
        assert sorted(again) == BODIES


def test_a_node_is_killed_in_the_middle_of_a_direct_read(etcd: EtcdServers, tmp_path: Path) -> None:
    asyncio.run(scenario(etcd.url(), tmp_path))

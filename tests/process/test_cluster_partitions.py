"""Several partitions on real nodes with a real etcd: a group reads them all through kill -9, ids are found in all of them."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import penstock
from penstock.cluster.layout.entries import decode_partition, decode_queue, partition_key, queue_key
from penstock.metadata.store.interface import MetadataStore
from tests.etcd_servers import EtcdServers
from tests.process.few_programs import few_programs
from tests.process.test_cluster_nodes import Program

MESSAGES = 400
PATIENCE_SECONDS = 300


async def scenario(url: str, place: Path) -> None:
    async with few_programs(url, place, 3, seconds=PATIENCE_SECONDS) as (client, nodes, store, native):
        await read_through_a_failover(client, native, nodes, store)
        await find_ids_after_a_failover(client, nodes, store)
        await give_replicas(client, store)


async def primary_of(store: MetadataStore, queue: str, ordinal: int) -> str:
    """The node that leads a partition."""
    entry = await store.get(queue_key(queue))
    assert entry is not None
    partition = await store.get(partition_key(decode_queue(entry.value).partitions[ordinal]))
    assert partition is not None
    return decode_partition(partition.value).primary or ""


async def read_through_a_failover(
    client: penstock.Client, native: str, nodes: dict[str, Program], store: MetadataStore
) -> None:
    """Two members share the partitions; a node is killed in the middle; every message is read, and lag is 0 at the end."""
    queue = await client.create_queue("clicks", consumption="log", partitions=4, replicas=3)
    for first in range(0, MESSAGES, 20):
        await queue.send_batch([b"%d" % number for number in range(first, first + 20)])
    seen: set[int] = set()
    half, everything = asyncio.Event(), asyncio.Event()

    async def member(which: penstock.Client) -> None:
        async with which.queue("clicks").log().join("billing", lease=10, auto_commit=0.2) as reader:
            async for message in reader:
                seen.add(int(message.body))
                if len(seen) >= MESSAGES // 2:
                    half.set()
                if len(seen) == 2 * MESSAGES:
                    everything.set()

    async with penstock.connect(native) as other:
        members = [asyncio.create_task(member(one)) for one in (client, other)]
        await half.wait()
        victim = await primary_of(store, "clicks", 0)
        await nodes[victim].end(signal.SIGKILL)
        for first in range(MESSAGES, 2 * MESSAGES, 20):
            await queue.send_batch([b"%d" % number for number in range(first, first + 20)])
        await everything.wait()
        log = queue.log()
        group = await log.describe_group("billing")
        assert len(group.members) == 2
        assert len({one.reader for one in group.partitions}) == 2
        while (await log.describe_group("billing")).lag_messages:
            pass  # the test's own time limit ends the wait
        for task in members:
            task.cancel()
        await asyncio.gather(*members, return_exceptions=True)
    parts = await log.partitions()
    assert sum(part.end - part.begin for part in parts) == 2 * MESSAGES
    assert await log.group_offsets("billing") == {part.partition: part.end for part in parts}
    again = [int(message.body) async for message in log.messages()]
    assert sorted(again) == list(range(2 * MESSAGES))
    await nodes[victim].start()


async def find_ids_after_a_failover(
    client: penstock.Client, nodes: dict[str, Program], store: MetadataStore
) -> None:
    """What was sent in one group is a duplicate in another, also when every partition has another primary."""
    queue = await client.create_queue("orders.fifo", ordering="fifo", partitions=3, replicas=3)
    for number in range(12):
        await queue.send(b"%d" % number, group=f"group-{number}", deduplication_id=f"id-{number}")
    victim = await primary_of(store, "orders.fifo", 1)
    await nodes[victim].end(signal.SIGKILL)
    for number in range(12):
        sent = await queue.send(b"%d" % number, group=f"other-{number % 5}", deduplication_id=f"id-{number}")
        assert sent.duplicate, number
    assert (await queue.describe()).statistics.ready == 12
    await nodes[victim].start()


async def give_replicas(client: penstock.Client, store: MetadataStore) -> None:
    """A queue of one replica gets two more, and takes messages all the while."""
    queue = await client.create_queue("lonely", replicas=1, min_in_sync=1)
    await client.alter_queue("lonely", replicas=3, min_in_sync=2)
    entry = await store.get(queue_key("lonely"))
    assert entry is not None
    key = partition_key(decode_queue(entry.value).partitions[0])
    while True:
        await queue.send(b"on and on")
        partition = await store.get(key)
        assert partition is not None
        found = decode_partition(partition.value)
        if len(found.in_sync) == found.settings.replicas == 3:
            return


def test_partitions_of_a_cluster_through_kill_nine(etcd: EtcdServers, tmp_path: Path) -> None:
    asyncio.run(scenario(etcd.url(), tmp_path))

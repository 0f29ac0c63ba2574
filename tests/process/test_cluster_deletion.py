"""Queues of a real cluster that are deleted while messages are on their way from them: all of them arrive."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import penstock
from penstock.cluster.layout.entries import PARTITIONS, PartitionEntry, decode_partition
from penstock.metadata.store.interface import MetadataStore
from tests.etcd_servers import EtcdServers
from tests.process.few_programs import few_programs
from tests.process.test_cluster_nodes import Program
from tests.process.test_cluster_partitions import primary_of

MESSAGES = 300
PATIENCE_SECONDS = 300


async def scenario(url: str, place: Path) -> None:
    async with few_programs(url, place, 3, seconds=PATIENCE_SECONDS) as (client, nodes, store, _):
        await redrive_and_delete(client, nodes, store)
        await delete_with_delayed(client, store)
        await delete_while_the_target_is_away(client, nodes, store)


async def until(
    store: MetadataStore, queue: str, holds: Callable[[list[PartitionEntry]], bool]
) -> list[PartitionEntry]:
    """Waits until something holds of the partitions of all queues of a name; the test's own time limit ends the wait."""
    listing = await store.list(PARTITIONS)
    known = {entry.key: decode_partition(entry.value) for entry in listing.entries}
    named = [entry for entry in known.values() if entry.queue == queue]
    if holds(named):
        return named
    async for change in store.watch(PARTITIONS, listing.version):
        if change.value is None:
            known.pop(change.key, None)
        else:
            known[change.key] = decode_partition(change.value)
        named = [entry for entry in known.values() if entry.queue == queue]
        if holds(named):
            return named
    raise AssertionError("the store ended the watch")


async def until_gone(store: MetadataStore, queue: str, *, but: int = 0) -> None:
    """Nobody holds anything any more of queues of that name, but for one."""
    await until(store, queue, lambda entries: all(entry.queue_id == but for entry in entries))


async def everything(queue: penstock.Queue, count: int) -> list[bytes]:
    """So many messages, which are deleted."""
    found: list[bytes] = []
    while len(found) < count:
        messages = await queue.receive(max_messages=100, wait=2)
        found += [message.body for message in messages]
        await queue.delete_batch(messages)
    assert not list(await queue.receive(max_messages=1))
    return sorted(found)


async def fill(queue: penstock.Queue, delay: int | None = None) -> list[bytes]:
    bodies = [b"%s %d" % (queue.name.encode(), number) for number in range(MESSAGES)]
    for first in range(0, MESSAGES, 20):
        batch = [penstock.OutgoingMessage(body, delay=delay) for body in bodies[first : first + 20]]
        await queue.send_batch(batch)
    return sorted(bodies)


async def redrive_and_delete(
    client: penstock.Client, nodes: dict[str, Program], store: MetadataStore
) -> None:
    """A node that leads a part of the deleted queue is killed right after; the queue is made again at once."""
    main = await client.create_queue("main", partitions=3, replicas=3)
    dead = await client.create_queue("dead", partitions=3, replicas=3)
    bodies = await fill(dead)
    victim = await primary_of(store, "dead", 0)
    assert await dead.redrive(target="main") == MESSAGES
    await client.delete_queue("dead")
    await nodes[victim].end(signal.SIGKILL)
    again = await client.create_queue("dead", partitions=3, replicas=3)
    assert await everything(main, MESSAGES) == bodies
    assert not list(await again.receive(max_messages=1))
    await nodes[victim].start()
    await until_gone(store, "dead", but=(await again.describe()).queue_id)


async def delete_with_delayed(client: penstock.Client, store: MetadataStore) -> None:
    later = await client.create_queue("later", partitions=2, replicas=3, dead_letter_queue="letters")
    bodies = await fill(later, delay=600)
    await later.send(b"not delayed")
    await client.delete_queue("later")
    assert await everything(client.queue("letters"), MESSAGES) == bodies
    await until_gone(store, "later")


async def delete_while_the_target_is_away(
    client: penstock.Client, nodes: dict[str, Program], store: MetadataStore
) -> None:
    """The only node that holds the target is down: the deleted queue waits for it, and says so."""
    lone = await client.create_queue("lone", partitions=1, replicas=1, min_in_sync=1)
    source = await client.create_queue("source", partitions=1, replicas=3)
    bodies = await fill(source)
    holder = await primary_of(store, "lone", 0)
    await nodes[holder].end(signal.SIGKILL)
    assert await source.redrive(target="lone") == MESSAGES
    await client.delete_queue("source")
    waits = "the queue source is deleted and waits"
    (entry,) = await until(
        store, "source", lambda entries: all(one.reason.startswith(waits) for one in entries)
    )
    assert f"{MESSAGES} messages are on the way to lone" in entry.reason
    assert entry.deleted
    again = await client.create_queue("source", partitions=1, replicas=2)
    await again.send(b"new")
    await nodes[holder].start()
    assert await everything(lone, MESSAGES) == bodies
    assert await everything(again, 1) == [b"new"]
    await until_gone(store, "source", but=(await again.describe()).queue_id)


def test_what_is_on_its_way_from_a_deleted_queue_arrives(etcd: EtcdServers, tmp_path: Path) -> None:
    asyncio.run(scenario(etcd.url(), tmp_path))

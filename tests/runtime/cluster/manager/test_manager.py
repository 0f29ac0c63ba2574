"""The manager at work, over the store in memory and over a real etcd."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec
import pytest

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import DrainEntry, PartitionEntry, QueueEntry
from penstock.cluster.manager.placement import first_entries, place
from penstock.cluster.manager.settings import ManagerSettings
from penstock.metadata.election import PREFIX as ELECTIONS
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import Change, MetadataStore, StoreUnavailableError
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from penstock.model.settings import QueueSettings
from penstock.runtime.cluster.manager import LEASE_SECONDS, MANAGER_ELECTION, Manager
from tests.etcd_servers import EtcdServers
from tests.runtime.cluster.manager.obedient_node import ObedientNode
from tests.runtime.harness import async_test, until

Open = Callable[[], Awaitable[MetadataStore]]

HURRIED = ManagerSettings(settle_ms=50, trust_after_ms=100, replace_after_ms=300)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(params=["memory", "etcd"])
def open_store(request: pytest.FixtureRequest) -> Open:
    """Handles of one store."""
    if request.param == "memory":
        contents = MemoryContents()

        async def in_memory() -> MetadataStore:
            return MemoryStore(contents)

        return in_memory
    etcd: EtcdServers = request.getfixturevalue("etcd")
    url = etcd.url()

    async def in_etcd() -> MetadataStore:
        return await open_etcd_store(url)

    return in_etcd


class Cluster:
    """Nodes that obey, each with a handle of the store of its own."""

    def __init__(self, open_store: Open, store: MetadataStore) -> None:
        self.store = store
        self.nodes: dict[str, ObedientNode] = {}
        self.managers: list[tuple[Manager, asyncio.Task[None]]] = []
        self._open = open_store
        self._stores = [store]

    async def open(self) -> MetadataStore:
        self._stores.append(await self._open())
        return self._stores[-1]

    async def add_node(self, name: str) -> None:
        started_ms = 1_000 + len(self._stores)
        self.nodes[name] = ObedientNode(await self.open(), name, f"zone-{name}", started_ms)
        await self.nodes[name].start()

    async def add_manager_over(self, name: str, mirror: MetadataMirror) -> Manager:
        """A manager that hears what its node's mirror hears."""
        manager = Manager(await self.open(), name, now_ms, HURRIED, mirror=mirror)
        self.managers.append((manager, asyncio.create_task(manager.run())))
        return manager

    async def add_manager(self, name: str, lease_seconds: float = LEASE_SECONDS) -> Manager:
        manager = Manager(await self.open(), name, now_ms, HURRIED, lease_seconds)
        self.managers.append((manager, asyncio.create_task(manager.run())))
        return manager

    async def create(self, name: str, ids: list[int], replicas: int = 3) -> None:
        settings = QueueSettings(partitions=len(ids), replicas=replicas)
        living = [node.entry for node in self.nodes.values()]
        placed = place(living, ids, replicas)
        queue_id = ids[0] - 1
        for entry in first_entries(placed, queue=name, queue_id=queue_id, settings=settings):
            await self.store.put(layout.partition_key(entry.partition), layout.encode(entry))
        queue = QueueEntry(name=name, queue_id=queue_id, settings=settings, created_ms=0, partitions=ids)
        await self.store.put(layout.queue_key(name), layout.encode(queue))

    async def entry(self, partition: int) -> PartitionEntry | None:
        found = await self.store.get(layout.partition_key(partition))
        return layout.decode_partition(found.value) if found is not None else None

    async def until_partition(
        self, partition: int, holds: Callable[[PartitionEntry | None], bool]
    ) -> PartitionEntry | None:
        """Waits for the store's word that a partition is as it should be."""
        key = layout.partition_key(partition)
        listing = await self.store.list(key)
        values = [one.value for one in listing.entries]
        entry = layout.decode_partition(values[0]) if values else None
        if holds(entry):
            return entry
        async for change in self.store.watch(key, listing.version):
            entry = layout.decode_partition(change.value) if change.value is not None else None
            if holds(entry):
                return entry
        raise AssertionError("the store was closed")

    async def serves(self, partition: int, epoch: int = 1) -> PartitionEntry:
        entry = await self.until_partition(
            partition, lambda one: one is not None and one.serving == one.epoch >= epoch
        )
        assert entry is not None
        return entry

    async def close(self) -> None:
        for manager, task in self.managers:
            manager.stop()
            await asyncio.gather(task, return_exceptions=True)
        for node in self.nodes.values():
            await node.kill()
        for store in self._stores:
            await store.close()


@asynccontextmanager
async def cluster_of(open_store: Open, nodes: int) -> AsyncIterator[Cluster]:
    cluster = Cluster(open_store, await open_store())
    try:
        for i in range(nodes):
            await cluster.add_node(f"n{i}")
        yield cluster
    finally:
        await cluster.close()


@async_test
async def test_a_manager_over_the_mirror_of_its_node_knows_what_was_there_and_hears_the_rest(
    open_store: Open,
) -> None:
    async with cluster_of(open_store, 3) as cluster:
        await cluster.create("before", [11])
        first = await cluster.serves(11)
        mirror = MetadataMirror(await cluster.open())
        mirror.start()
        await mirror.ready.wait()
        manager = await cluster.add_manager_over("n9", mirror)
        assert manager.view.partitions.keys() == {11}
        await cluster.create("after", [21])
        await cluster.serves(21)
        assert first.primary is not None
        await cluster.nodes[first.primary].kill()
        second = await cluster.serves(11, first.epoch + 1)
        assert second.primary != first.primary
        manager.stop()
        await cluster.managers[0][1]
        await mirror.put("cluster/x", b"the mirror is still its owner's and follows")
        assert mirror.cache.get("cluster/x") is not None
        await mirror.close()


@async_test
async def test_a_primary_that_is_gone_is_replaced_and_the_log_says_why(
    open_store: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "penstock.runtime.cluster.manager")
    async with cluster_of(open_store, 3) as cluster:
        await cluster.add_manager("n0")
        await cluster.create("orders", [2])
        before = await cluster.serves(2)
        assert before.primary is not None
        await cluster.nodes.pop(before.primary).kill()
        after = await cluster.serves(2, epoch=2)
        assert after.epoch == 2
        assert after.primary in before.in_sync
        assert after.primary != before.primary
    assert (
        f"partitions/{2:020d}: {before.primary} is gone, and of those in sync {after.primary} has the longest log"
        in caplog.messages
    )


@async_test
async def test_a_drained_node_is_emptied_and_a_deleted_queue_goes(open_store: Open) -> None:
    async with cluster_of(open_store, 4) as cluster:
        await cluster.add_manager("n0")
        await cluster.create("orders", [2, 3, 4])
        for partition in (2, 3, 4):
            await cluster.serves(partition)
        await cluster.store.put(layout.drain_key("n1"), layout.encode(DrainEntry(node="n1")))
        for partition in (2, 3, 4):
            entry = await cluster.until_partition(
                partition,
                lambda one: (
                    one is not None
                    and "n1" not in (*one.replicas, *one.leaving)
                    and len(one.replicas) == len(one.in_sync) == 3
                ),
            )
            assert entry is not None
        found = await cluster.store.get(layout.queue_key("orders"))
        assert found is not None
        queue = msgspec.structs.replace(layout.decode_queue(found.value), state="deleting")
        await cluster.store.put(layout.queue_key("orders"), layout.encode(queue), found.version)
        for partition in (2, 3, 4):
            await cluster.until_partition(partition, lambda one: one is None)


@async_test
async def test_one_manages_and_the_next_is_elected_when_it_stops(open_store: Open) -> None:
    async with cluster_of(open_store, 3) as cluster:
        # The lease is longer than a test may take: nobody waits for it where somebody resigns.
        managers = [await cluster.add_manager(f"n{i}", lease_seconds=600.0) for i in range(3)]
        await until(lambda: any(one.leads for one in managers))
        (first,) = [one for one in managers if one.leads]
        first.stop()
        await until(lambda: any(one.leads for one in managers if one is not first))
        assert sum(one.leads for one in managers) == 1
        assert not first.leads


@async_test
async def test_a_manager_that_is_killed_is_followed_by_another_which_goes_on(open_store: Open) -> None:
    async with cluster_of(open_store, 3) as cluster:
        first = await cluster.add_manager("n0", lease_seconds=1.0)
        await until(lambda: first.leads)
        second = await cluster.add_manager("n1", lease_seconds=1.0)
        await cluster.create("orders", [2])
        before = await cluster.serves(2)
        assert before.primary is not None
        # Killed: its handle of the store is gone before it could resign.
        await first._store.close()
        await cluster.nodes.pop(before.primary).kill()
        after = await cluster.serves(2, epoch=2)
        assert after.epoch == 2
        assert second.leads


class DeafCache(MetadataCache):
    """Hears of everything but elections."""

    def apply(self, change: Change) -> None:
        if not change.key.startswith(ELECTIONS):
            super().apply(change)


@async_test
async def test_two_who_both_believe_to_manage_do_no_harm(open_store: Open) -> None:
    async with cluster_of(open_store, 4) as cluster:
        mirror = MetadataMirror(await cluster.open(), DeafCache())
        mirror.start()
        await mirror.ready.wait()
        managers = [await cluster.add_manager_over("n0", mirror)]
        await until(lambda: managers[0].leads)
        managers.append(await cluster.add_manager("n1"))
        await cluster.create("orders", list(range(2, 12)))
        for partition in range(2, 12):
            await cluster.serves(partition)
        # The first is deposed and does not hear of it: it goes on for as long as its lease lives.
        await cluster.store.delete(ELECTIONS + MANAGER_ELECTION)
        await until(lambda: all(one.leads for one in managers))
        await cluster.nodes.pop("n3").kill()
        for partition in range(2, 12):
            entry = await cluster.until_partition(
                partition, lambda one: one is not None and one.primary != "n3" and one.serving == one.epoch
            )
            assert entry is not None
            assert entry.epoch <= 2
        assert all(one.leads for one in managers)
        await mirror.close()


@async_test
async def test_a_manager_whose_office_is_taken_stops_as_soon_as_it_hears_of_it(open_store: Open) -> None:
    async with cluster_of(open_store, 3) as cluster:
        managers = [await cluster.add_manager(f"n{i}", lease_seconds=600.0) for i in range(2)]
        await until(lambda: any(one.leads for one in managers))
        (first,) = [one for one in managers if one.leads]
        await cluster.store.delete(ELECTIONS + MANAGER_ELECTION)
        await until(lambda: not first.leads)
        await until(lambda: sum(one.leads for one in managers) == 1)


class FailingStore(MemoryStore):
    """Refuses writes of partitions while it is told to."""

    fails = False

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        if self.fails and key.startswith(layout.PARTITIONS):
            raise StoreUnavailableError("no route to the store")
        return await super().put(key, value, version, lease)


@async_test
async def test_what_could_not_be_written_is_written_later(caplog: pytest.LogCaptureFixture) -> None:
    contents = MemoryContents()

    async def open_store() -> MetadataStore:
        return MemoryStore(contents)

    async with cluster_of(open_store, 3) as cluster:
        store = FailingStore(contents)
        manager = Manager(store, "n0", now_ms, HURRIED)
        cluster.managers.append((manager, asyncio.create_task(manager.run())))
        await cluster.create("orders", [2])
        before = await cluster.serves(2)
        store.fails = True
        assert before.primary is not None
        await cluster.nodes.pop(before.primary).kill()
        await until(lambda: any("could not change" in message for message in caplog.messages))
        store.fails = False
        assert (await cluster.serves(2, epoch=2)).epoch == 2


@async_test
async def test_an_entry_that_cannot_be_read_is_left_alone_and_named(caplog: pytest.LogCaptureFixture) -> None:
    contents = MemoryContents()

    async def open_store() -> MetadataStore:
        return MemoryStore(contents)

    async with cluster_of(open_store, 3) as cluster:
        manager = await cluster.add_manager("n0")
        await until(lambda: manager.leads)
        await cluster.store.put(layout.partition_key(9), b"{}")
        await until(lambda: any("cannot read it" in message for message in caplog.messages))
        found = await cluster.store.get(layout.partition_key(9))
        assert found is not None
        assert found.value == b"{}"
        await cluster.store.delete(layout.partition_key(9))

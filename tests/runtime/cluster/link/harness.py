"""A small cluster for tests of the link: single servers stand in for nodes and do what the layout says of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from penstock.cluster.layout.entries import (
    PARTITIONS,
    NodeEntry,
    PartitionEntry,
    decode_partition,
    encode,
    node_key,
    partition_key,
)
from penstock.config.address import Address
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import VersionConflictError
from penstock.metadata.store.memory import MemoryStore
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import QueueCreated, SettingsChanged
from penstock.queue.decisions.decision import PendingRecord
from penstock.routing.cluster_map import node_name
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.runtime.embedded import EmbeddedServer, running_server
from penstock.runtime.engine.tcp_link import TcpLink
from penstock.wire.credentials import LINK_KEY, Credentials
from tests.runtime.harness import small_config

SECRET = b"what the processes of this cluster know"


class StandIn:
    """A single server that makes the partitions it is to lead, says that it serves, and refuses those it lost."""

    def __init__(self, name: str, server: EmbeddedServer, store: MemoryStore) -> None:
        self.name = name
        self.server = server
        self.store = store
        self.leads: set[int] = set()
        self.serves = True
        """Whether it says that it serves what it is to lead."""
        self.silent = False
        """Whether it takes requests and says nothing, as one that is cut off or stopped does."""
        self.unanswered = 0
        sessions = server.broker._server.sessions
        sessions.terms = sessions.terms._replace(secret=SECRET, place=f"127.0.0.1:{server.port}")
        node: Any = server.broker._node
        self._parts = node._parts
        take = node._handlers.take

        def refusing(connection: int, request_id: int, request: Any, body: memoryview, now_ms: int) -> None:
            partition = getattr(request, "queue_id", None)
            if partition is not None and self.silent:
                self.unanswered += 1
                return
            if partition is not None and partition not in self.leads:
                raise PenstockError(ErrorCode.NOT_PRIMARY, "another node leads it")
            take(connection, request_id, request, body, now_ms)

        node._handlers.take = refusing

    async def register(self) -> None:
        """Says that it lives."""
        entry = NodeEntry(
            node=self.name, native=f"127.0.0.1:{self.server.port}", peers="127.0.0.1:1", started_ms=1
        )
        await self.store.put(node_key(self.name), encode(entry))

    async def follow(self) -> None:
        """Does what the layout says, for as long as it runs."""
        listing = await self.store.list(PARTITIONS)
        for entry in listing.entries:
            await self._take(entry.value, entry.version)
        async for change in self.store.watch(PARTITIONS, listing.version):
            if change.value is not None:
                await self._take(change.value, change.version)

    async def _take(self, value: bytes, version: int) -> None:
        entry = decode_partition(value)
        if entry.primary != self.name:
            self.leads.discard(entry.partition)
            return
        if not self.serves:
            return
        self.hold(entry)
        self.leads.add(entry.partition)
        if entry.serving != entry.epoch:
            served = msgspec.structs.replace(entry, serving=entry.epoch)
            try:
                await self.store.put(partition_key(entry.partition), encode(served), version)
            except VersionConflictError:
                pass  # the change is heard of in a moment

    def hold(self, entry: PartitionEntry) -> None:
        """Makes the partition here, under its own id."""
        catalogue = self._parts.catalogue
        held = catalogue.partitions.get(entry.partition)
        if held is not None:
            if held.settings != entry.settings:
                self._parts.write(held, [PendingRecord(SettingsChanged(entry.settings, 1))])
                self.server.broker._driver.wake()
            return
        record = QueueCreated(entry.partition, node_name(entry.queue, entry.ordinal), entry.settings, 1)
        self._parts.logbook.write_catalogue(record)
        catalogue.apply(record)
        self._parts.timed.add(entry.partition)
        self.server.broker._driver.wake()


class SmallCluster:
    """Nodes by name, the store of the layout, and links of front ends."""

    def __init__(self, store: MemoryStore, nodes: dict[str, StandIn], stack: AsyncExitStack) -> None:
        self.store = store
        self.nodes = nodes
        self._stack = stack
        self._links = 0

    async def link(self, store: Any = None) -> ClusterLink:
        """The link of one more front end."""
        loop = asyncio.get_running_loop()
        mirror = MetadataMirror(store if store is not None else self.store)
        mirror.start()
        self._stack.push_async_callback(mirror.close)
        await mirror.ready.wait()
        self._links += 1
        link = ClusterLink(
            mirror,
            loop,
            make_link=lambda address: TcpLink(
                address, loop, secret=SECRET, credentials=Credentials(LINK_KEY, "")
            ),
            producer=1_000 + self._links,
            now_ms=WallClock().now_ms,
        )
        self._stack.push_async_callback(link.close)
        await link.found()
        return link

    async def partition(self, partition: int) -> tuple[PartitionEntry, int]:
        """An entry of the layout and its version."""
        stored = await self.store.get(partition_key(partition))
        assert stored is not None
        return decode_partition(stored.value), stored.version

    async def move(self, partition: int, target: str) -> None:
        """Gives a partition to another node, which has nothing of it."""
        while True:
            entry, version = await self.partition(partition)
            moved = msgspec.structs.replace(
                entry, primary=target, replicas=[target], in_sync=[target], epoch=entry.epoch + 1
            )
            try:
                await self.store.put(partition_key(partition), encode(moved), version)
                return
            except VersionConflictError:
                continue


@asynccontextmanager
async def small_cluster(
    directory: Path, names: Iterable[str] = ("one", "two", "three")
) -> AsyncIterator[SmallCluster]:
    """Nodes that run and follow the layout."""
    store = MemoryStore()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        nodes: dict[str, StandIn] = {}
        for name in names:
            config = small_config(sqs_listen=None)
            server = await stack.enter_async_context(running_server(directory / name, config))
            nodes[name] = StandIn(name, server, store)
            await nodes[name].register()
            task = asyncio.create_task(nodes[name].follow())
            stack.push_async_callback(_ended, task)
        yield SmallCluster(store, nodes, stack)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def address_of(node: StandIn) -> Address:
    """Where a node listens."""
    return Address("127.0.0.1", node.server.port)

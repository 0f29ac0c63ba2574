"""A node that follows the layout in a real store and does what it is asked, without any messages."""

from __future__ import annotations

import asyncio

import msgspec

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.deletion import given_up
from penstock.cluster.layout.elections import handed_over
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, Position, PositionsEntry
from penstock.cluster.layout.positions import asked_of
from penstock.cluster.layout.serving import is_led
from penstock.metadata.store.interface import MetadataStore, VersionConflictError

LEASE_SECONDS = 60.0


class ObedientNode:
    """Says positions, serves what it leads, puts the living in sync, hands over, drops what it is to leave."""

    def __init__(self, store: MetadataStore, name: str, zone: str, started_ms: int) -> None:
        self.entry = NodeEntry(node=name, zone=zone, native="", peers="", started_ms=started_ms)
        self._store = store
        self._lease = 0
        self._task: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self.entry.node

    async def start(self) -> None:
        self._lease = await self._store.grant(LEASE_SECONDS)
        await self._store.put(layout.node_key(self.name), layout.encode(self.entry), None, self._lease)
        self._task = asyncio.create_task(self._follow())

    async def kill(self) -> None:
        """As if its lease had ended."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        await self._store.revoke(self._lease)

    async def _follow(self) -> None:
        listing = await self._store.list(layout.NODES)
        await self._look()
        async for _ in self._store.watch("cluster/", listing.version):
            await self._look()

    async def _look(self) -> None:
        nodes = {
            one.key.removeprefix(layout.NODES): layout.decode_node(one.value)
            for one in (await self._store.list(layout.NODES)).entries
        }
        entries = []
        for one in (await self._store.list(layout.PARTITIONS)).entries:
            entry = layout.decode_partition(one.value)
            entries.append(entry)
            new = self._obey(entry, nodes)
            if new != entry:
                try:
                    await self._store.put(one.key, layout.encode(new), one.version)
                except VersionConflictError:
                    pass  # then the change is heard of, and it looks again
        await self._say(entries, nodes)

    def _obey(self, entry: PartitionEntry, nodes: dict[str, NodeEntry]) -> PartitionEntry:
        if self.name in entry.leaving:
            return msgspec.structs.replace(entry, leaving=[n for n in entry.leaving if n != self.name])
        if entry.primary != self.name or not is_led(entry, nodes):
            return entry
        if entry.hand_over_to in nodes:
            return handed_over(entry, nodes[entry.hand_over_to])
        if entry.deleted and entry.serving == entry.epoch:
            return given_up(entry, "nothing is on its way any more")
        in_sync = [node for node in entry.replicas if node in nodes]
        return msgspec.structs.replace(entry, serving=entry.epoch, in_sync=in_sync)

    async def _say(self, entries: list[PartitionEntry], nodes: dict[str, NodeEntry]) -> None:
        epochs = {entry.partition: entry.epoch for entry in entries}
        asked = asked_of(self.name, entries, nodes)
        positions = {one: Position(epochs[one], epochs[one], 1) for one in asked}
        words = PositionsEntry(node=self.name, started_ms=self.entry.started_ms, positions=positions)
        said = await self._store.get(layout.positions_key(self.name))
        if (said.value if said is not None else b"") != layout.encode(words):
            await self._store.put(layout.positions_key(self.name), layout.encode(words), None, self._lease)

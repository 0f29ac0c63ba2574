"""The layout as somebody sees it who follows the store: every entry with its version, and since when it is so.

Filled change by change. What cannot be read is remembered as such and otherwise left alone: it may be of a newer version.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import (
    CapacityEntry,
    DrainEntry,
    PartitionEntry,
    PositionsEntry,
    QueueEntry,
    UncleanEntry,
)
from penstock.cluster.layout.partition_settings import share_of
from penstock.cluster.membership.members import Membership
from penstock.model.settings import QueueSettings

PREFIX = "cluster/"

SeenEntry = TypeVar("SeenEntry")


class Seen(NamedTuple, Generic[SeenEntry]):
    """An entry, its version, and when this version was first seen."""

    entry: SeenEntry
    version: int
    since_ms: int


class ClusterView:
    """What stands under `cluster/` in the store."""

    def __init__(self) -> None:
        self.members = Membership()
        self.queues: dict[str, Seen[QueueEntry]] = {}
        self.shares: dict[str, QueueSettings] = {}
        """By queue: the settings that each of its partitions is to have."""
        self.partitions: dict[int, Seen[PartitionEntry]] = {}
        self.drains: dict[str, Seen[DrainEntry]] = {}
        self.unclean: dict[int, Seen[UncleanEntry]] = {}
        self.positions: dict[str, PositionsEntry] = {}
        self.capacity: dict[str, CapacityEntry] = {}
        """By queue: what the data pipeline has worked out about it."""
        self.unreadable: dict[str, str] = {}
        """Key → why."""

    def apply(self, key: str, value: bytes | None, version: int, now_ms: int) -> None:
        """An entry is so now; None: it is gone."""
        self.unreadable.pop(key, None)
        try:
            self._apply(key, value, version, now_ms)
        except (msgspec.MsgspecError, ValueError) as error:
            self._apply(key, None, version, now_ms)
            self.unreadable[key] = str(error)

    def _apply(self, key: str, value: bytes | None, version: int, now_ms: int) -> None:
        if key.startswith(layout.PARTITIONS):
            partition = int(key.removeprefix(layout.PARTITIONS))
            if value is None:
                self.partitions.pop(partition, None)
            else:
                self.partitions[partition] = Seen(layout.decode_partition(value), version, now_ms)
        elif key.startswith(layout.QUEUES):
            name = key.removeprefix(layout.QUEUES)
            if value is None:
                self.queues.pop(name, None)
                self.shares.pop(name, None)
            else:
                queue = layout.decode_queue(value)
                self.queues[name] = Seen(queue, version, now_ms)
                self.shares[name] = share_of(queue.settings)
        elif key.startswith(layout.NODES):
            if value is None:
                self.members.went(key.removeprefix(layout.NODES), now_ms)
            else:
                self.members.came(layout.decode_node(value), now_ms)
        elif key.startswith(layout.POSITIONS):
            name = key.removeprefix(layout.POSITIONS)
            if value is None:
                self.positions.pop(name, None)
            else:
                self.positions[name] = layout.decode_positions(value)
        elif key.startswith(layout.CAPACITY):
            name = key.removeprefix(layout.CAPACITY)
            if value is None:
                self.capacity.pop(name, None)
            else:
                self.capacity[name] = layout.decode_capacity(value)
        else:
            self._apply_order(key, value, version, now_ms)

    def _apply_order(self, key: str, value: bytes | None, version: int, now_ms: int) -> None:
        """What operators say."""
        if key.startswith(layout.DRAINS):
            name = key.removeprefix(layout.DRAINS)
            if value is None:
                self.drains.pop(name, None)
                self.members.stop_draining(name)
            else:
                drain = _readable_drain(name, value)
                self.drains[name] = Seen(drain, version, now_ms)
                self.members.drain(drain)
        elif key.startswith(layout.UNCLEAN):
            partition = int(key.removeprefix(layout.UNCLEAN))
            if value is None:
                self.unclean.pop(partition, None)
            else:
                self.unclean[partition] = Seen(layout.decode_unclean(value), version, now_ms)

    def queue_of(self, entry: PartitionEntry) -> QueueEntry | None:
        """The queue that a partition belongs to; not another one of the same name."""
        seen = self.queues.get(entry.queue)
        return seen.entry if seen is not None and seen.entry.queue_id == entry.queue_id else None


def _readable_drain(node: str, value: bytes) -> DrainEntry:
    """The key says enough: whatever stands under it, the node is to be emptied."""
    try:
        return msgspec.structs.replace(layout.decode_drain(value), node=node)
    except msgspec.MsgspecError:
        return DrainEntry(node=node)

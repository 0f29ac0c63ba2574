"""The layout as a follower of the store sees it: every entry with its version, and since when it has this version.

It is filled change by change. Entries that cannot be read are remembered as such and not touched: a newer version may have
written them.
"""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar, assert_never

from penstock.cluster.layout.decoder import (
    CapacityNews,
    DrainNews,
    NodeNews,
    PartitionNews,
    PositionsNews,
    QueueNews,
    UncleanNews,
    decode,
)
from penstock.cluster.layout.entries import (
    CapacityEntry,
    DrainEntry,
    PartitionEntry,
    PositionsEntry,
    QueueEntry,
    UncleanEntry,
)
from penstock.cluster.layout.partition_settings import settings_of_partition
from penstock.cluster.membership.members import Membership
from penstock.model.settings import QueueSettings

PREFIX = "cluster/"

SeenEntry = TypeVar("SeenEntry")
Name = TypeVar("Name", str, int)


class Seen(NamedTuple, Generic[SeenEntry]):
    """An entry, its version, and when this version was first seen."""

    entry: SeenEntry
    version: int
    since_ms: int


class ClusterView:
    """The contents of the store under `cluster/`."""

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
        """By queue: the data pipeline's forecast."""
        self.unreadable: dict[str, str] = {}
        """Key → why."""

    def apply(self, key: str, value: bytes | None, version: int, now_ms: int) -> None:
        """An entry is so now; None: it is gone."""
        news = decode(key, value)
        if news is None:
            return
        self.unreadable.pop(key, None)
        if news.failure is not None:
            self.unreadable[key] = news.failure.why
        match news:
            case PartitionNews(partition_id, entry):
                _keep(self.partitions, partition_id, entry, version, now_ms)
            case QueueNews(queue, entry):
                _keep(self.queues, queue, entry, version, now_ms)
                if entry is not None:
                    self.shares[queue] = settings_of_partition(entry.settings)
                else:
                    self.shares.pop(queue, None)
            case NodeNews(node, entry):
                if entry is not None:
                    self.members.came(entry, now_ms)
                else:
                    self.members.went(node, now_ms)
            case PositionsNews(node, entry):
                if entry is not None:
                    self.positions[node] = entry
                else:
                    self.positions.pop(node, None)
            case CapacityNews(queue, entry):
                if entry is not None:
                    self.capacity[queue] = entry
                else:
                    self.capacity.pop(queue, None)
            case DrainNews(node, entry):
                _keep(self.drains, node, entry, version, now_ms)
                if entry is not None:
                    self.members.drain(entry)
                else:
                    self.members.stop_draining(node)
            case UncleanNews(partition_id, entry):
                _keep(self.unclean, partition_id, entry, version, now_ms)
            case _ as unreachable:
                assert_never(unreachable)

    def queue_of(self, entry: PartitionEntry) -> QueueEntry | None:
        """The queue that a partition belongs to; not another one of the same name."""
        seen = self.queues.get(entry.queue)
        return seen.entry if seen is not None and seen.entry.queue_id == entry.queue_id else None


def _keep(
    seen: dict[Name, Seen[SeenEntry]], name: Name, entry: SeenEntry | None, version: int, now_ms: int
) -> None:
    if entry is not None:
        seen[name] = Seen(entry, version, now_ms)
    else:
        seen.pop(name, None)

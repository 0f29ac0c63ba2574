"""The map of a cluster as a front end has it: queues, their partitions, who leads each, and where that node is.

Made of the layout's entries, one change at a time. It may be behind the store; who is told so by a node looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec

from penstock.cluster.layout.entries import (
    CAPACITY,
    DRAINS,
    NODES,
    PARTITIONS,
    QUEUES,
    CapacityEntry,
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    decode_capacity,
    decode_node,
    decode_partition,
    decode_queue,
)
from penstock.cluster.manager.placement import Census
from penstock.model.document import TooOldError

DEPARTED_AT_MOST = 4_096
"""So many queues that are gone are remembered, so that nobody waits for news of them."""


class Leader(NamedTuple):
    """Who serves a partition, under which epoch, and where."""

    node: str
    address: str
    epoch: int


class Home(NamedTuple):
    """The place of a partition in its queue."""

    queue_id: int
    ordinal: int


class ClusterMap:
    """What is known of the layout."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeEntry] = {}
        """Those that live, as far as is known."""
        self.partitions: dict[int, PartitionEntry] = {}
        self.capacity: dict[str, CapacityEntry] = {}
        """By queue: what the data pipeline has worked out about it."""
        self.census = Census()
        """How much each node holds and leads, counted as entries come and go."""
        self.ids_above = 1
        """All ids of queues and partitions that this map has ever had are below this."""
        self._last_known: dict[str, str] = {}
        """Where nodes were: one that cannot renew its lease may serve on."""
        self._queues: dict[str, QueueEntry] = {}
        self._incarnations: dict[int, QueueEntry] = {}
        self._departed: dict[int, None] = {}
        """Incarnations that were there and are no more, the latest last; ids are never given twice."""
        self._too_new: dict[str, str] = {}
        """Queues that only newer versions may serve, and the sentence that says so."""
        self._draining: set[str] = set()
        self._homes: dict[int, Home] = {}
        self._listeners: list[Callable[[str], None]] = []

    # -- changes ---------------------------------------------------------------------------------------------

    def listen(self, listener: Callable[[str], None]) -> None:
        """Called with the key of every entry that has changed."""
        self._listeners.append(listener)

    def apply(self, key: str, value: bytes | None) -> None:
        """Takes in an entry as it became, or that it is gone; one that cannot be read counts as gone."""
        known = None
        if key.startswith(QUEUES):
            self._too_new.pop(key.removeprefix(QUEUES), None)
            known = self._queues.get(key.removeprefix(QUEUES))
        try:
            if key.startswith(PARTITIONS):
                self._take_partition(key, value)
            elif key.startswith(QUEUES):
                self._take_queue(key, value)
            elif key.startswith(NODES):
                self._take_node(key, value)
            elif key.startswith(CAPACITY):
                self._take_capacity(key.removeprefix(CAPACITY), value)
            elif key.startswith(DRAINS):
                self._take_drain(key.removeprefix(DRAINS), value)
            else:
                return
        except (msgspec.DecodeError, ValueError) as error:
            if value is not None:
                self.apply(key, None)
            if key.startswith(QUEUES) and isinstance(error, TooOldError):
                self._too_new[key.removeprefix(QUEUES)] = error.message
                if known is not None:
                    self._departed.pop(known.queue_id, None)  # it is there, for others
            return
        self.touch(key)

    def touch(self, key: str) -> None:
        """Calls everybody who listens."""
        for listener in self._listeners:
            listener(key)

    def _take_partition(self, key: str, value: bytes | None) -> None:
        entry = decode_partition(value) if value is not None else None
        if entry is not None:
            self.ids_above = max(self.ids_above, entry.partition + 1)
        if entry is not None and entry.deleted:
            entry = None  # for clients it is gone, whatever its primary still has to do
        before = self.partitions.pop(int(key.removeprefix(PARTITIONS)), None)
        if before is not None:
            self.census.count(before, -1)
        if entry is not None:
            self.partitions[entry.partition] = entry
            self.census.count(entry)
            self._homes[entry.partition] = Home(entry.queue_id, entry.ordinal)
        elif before is not None and before.queue_id not in self._incarnations:
            self._homes.pop(before.partition, None)

    def _take_queue(self, key: str, value: bytes | None) -> None:
        name = key.removeprefix(QUEUES)
        before = self._queues.pop(name, None)
        if before is not None:
            self._incarnations.pop(before.queue_id, None)
            self.depart(before.queue_id)
            for partition in before.partitions:
                if partition not in self.partitions:
                    self._homes.pop(partition, None)
        if value is None:
            return
        entry = decode_queue(value)
        self.ids_above = max(self.ids_above, entry.queue_id + 1, *(one + 1 for one in entry.partitions))
        self._queues[name] = entry
        self._departed.pop(entry.queue_id, None)
        self._incarnations[entry.queue_id] = entry
        for ordinal, partition in enumerate(entry.partitions):
            self._homes[partition] = Home(entry.queue_id, ordinal)

    def depart(self, queue_id: int) -> None:
        """An incarnation is no more, for certain."""
        self._departed[queue_id] = None
        if len(self._departed) > DEPARTED_AT_MOST:
            del self._departed[next(iter(self._departed))]

    def _take_node(self, key: str, value: bytes | None) -> None:
        if value is None:
            self.nodes.pop(key.removeprefix(NODES), None)
        else:
            entry = decode_node(value)
            self.nodes[entry.node] = entry
            self._last_known[entry.node] = entry.native

    def _take_capacity(self, queue: str, value: bytes | None) -> None:
        if value is None:
            self.capacity.pop(queue, None)
        else:
            self.capacity[queue] = decode_capacity(value)

    def _take_drain(self, node: str, value: bytes | None) -> None:
        if value is not None:
            self._draining.add(node)
            return
        self._draining.discard(node)
        if node not in self.nodes and not any(entry.primary == node for entry in self.partitions.values()):
            self._last_known.pop(node, None)  # removed for good: nobody waits for it to come back

    # -- questions -------------------------------------------------------------------------------------------

    def named(self, name: str) -> QueueEntry | None:
        """The queue of a name, ready or being deleted."""
        return self._queues.get(name)

    def ready(self, name: str) -> QueueEntry | None:
        """The queue of a name that clients may use."""
        entry = self._queues.get(name)
        return entry if entry is not None and entry.state == "ready" else None

    def why_too_new(self, name: str) -> str | None:
        """Why this process is too old to serve a queue; None: it is not, as far as is known."""
        return self._too_new.get(name)

    def incarnation(self, queue_id: int) -> QueueEntry | None:
        """The queue of an id that clients may use."""
        entry = self._incarnations.get(queue_id)
        return entry if entry is not None and entry.state == "ready" else None

    def has_heard_of(self, queue_id: int) -> bool:
        """Whether the incarnation is known, or known to be gone; else it may have been made just now."""
        return queue_id in self._incarnations or queue_id in self._departed

    def is_gone(self, queue_id: int) -> bool:
        """Whether the incarnation was there, and is no more."""
        return queue_id in self._departed

    def queues(self) -> Iterator[QueueEntry]:
        """Those that clients may use."""
        return (entry for entry in self._queues.values() if entry.state == "ready")

    def home(self, partition: int) -> Home | None:
        """Which queue a partition is part of; None where neither of them is there any more."""
        return self._homes.get(partition)

    def name_of(self, partition: int) -> str | None:
        """The name of the queue that a partition is part of, as far as that is there."""
        home = self._homes.get(partition)
        queue = self._incarnations.get(home.queue_id) if home is not None else None
        return queue.name if queue is not None else None

    def leader(self, partition: int) -> Leader | None:
        """Who serves a partition; None while nobody is known to."""
        entry = self.partitions.get(partition)
        if entry is None or entry.primary is None or entry.serving != entry.epoch:
            return None
        address = self._last_known.get(entry.primary)
        return Leader(entry.primary, address, entry.epoch) if address is not None else None

    def reader_door(self, partition: int) -> str:
        """Where the log of a partition is read with a ticket; empty where nobody is known to take one."""
        leader = self.leader(partition)
        entry = self.nodes.get(leader.node) if leader is not None else None
        return entry.reader if entry is not None else ""

    def is_orphaned(self, partition: int) -> bool:
        """Whether a partition is known, and known to be served by nobody."""
        return partition in self.partitions and self.leader(partition) is None

    def is_needed(self, address: str) -> bool:
        """Whether a node that was there last leads anything, dead or not."""
        return any(
            entry.primary is not None and self._last_known.get(entry.primary) == address
            for entry in self.partitions.values()
        )

    def open_nodes(self) -> list[NodeEntry]:
        """Those that live and may be given partitions; one that is about to stop would hand them over again."""
        return [
            entry
            for name, entry in sorted(self.nodes.items())
            if name not in self._draining and not entry.leaving
        ]

    def ever_known(self) -> set[str]:
        """The nodes that live, that have lived while this map was made, and that hold anything."""
        held = {node for entry in self.partitions.values() for node in entry.replicas}
        return held.union(self._last_known)

    def serves(self, queue: QueueEntry) -> bool:
        """Whether every partition of a queue is served."""
        return all(self.leader(partition) is not None for partition in queue.partitions)


def node_name(queue: str, ordinal: int) -> str:
    """What a node calls a partition; `~` stands in no name of a user's."""
    return f"{queue}~{ordinal}" if ordinal else queue


def queue_name(name_on_node: str) -> str:
    """The queue that a name on a node belongs to."""
    return name_on_node.partition("~")[0]

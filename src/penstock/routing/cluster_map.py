"""A front end's map of the cluster: queues, their partitions, the leader of each, and its address.

It is built from the layout's entries, one change at a time. It may be behind the store; if a node's answer shows this, the
front end looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from penstock.cluster.layout.decoder import (
    CapacityNews,
    DrainNews,
    NodeNews,
    PartitionNews,
    QueueNews,
    ReadFailure,
    decode,
)
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
)
from penstock.cluster.layout.serving import Leader, Server, server_of
from penstock.cluster.manager.placement import Census

FOLLOWED = (NODES, QUEUES, PARTITIONS, CAPACITY, DRAINS)
"""The entries that a front end follows."""
DEPARTED_AT_MOST = 4_096
"""The number of deleted queues that are remembered, so that requests need not wait for news of them."""


class PartitionOfQueue(NamedTuple):
    """The place of a partition in its queue."""

    queue_id: int
    ordinal: int


class ClusterMap:
    """The known layout."""

    def __init__(self) -> None:
        self.nodes: dict[str, NodeEntry] = {}
        """Those that live, as far as is known."""
        self.partitions: dict[int, PartitionEntry] = {}
        self._servers: dict[int, Server] = {}
        """By partition: the node that serves it."""
        self.capacity: dict[str, CapacityEntry] = {}
        """By queue: the data pipeline's forecast."""
        self.census = Census()
        """How much each node holds and leads, counted as entries come and go."""
        self.ids_above = 1
        """All ids of queues and partitions that this map has ever had are below this."""
        self._last_known: dict[str, str] = {}
        """The last known addresses of nodes: a node that cannot renew its lease may still serve."""
        self._queues: dict[str, QueueEntry] = {}
        self._incarnations: dict[int, QueueEntry] = {}
        self._departed: dict[int, None] = {}
        """Incarnations that no longer exist, the latest last; ids are never used twice."""
        self._too_new: dict[str, str] = {}
        """Queues that only newer versions may serve, and the sentence that says so."""
        self._draining: set[str] = set()
        self._homes: dict[int, PartitionOfQueue] = {}
        self._listeners: list[Callable[[str], None]] = []

    # -- changes ---------------------------------------------------------------------------------------------

    def listen(self, listener: Callable[[str], None]) -> None:
        """Called with the key of every entry that has changed."""
        self._listeners.append(listener)

    def apply(self, key: str, value: bytes | None) -> None:
        """Applies a new or removed entry; an entry that cannot be read counts as removed."""
        match decode(key, value, FOLLOWED):
            case PartitionNews(partition, entry):
                self._take_partition(partition, entry)
            case QueueNews(name, queue, failure):
                self._take_queue(name, queue, failure)
            case NodeNews(name, node):
                self._take_node(name, node)
            case CapacityNews(name, capacity):
                self._take_capacity(name, capacity)
            case DrainNews(name, drain):
                self._take_drain(name, drains=drain is not None)
            case _:
                return
        self.touch(key)

    def touch(self, key: str) -> None:
        """Calls all listeners."""
        for listener in self._listeners:
            listener(key)

    def _take_partition(self, partition: int, entry: PartitionEntry | None) -> None:
        if entry is not None:
            self.ids_above = max(self.ids_above, entry.partition + 1)
        if entry is not None and entry.deleted:
            entry = None  # for clients it is gone, even if its primary still has work
        before = self.partitions.pop(partition, None)
        self._servers.pop(partition, None)
        if before is not None:
            self.census.count(before, -1)
        if entry is not None:
            self.partitions[partition] = entry
            if (server := server_of(entry)) is not None:
                self._servers[partition] = server
            self.census.count(entry)
            self._homes[partition] = PartitionOfQueue(entry.queue_id, entry.ordinal)
        elif before is not None and before.queue_id not in self._incarnations:
            self._homes.pop(partition, None)

    def _take_queue(self, name: str, entry: QueueEntry | None, failure: ReadFailure | None) -> None:
        self._too_new.pop(name, None)
        before = self._queues.pop(name, None)
        if before is not None:
            self._incarnations.pop(before.queue_id, None)
            self.depart(before.queue_id)
            for partition in before.partitions:
                if partition not in self.partitions:
                    self._homes.pop(partition, None)
        if failure is not None and failure.is_too_new:
            self._too_new[name] = failure.why
            if before is not None:
                self._departed.pop(before.queue_id, None)  # it is there, for others
        if entry is None:
            return
        self.ids_above = max(self.ids_above, entry.queue_id + 1, *(one + 1 for one in entry.partitions))
        self._queues[name] = entry
        self._departed.pop(entry.queue_id, None)
        self._incarnations[entry.queue_id] = entry
        for ordinal, partition in enumerate(entry.partitions):
            self._homes[partition] = PartitionOfQueue(entry.queue_id, ordinal)

    def depart(self, queue_id: int) -> None:
        """An incarnation certainly no longer exists."""
        self._departed[queue_id] = None
        if len(self._departed) > DEPARTED_AT_MOST:
            del self._departed[next(iter(self._departed))]

    def _take_node(self, node: str, entry: NodeEntry | None) -> None:
        if entry is None:
            self.nodes.pop(node, None)
        else:
            self.nodes[entry.node] = entry
            self._last_known[entry.node] = entry.native

    def _take_capacity(self, queue: str, entry: CapacityEntry | None) -> None:
        if entry is None:
            self.capacity.pop(queue, None)
        else:
            self.capacity[queue] = entry

    def _take_drain(self, node: str, *, drains: bool) -> None:
        if drains:
            self._draining.add(node)
            return
        self._draining.discard(node)
        if node not in self.nodes and not self.census.led.get(node):
            self._last_known.pop(node, None)  # permanently removed: requests do not wait for it

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
        """Whether the incarnation existed, and no longer does."""
        return queue_id in self._departed

    def queues(self) -> Iterator[QueueEntry]:
        """Those that clients may use."""
        return (entry for entry in self._queues.values() if entry.state == "ready")

    def home(self, partition: int) -> PartitionOfQueue | None:
        """Which queue a partition is part of; None where neither of them is there any more."""
        return self._homes.get(partition)

    def name_of(self, partition: int) -> str | None:
        """The name of the queue that a partition is part of, as far as that is there."""
        home = self._homes.get(partition)
        queue = self._incarnations.get(home.queue_id) if home is not None else None
        return queue.name if queue is not None else None

    def leader(self, partition: int) -> Leader | None:
        """The node that serves a partition; None while none is known."""
        server = self._servers.get(partition)
        if server is None:
            return None
        address = self._last_known.get(server.node)
        return server.at(address) if address is not None else None

    def reader_address(self, partition: int) -> str:
        """Where the log of a partition is read with a ticket; empty where nobody is known to take one."""
        leader = self.leader(partition)
        entry = self.nodes.get(leader.node) if leader is not None else None
        return entry.reader if entry is not None else ""

    def is_orphaned(self, partition: int) -> bool:
        """Whether a partition is known, and known to be served by no node."""
        return partition in self.partitions and self.leader(partition) is None

    def is_needed(self, address: str) -> bool:
        """Whether a node that was there last leads anything, dead or not."""
        return any(count and self._last_known.get(node) == address for node, count in self.census.led.items())

    def open_nodes(self) -> list[NodeEntry]:
        """Those that live and may be given partitions; one that is about to stop would hand them over again."""
        return [
            entry
            for name, entry in sorted(self.nodes.items())
            if name not in self._draining and not entry.leaving
        ]

    def ever_known(self) -> set[str]:
        """The nodes that live, that have lived while this map was made, and that hold anything."""
        return {node for node, count in self.census.held.items() if count}.union(self._last_known)

    def serves(self, queue: QueueEntry) -> bool:
        """Whether every partition of a queue is served."""
        return all(self.leader(partition) is not None for partition in queue.partitions)


def node_name(queue: str, ordinal: int) -> str:
    """A node's name for a partition; no queue name contains `~`."""
    return f"{queue}~{ordinal}" if ordinal else queue


def queue_name(name_on_node: str) -> str:
    """The queue that a name on a node belongs to."""
    return name_on_node.partition("~")[0]

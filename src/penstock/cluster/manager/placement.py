"""Places replicas: evenly, across zones, away from busy nodes, and with the same result for the same input.

Each node has a cost: its replicas, weighted by its load. The cheapest node in an unused zone is chosen. Among equals,
rendezvous hashing decides, so that the partitions of a failed node are spread over all others. Placed replicas stay: when
a node joins or leaves, only the manager moves replicas, one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.model.settings import QueueSettings

BUSY_COSTS = 0.5
"""A node that is wholly busy (load 1) is given half as much as an idle one."""


class Placed(NamedTuple):
    """Nodes of a partition; the primary is the first."""

    partition: int
    nodes: list[NodeEntry]


class TooFewNodesError(Exception):
    """There are fewer nodes than replicas requested; the message gives the numbers."""


class Census:
    """The number of replicas and primaries of each node."""

    def __init__(self, entries: Iterable[PartitionEntry] = ()) -> None:
        self.held: dict[str, int] = {}
        self.led: dict[str, int] = {}
        for entry in entries:
            self.count(entry)

    def count(self, entry: PartitionEntry, times: int = 1) -> None:
        """Counts a partition; `times` -1 removes it."""
        for node in entry.replicas:
            self.held[node] = self.held.get(node, 0) + times
        if entry.primary is not None:
            self.led[entry.primary] = self.led.get(entry.primary, 0) + times

    def copy(self) -> Census:
        """To count on from here, apart from this one."""
        other = Census()
        other.held, other.led = dict(self.held), dict(self.led)
        return other

    def add(self, nodes: Sequence[str]) -> None:
        """Another partition, led by the first of its nodes."""
        for node in nodes:
            self.held[node] = self.held.get(node, 0) + 1
        self.led[nodes[0]] = self.led.get(nodes[0], 0) + 1

    def move_held(self, source: str | None, target: str) -> None:
        """A replica is to be elsewhere."""
        if source is not None:
            self.held[source] = self.held.get(source, 0) - 1
        self.held[target] = self.held.get(target, 0) + 1

    def move_led(self, source: str, target: str) -> None:
        """A partition is to be led by another."""
        self.led[source] = self.led.get(source, 0) - 1
        self.led[target] = self.led.get(target, 0) + 1


def place(
    nodes: Sequence[NodeEntry], partitions: Sequence[int], replicas: int, census: Census | None = None
) -> list[Placed]:
    """Places new partitions on nodes that already hold what `census` says; it is counted on."""
    if len(nodes) < replicas:
        raise TooFewNodesError(f"{replicas} replicas need as many nodes, and there are {len(nodes)}")
    census = census if census is not None else Census()
    placed = []
    for partition in partitions:
        first = min(nodes, key=lambda node: (*_leading_cost(node, census), _rank(partition, node.node)))
        chosen = [first]
        while len(chosen) < replicas:
            chosen.append(next_replica(nodes, partition, chosen, census))
        census.add([node.node for node in chosen])
        placed.append(Placed(partition, chosen))
    _even_out(nodes, placed, census)
    return placed


def _even_out(nodes: Sequence[NodeEntry], placed: Sequence[Placed], census: Census) -> None:
    """Choosing one by one, primaries first, may leave a node with two replicas more than another: this corrects it.

    Each step brings the two nodes closer to each other, so it ends.
    """
    improved = True
    while improved:
        improved = False
        for light in sorted(nodes, key=lambda node: (_holding_cost(node, census), node.node)):
            for one in placed:
                heavy = _exchangeable(one, light, census)
                if heavy is not None:
                    census.move_held(one.nodes[heavy].node, light.node)
                    one.nodes[heavy] = light
                    improved = True


def _exchangeable(one: Placed, light: NodeEntry, census: Census) -> int | None:
    """Which secondary of a partition would better be on a node that holds less, without leaving a zone alone for it."""
    if light in one.nodes:
        return None
    for place_of, heavy in enumerate(one.nodes[1:], 1):
        others = {node.zone for node in one.nodes if node is not heavy}
        keeps_zones = light.zone not in others or heavy.zone in others
        if keeps_zones and _holding_cost(light, census) < census.held[heavy.node] / _weight(heavy):
            return place_of
    return None


def next_replica(
    nodes: Sequence[NodeEntry], partition: int, beside: Sequence[NodeEntry], census: Census
) -> NodeEntry:
    """The best node for one more replica beside others; raises `TooFewNodesError` where all have one."""
    taken = {node.node for node in beside}
    zones = {node.zone for node in beside}
    free = [node for node in nodes if node.node not in taken]
    if not free:
        raise TooFewNodesError(f"all {len(nodes)} nodes hold a replica of partition {partition} already")
    return min(
        free,
        key=lambda node: (node.zone in zones, _holding_cost(node, census), _rank(partition, node.node)),
    )


def _leading_cost(node: NodeEntry, census: Census) -> tuple[float, float]:
    return (census.led.get(node.node, 0) + 1) / _weight(node), _holding_cost(node, census)


def _holding_cost(node: NodeEntry, census: Census) -> float:
    return (census.held.get(node.node, 0) + 1) / _weight(node)


def _weight(node: NodeEntry) -> float:
    return 1.0 - BUSY_COSTS * min(max(node.load, 0.0), 1.0)


def _rank(partition: int, node: str) -> bytes:
    """Rendezvous hashing: every pair of a partition and a node has a place in one order that every process can compute."""
    return hashlib.blake2b(f"{partition}/{node}".encode(), digest_size=8).digest()


def first_entries(
    placed: Sequence[Placed], *, queue: str, queue_id: int, settings: QueueSettings, made_ms: int = 0
) -> list[PartitionEntry]:
    """The entries of a new queue's partitions, in the order of their ordinals: epoch 1, all in sync because all are empty."""
    return [
        PartitionEntry(
            partition=one.partition,
            queue_id=queue_id,
            queue=queue,
            ordinal=ordinal,
            settings=settings,
            epoch=1,
            primary=one.nodes[0].node,
            primary_started_ms=one.nodes[0].started_ms,
            replicas=[node.node for node in one.nodes],
            in_sync=[node.node for node in one.nodes],
            made_ms=made_ms,
            reason="the queue was created",
        )
        for ordinal, one in enumerate(placed)
    ]


def distinct_zones(names: Iterable[str], nodes: Mapping[str, NodeEntry]) -> int:
    """Over how many zones replicas are spread; nodes that are gone count as being in none."""
    return len({nodes[name].zone for name in names if name in nodes})

"""Which node serves a partition, by its entry. Only the replication model and the manager decide this in another way.

A partition is *led* while its primary is in the life in which it got the partition. It is *served* once the primary has
written that it serves under the present epoch. A later epoch takes precedence over an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry


class Leader(NamedTuple):
    """The primary that serves a partition, its address, and since which change of the primary."""

    node: str
    address: str
    epoch: int

    def was_before(self, other: Leader) -> bool:
        """Whether another primary took the partition over from this one."""
        return self.epoch < other.epoch


class Server(NamedTuple):
    """The same, without its address."""

    node: str
    epoch: int

    def at(self, address: str) -> Leader:
        """The same, with its address."""
        return Leader(self.node, address, self.epoch)


def server_of(entry: PartitionEntry) -> Server | None:
    """The node that serves a partition; None: none does, or the layout does not say so yet."""
    if entry.primary is None or entry.serving != entry.epoch:
        return None
    return Server(entry.primary, entry.epoch)


def is_led(entry: PartitionEntry, nodes: Mapping[str, NodeEntry]) -> bool:
    """Whether the primary lives, and has lived without a gap since it was given the partition."""
    primary = nodes.get(entry.primary) if entry.primary is not None else None
    return primary is not None and primary.started_ms == entry.primary_started_ms


def led_by(node: str, entries: Iterable[PartitionEntry]) -> int:
    """How many of these partitions a node is the primary of."""
    return sum(entry.primary == node for entry in entries)


def lives_of(node: str, entries: Iterable[PartitionEntry]) -> list[int]:
    """The lives of a node (`NodeEntry.started_ms`) to which these partitions were given."""
    return [entry.primary_started_ms for entry in entries if entry.primary == node]


def has_other_replicas(entry: PartitionEntry) -> bool:
    """Whether another node than the primary holds the partition, and may lead it."""
    return len(entry.replicas) > 1

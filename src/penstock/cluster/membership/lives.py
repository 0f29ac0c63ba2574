"""The number of a node's life, which distinguishes it from the one before."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.layout.serving import lives_of


def new_life_ms(
    node: str, now_ms: int, nodes: Iterable[NodeEntry], partitions: Iterable[PartitionEntry]
) -> int:
    """The `started_ms` of a node that starts, or has lost its lease: the time, but never a number that it had before.

    A clock that was set back or stands still would give a node the number of its last life, and with it the partitions
    that it led then. The contents of the store are enough to avoid that: only numbers in the store have a meaning.
    """
    known = [entry.started_ms for entry in nodes if entry.node == node]
    known += lives_of(node, partitions)
    return max([now_ms, *(number + 1 for number in known)])

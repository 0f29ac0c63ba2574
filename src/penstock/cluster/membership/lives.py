"""The number of a node's life: how it is told apart from the one before."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.layout.serving import lives_of


def new_life_ms(
    node: str, now_ms: int, nodes: Iterable[NodeEntry], partitions: Iterable[PartitionEntry]
) -> int:
    """What a node that starts, or has lost its lease, takes as `started_ms`: the time, but never one that was its own.

    A clock that was set back or stands still would give a node the number of its last life, and with it partitions that
    it led then. What is in the store is enough to avoid that: only numbers that stand there mean anything.
    """
    known = [entry.started_ms for entry in nodes if entry.node == node]
    known += lives_of(node, partitions)
    return max([now_ms, *(number + 1 for number in known)])

"""The longest log: what nodes must report about their replicas, and which of the reported replicas may lead.

The manager sends no questions, and heartbeats contain no positions. A node that holds replicas of partitions without a
primary writes the lengths of their logs, in one entry for all of them. It calls `asked_of` after every change of
`cluster/nodes/` and `cluster/partitions/`, and writes its entry again when the answer changes. So an election costs one
write for each node and one for each partition, and nothing is written while all partitions have primaries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, Position, PositionsEntry
from penstock.cluster.layout.serving import is_led


def asked_of(node: str, partitions: Iterable[PartitionEntry], nodes: Mapping[str, NodeEntry]) -> list[int]:
    """The partitions whose positions a node must report now; if there are none, its entry is empty or absent."""
    return [entry.partition for entry in partitions if node in entry.replicas and not is_led(entry, nodes)]


class Heard(NamedTuple):
    """What living replicas have reported for this epoch."""

    fit: dict[str, Position]
    unfit: list[str]
    silent: list[str]
    """Living replicas that have reported nothing yet."""
    empty: dict[str, Position]
    """Those of the unfit that have no record at all."""


def heard(
    entry: PartitionEntry,
    members: Iterable[str],
    nodes: Mapping[str, NodeEntry],
    said: Mapping[str, PositionsEntry],
) -> Heard:
    """Sorts the living among `members` by their reports; reports of an earlier epoch or life do not count."""
    result = Heard({}, [], [], {})
    for name in members:
        node, words = nodes.get(name), said.get(name)
        if node is None:
            continue
        position = words.positions.get(entry.partition) if words is not None else None
        if (
            words is None
            or words.started_ms != node.started_ms
            or position is None
            or position.epoch != entry.epoch
        ):
            result.silent.append(name)
        elif position.fit:
            result.fit[name] = position
        else:
            result.unfit.append(name)
            if not position.last:
                result.empty[name] = position
    return result

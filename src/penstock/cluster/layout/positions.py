"""Whose log is the longest: what a node is to say of its replicas, and who of those that said something may lead.

The manager does not ask and nodes do not tell with every heartbeat. A node that holds a replica of a partition which
nobody leads writes, once and for all such partitions together, how far its log goes. It looks with `asked_of` after
every change of `cluster/nodes/` and `cluster/partitions/`, and writes its entry anew when the answer is another one.
So an election costs one write per node and one per partition, and nothing is written while all is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry, Position, PositionsEntry
from penstock.cluster.layout.serving import is_led


def asked_of(node: str, partitions: Iterable[PartitionEntry], nodes: Mapping[str, NodeEntry]) -> list[int]:
    """The partitions whose position a node has to say now; where it is none, its entry is empty or absent."""
    return [entry.partition for entry in partitions if node in entry.replicas and not is_led(entry, nodes)]


class Heard(NamedTuple):
    """What living replicas have said for this epoch."""

    fit: dict[str, Position]
    unfit: list[str]
    silent: list[str]
    """They live and have said nothing yet."""
    empty: dict[str, Position]
    """Those of the unfit that have no record at all."""


def heard(
    entry: PartitionEntry,
    members: Iterable[str],
    nodes: Mapping[str, NodeEntry],
    said: Mapping[str, PositionsEntry],
) -> Heard:
    """Sorts the living among `members` by what they said; words of an earlier epoch or life do not count."""
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

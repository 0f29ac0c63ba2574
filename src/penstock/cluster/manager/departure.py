"""A node that is about to stop: the successors for everything that it leads, so that no failover is needed.

It needs no manager for that: it names the successors itself, as the manager does for a node that is drained
(`primary_moves`), and hands over as usual. What it cannot hand over waits for an election when it is gone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.layout.serving import server_of


class Departure(NamedTuple):
    """What is left to do."""

    wishes: list[tuple[PartitionEntry, int]]
    """Entries to write, each on condition that its version is still this one."""
    waits: bool
    """Whether anything can still be handed over; False: the node may go."""


def departure(
    node: str,
    partitions: Iterable[tuple[PartitionEntry, int]],
    living: Mapping[str, NodeEntry],
    drained: Collection[str],
) -> Departure:
    """The partitions that a node leads and other nodes could lead, each with the successor that leads least."""
    entries = list(partitions)
    led: dict[str, int] = {}
    for entry, _ in entries:
        if entry.primary is not None:
            led[entry.primary] = led.get(entry.primary, 0) + 1
    wishes: list[tuple[PartitionEntry, int]] = []
    waits = False
    for entry, version in entries:
        if entry.primary != node or entry.retired:
            continue
        able = [
            other
            for other in entry.in_sync
            if other != node
            and other in living
            and not living[other].leaving
            and other not in drained
            and other in entry.replicas
        ]
        if not able:
            continue
        waits = True
        if entry.hand_over_to is not None or server_of(entry) is None:
            continue  # it is under way, or the epoch has to begin before it can end
        successor = min(able, key=lambda other: (led.get(other, 0), entry.replicas.index(other)))
        led[successor] = led.get(successor, 0) + 1
        reason = f"{node} hands over to {successor} because it stops"
        wishes.append((msgspec.structs.replace(entry, hand_over_to=successor, reason=reason), version))
    return Departure(wishes, waits)

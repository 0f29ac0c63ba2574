"""Bugs to plant where queues go that are not used."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.backend.upkeep import idle_queues
from penstock.backend.upkeep.idle_queues import IdleQueues
from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.entries import QueueEntry
from penstock.cluster.layout.view import ClusterView, Seen
from penstock.cluster.manager import idle_expiry
from penstock.simulation.patching import Patch


def uses_are_not_noted() -> Sequence[Patch]:
    """A queue goes when its time is up, whether it was used or not."""
    return [(IdleQueues, "used", lambda self, partition_id, now_ms: None)]


def idle_queues_stay() -> Sequence[Patch]:
    """A queue that is not used is never looked at."""
    return [(IdleQueues, "take_due", lambda self, now_ms: [])]


def jumps_count_as_idle() -> Sequence[Patch]:
    """Time that the clock leaps over is time in which nobody used the queue."""
    return [(idle_queues, "LOOKS_AT_ONCE", 1_000_000)]


def one_idle_partition_is_enough() -> Sequence[Patch]:
    """The manager deletes a queue of which one partition is not used."""

    def expire(view: ClusterView, seen: Seen[QueueEntry]) -> list[Change]:
        partitions = [view.partitions.get(partition) for partition in seen.entry.partitions]
        if any(known is not None and idle_expiry._is_idle(known.entry) for known in partitions):
            return [
                idle_expiry._change(seen, msgspec.structs.replace(seen.entry, state="deleting"), "planted")
            ]
        return []

    return [(idle_expiry, "_expire", expire)]

"""Planted bugs of the log of lifecycles: rows that are lost, and rows that come again under another number."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.backend.lifecycle import reports as lifecycle_reports
from penstock.queue.lifecycle import Lifecycle
from penstock.queue.lifecycle_row import LifecycleRow, PartitionName, lifecycle_stream
from penstock.queue.partition import Partition
from penstock.queue.snapshot.building import Builder
from penstock.simulation.patching import Patch
from penstock.simulation.scenario import Scenario


def follows(scenario: Scenario) -> bool:
    """Whether anything of this can show."""
    return not scenario.faults.bit_flips_ms and any(queue.settings.lifecycle for queue in scenario.queues)


def follows_through_crashes(scenario: Scenario) -> bool:
    """The same for what only shows after a restart."""
    return follows(scenario) and scenario.faults.crashes_ms > 0


def reports_lose_a_row() -> Sequence[Patch]:
    """The last row of a report is not in it."""

    def stream(place: PartitionName, first_number: int, rows: Sequence[LifecycleRow]) -> bytes:
        return real(place, first_number, rows[:-1] if len(rows) > 3 else rows)

    real = lifecycle_stream
    return [(lifecycle_reports, "lifecycle_stream", stream)]


def rows_come_again() -> Sequence[Patch]:
    """What was reported waits again, as if it were new."""

    def reported(self: Lifecycle, through: int) -> None:
        row = self.waiting[0] if len(self.waiting) > 3 else None
        real(self, through)
        if row is not None:
            self.waiting.append(row)
            self.next += 1

    real = Lifecycle._reported
    return [(Lifecycle, "_reported", reported)]


def restart_forgets_numbers() -> Sequence[Patch]:
    """A snapshot begins to count anew from what waits."""

    def finish(self: Builder) -> Partition:
        partition = real(self)
        if partition.lifecycle is not None:
            partition.lifecycle.next = len(partition.lifecycle.waiting) + 1
        return partition

    real = Builder.finish
    return [(Builder, "finish", finish)]

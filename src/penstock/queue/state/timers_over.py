"""What records say of timers that are over: which are taken out, and which are due again soon."""

from __future__ import annotations

from typing import Protocol

from penstock.model import limits
from penstock.model.records import Matured
from penstock.model.run_set import RunSet
from penstock.model.runs import Runs, difference, normalized
from penstock.queue.state import states
from penstock.queue.state.table import MessageTable
from penstock.queue.state.timers import SlotTimers


class Timed(Protocol):
    """What timers of a partition are about."""

    table: MessageTable
    delays: SlotTimers
    expiries: SlotTimers
    overdue: RunSet


def end_delays(partition: Timed, record: Matured) -> None:
    """All delays that are due are over. Called when the messages of the record are no longer delayed."""
    due = partition.delays.take_due(record.at_ms)
    if len(record.runs) >= limits.RUNS_PER_RECORD:  # no room in the record for the others
        for run in partition.table.among(states.RUNS_IN[states.DELAYED], due):
            partition.delays.add(record.at_ms - limits.TIMER_SLOT_MS, run)  # a slot that is over


def end_times_to_live(partition: Timed, runs: Runs, taken: Runs, at_ms: int) -> None:
    """Timers were taken out that made the messages of some runs expire. Called before those have gone."""
    due = partition.table.among(states.RUNS_LIVING, taken)
    others = difference(due, runs)
    if others:
        moving = partition.table.among(states.RUNS_IN[states.MOVING], others)
        partition.overdue.add(normalized(moving))
        expire_soon(partition, difference(others, moving), at_ms)


def expire_soon(partition: Timed, runs: Runs, at_ms: int) -> None:
    """The time to live of these messages is over already."""
    for run in runs:
        partition.expiries.add(at_ms - limits.TIMER_SLOT_MS, run)  # a slot that is over

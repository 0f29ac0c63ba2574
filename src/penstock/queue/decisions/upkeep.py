"""Changes that time alone causes: leases end, delays end, messages expire and leave the sorting window."""

from __future__ import annotations

from penstock.model import limits
from penstock.model.records import Expired, Matured, MoveStarted, Sorted, TimersEnded
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.decisions.move import send_late
from penstock.queue.decisions.settle import give_back
from penstock.queue.log.retention import cut_due
from penstock.queue.partition import Partition
from penstock.queue.ready.sorted_order import Clock
from penstock.queue.state import states

_LEASES_AT_ONCE = 500
_RUNS_AT_ONCE = 2_000
"""Of leases that end, where one with more comes back in several records, and of messages past their retention."""
_TIMERS_AT_ONCE = 2_000
"""Of delays and times to live that end together."""
_MESSAGES_AT_ONCE = 100_000
"""Past their retention, in no more than `_RUNS_AT_ONCE` runs."""
_BATCHES_AT_ONCE = 500
"""The number of late batches that one call examines, and of batches that it releases from the window."""


def upkeep_due(partition: Partition) -> int | None:
    """When there is next something to do."""
    oldest_ms = partition.sent_times.next_ms()
    times = [
        partition.leases.next_ms(),
        partition.delays.next_ms(),
        partition.expiries.next_ms(),
        oldest_ms + partition.settings.retention_ms if oldest_ms is not None else None,
        cut_due(partition),
    ]
    return min((time for time in times if time is not None), default=None)


def end_leases(partition: Partition, now_ms: int) -> list[PendingRecord]:
    """Ends leases whose time is over."""
    return [
        written
        for lease, runs in partition.leases.due(now_ms, _LEASES_AT_ONCE, _RUNS_AT_ONCE)
        for written in give_back(partition, lease, runs, "lease-ended", now_ms, now_ms)
    ]


def end_delays(partition: Partition, now_ms: int, *, in_parts: bool = True) -> list[PendingRecord]:
    """Ends delays whose time is over; if they are many and every replica can read `TimersEnded`, the first of them."""
    timers = partition.delays
    due_ms = timers.next_ms()
    if due_ms is None or due_ms > now_ms:
        return []
    due = timers.due(now_ms, _TIMERS_AT_ONCE if in_parts else None)
    runs = partition.table.among(states.RUNS_IN[states.DELAYED], due.runs)
    if not due.is_all:
        return [PendingRecord(TimersEnded("delay", runs, due.slot, due.end, now_ms))]
    if not runs:
        timers.pass_over()
        return []
    return [PendingRecord(Matured(runs[: limits.RUNS_PER_RECORD], now_ms))]


def expire(partition: Partition, now_ms: int, *, in_parts: bool = True) -> list[PendingRecord]:
    """Moves messages whose time to live is over to the dead-letter queue, or removes them; if they are many, the first of them."""
    timers = partition.expiries
    due_ms = timers.next_ms()
    if due_ms is None or due_ms > now_ms:
        return []
    due = timers.due(now_ms, _TIMERS_AT_ONCE if in_parts else None)
    living = partition.table.among(states.RUNS_LIVING, due.runs)
    if due.is_all and not living:
        timers.pass_over()
        return []
    # Moving messages cannot expire now. The record is written even so, so that they expire if they come back.
    runs = partition.table.among(states.RUNS_EXPIRABLE, living) if partition.moves else living
    target = partition.settings.dead_letter_queue
    if not due.is_all:
        return [PendingRecord(TimersEnded("ttl", runs, due.slot, due.end, now_ms, target or ""))]
    runs = runs[: limits.RUNS_PER_RECORD]  # the others stay due
    if target is not None and runs:
        return [PendingRecord(MoveStarted(runs, target, "expired", now_ms))]
    return [PendingRecord(Expired(runs, "ttl", now_ms))]


def retain(partition: Partition, now_ms: int) -> list[PendingRecord]:
    """Removes messages older than the retention, in any state."""
    table = partition.table
    cutoff_ms = now_ms - partition.settings.retention_ms
    end = partition.sent_times.expired_before(cutoff_ms, table.next)
    if not end:
        return []
    first = table.first_living()
    runs = table.runs_in(states.RUNS_EXPIRABLE, first, end, _MESSAGES_AT_ONCE, _RUNS_AT_ONCE)
    if not runs:
        partition.sent_times.pass_over(cutoff_ms)
        return []
    return [PendingRecord(Expired(runs, "retention", now_ms))]


def next_due(partition: Partition, now_ms: int, clock: Clock) -> int | None:
    """When there is next something to do, for the window that sorts messages as well."""
    due_ms = upkeep_due(partition)
    sorting = partition.sorting
    if sorting is None:
        return due_ms
    if sorting.late and (sorting.stray(partition.table, _BATCHES_AT_ONCE) or sorting.may_have_strays):
        return now_ms
    leaving_ms = sorting.due_ms(now_ms, clock)
    return leaving_ms if due_ms is None or (leaving_ms is not None and leaving_ms < due_ms) else due_ms


def let_out(partition: Partition, now_ms: int, clock: Clock) -> list[PendingRecord]:
    """Releases messages whose window is over, in the order of their stamps."""
    sorting = partition.sorting
    if sorting is None:
        return []
    written = send_late(partition, now_ms, _BATCHES_AT_ONCE)
    through = sorting.due_through(now_ms, clock, _BATCHES_AT_ONCE)
    if through is not None:
        written.append(PendingRecord(Sorted(through, now_ms)))
    return written

"""Decides the stamps of a batch: the server's, its producer's, or none; and which of its messages are late."""

from __future__ import annotations

from array import array
from typing import NamedTuple

from penstock.model.batch import STAMPS, Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.origin import Lateness
from penstock.model.partition_numbers import ORDINAL_MARK
from penstock.model.records import MoveStarted, Sent
from penstock.model.runs import normalized
from penstock.model.settings import QueueSettings
from penstock.ordering.clock_interval import ClockInterval, UncertaintyPolicy
from penstock.ordering.stamped_run import check_ids, run_of
from penstock.ordering.window_sorter import Accepted, Refused
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.ready.sorted_order import SortedOrder, stamped_run

LATE_SUFFIX = ".late"


class ProducerStamps(NamedTuple):
    """The stamps of a producer for its batch; the times are here or in the batch's own column."""

    process: int = 0
    counter: int = 0
    time_us: int = 0
    uncertainty_us: int = 0


NOT_STAMPED = ProducerStamps()


class Stamping(NamedTuple):
    """The stamps in the record of a send."""

    stamp_us: int = 0
    process: int = 0
    counter: int = 0
    late: int = 0
    lateness: Lateness | None = None
    by_server: bool = False


NO_STAMPS = Stamping()


def late_queue(name: str) -> str:
    """The name of the late queue; all partitions of a queue share one."""
    return name.partition(ORDINAL_MARK)[0] + LATE_SUFFIX


def policy(settings: QueueSettings) -> UncertaintyPolicy:
    """How uncertain the time of a `clock` queue may be."""
    return UncertaintyPolicy(settings.max_uncertainty_ms * 1_000, settings.when_uncertain)


def why_not_now(partition: Partition, now: ClockInterval | None) -> str | None:
    """Why a `clock` queue can take nothing in at this moment; None where it can."""
    settings = partition.settings
    rule = policy(settings)
    if rule.judge(now) != "go":
        return rule.explain(now)
    assert now is not None
    if settings.server_stamped and partition.commit_wait.ahead_us(now) > 2 * rule.max_uncertainty_us:
        return (
            f"the clock is {partition.commit_wait.ahead_us(now)} µs behind the last stamp of queue "
            f"{partition.name!r}: it went back, here or on the server before"
        )
    return None


def stamp(
    partition: Partition,
    batch: Batch,
    said: ProducerStamps,
    skipped: int,
    now_ms: int,
    now: ClockInterval | None,
) -> Stamping:
    """The stamps of a batch; raises where it cannot be taken. `skipped`: duplicates before its first message."""
    settings = partition.settings
    if settings.ordering == "clock":
        reason = why_not_now(partition, now)
        if reason is not None:
            raise PenstockError(ErrorCode.CLOCK_UNCERTAIN, reason)
    if settings.server_stamped:
        assert now is not None
        return Stamping(partition.commit_wait.next_stamp(now), by_server=True)
    sorting = partition.sorting
    if not (batch.columns & STAMPS or said.time_us):
        if sorting is None:
            return NO_STAMPS
        return Stamping(_server_time(partition, sorting, now_ms, now), by_server=True)
    times = _times(batch, said)
    counter = said.counter + skipped
    time_us = 0 if batch.columns & STAMPS else said.time_us
    if sorting is not None:
        late, lateness = _judge(partition, sorting, times, said, counter, now)
        return Stamping(time_us, said.process, counter, late, lateness)
    heads = partition.late_heads
    late = batch.count if heads is not None and min(times) < heads.newest_us else 0
    return Stamping(time_us, said.process, counter, late)


def _server_time(partition: Partition, sorting: SortedOrder, now_ms: int, now: ClockInterval | None) -> int:
    """The stamp of a batch without one: the server's time, and after everything the server stamped or let out."""
    time_us = now.middle_us if now is not None else now_ms * 1_000
    return max(time_us, partition.commit_wait.last_us + 1, sorting.watermark_us + 1)


def _times(batch: Batch, said: ProducerStamps) -> array[int]:
    if min(said) < 0:
        raise PenstockError(ErrorCode.BAD_REQUEST, "bad stamps: a number is negative")
    column = batch.integers(STAMPS)
    if column is not None:
        times = array("Q", column.tobytes())
    else:
        times = array("Q", (min(said.time_us, 2**64 - 1),)) * batch.count
    check_ids(times, said.process, said.counter)
    return times


def _judge(
    partition: Partition,
    sorting: SortedOrder,
    times: array[int],
    said: ProducerStamps,
    counter: int,
    now: ClockInterval | None,
) -> tuple[int, Lateness | None]:
    """How many of the messages are late, and how late."""
    settings = partition.settings
    if not said.process:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"queue {partition.name!r} is ordered by its producers' stamps: process 0 is the server itself; "
            "use another number for each producer",
        )
    if settings.ordering == "clock" and said.uncertainty_us > settings.max_uncertainty_ms * 1_000:
        raise PenstockError(
            ErrorCode.CLOCK_UNCERTAIN,
            f"the producer's clock is uncertain by {said.uncertainty_us} µs, more than the "
            f"{settings.max_uncertainty_ms} ms that queue {partition.name!r} allows (max_uncertainty_ms)",
        )
    run = run_of(times, said.process, counter, partition.table.next)
    verdict = sorting.judge(run, now)
    if isinstance(verdict, Accepted):
        return 0, None
    if isinstance(verdict, Refused):
        raise PenstockError(ErrorCode.STAMP_IN_FUTURE, verdict.explain())
    return verdict.messages, sorting.lateness(run, verdict)


def late_move(partition: Partition, record: Sent, batch: Batch, stamps: Stamping) -> PendingRecord:
    """Sends the late messages of a batch on their way."""
    runs = normalized(stamped_run(record, batch).runs(0, stamps.late))
    return PendingRecord(
        MoveStarted(runs, late_queue(partition.name), "late", record.sent_ms, stamps.lateness)
    )

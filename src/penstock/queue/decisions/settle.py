"""Deciding what a receipt may still do: delete, release, extend. A stale one does nothing (I4).

A receipt is stale once its lease on the message has ended. With the receive count that the message was delivered
with it may do more, as long as nobody has received the message since: delete it, and if it is ready hide it again.
"""

from __future__ import annotations

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import Deleted, Extended, Purged, Released, ReleaseReason, Resumed, SpentMoved
from penstock.model.runs import Runs, count_of, difference, normalized, runs_of
from penstock.queue.decisions.decision import Decision, Outcome, PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.state import states


def delete(
    partition: Partition, lease: int, runs: Runs, now_ms: int, received: int | None = None
) -> Decision[Outcome]:
    """The consumer is done with the messages; `received`: the receive count that it got them with."""
    done, outcome = _held(partition, lease, runs)
    if received and outcome.stale:
        late = _not_received_since(partition, outcome.stale, received)
        if late:
            done = normalized([*done, *late])
            outcome = Outcome(count_of(done), outcome.gone, difference(outcome.stale, late))
    return Decision((PendingRecord(Deleted(lease, done, now_ms)),) if done else (), outcome)


def release(
    partition: Partition,
    lease: int,
    runs: Runs,
    delay_ms: int,
    now_ms: int,
    received: int | None = None,
    *,
    may_move: bool = True,
    unreceived: bool = False,
    error: str = "",
) -> Decision[Outcome]:
    """The consumer gives the messages back, maybe with a word on what went wrong. `may_move`: the dead-letter queue
    is there.

    `unreceived`: it never saw them, so that this receive does not count, and nothing is received too often by it.
    """
    done, outcome = _held(partition, lease, runs)
    if unreceived:
        record = Released(lease, done, "unreceived", now_ms, now_ms + delay_ms, error)
        return Decision((PendingRecord(record),) if done else (), outcome)
    if received and outcome.stale and not delay_ms:  # what is asked for is so already: nothing to write
        _, outcome = _with_ready(partition, outcome, received)
    ready_ms = now_ms + delay_ms
    return Decision(
        give_back(partition, lease, done, "released", now_ms, ready_ms, may_move=may_move, error=error),
        outcome,
    )


def extend(
    partition: Partition,
    lease: int,
    runs: Runs,
    visibility_timeout_ms: int,
    now_ms: int,
    received: int | None = None,
) -> Decision[Outcome]:
    """The consumer lives and wants to keep the messages for longer; with `received`, or to have them back."""
    done, outcome = _held(partition, lease, runs)
    until_ms = now_ms + visibility_timeout_ms
    written: tuple[PendingRecord, ...] = (
        (PendingRecord(Extended(lease, done, now_ms, until_ms)),) if done else ()
    )
    if received and outcome.stale:
        back, outcome = _with_ready(partition, outcome, received)
        if back:
            written = (*written, PendingRecord(Resumed(lease, back, now_ms, until_ms)))
    return Decision(written, outcome)


def give_back(
    partition: Partition,
    lease: int,
    runs: Runs,
    reason: ReleaseReason,
    now_ms: int,
    ready_ms: int,
    *,
    may_move: bool = True,
    error: str = "",
) -> list[PendingRecord]:
    """Ends the lease on the messages; those received too often go to the dead-letter queue."""
    settings = partition.settings
    spent: Runs = []
    if may_move and settings.max_receives is not None and settings.dead_letter_queue is not None:
        spent = _received_at_least(partition, runs, settings.max_receives)
    rest = difference(runs, spent) if spent else runs
    written: list[PendingRecord] = []
    if rest:
        written.append(PendingRecord(Released(lease, rest, reason, now_ms, ready_ms, error)))
    if spent and settings.dead_letter_queue is not None:
        record = SpentMoved(lease, spent, reason, now_ms, settings.dead_letter_queue, error)
        written.append(PendingRecord(record))
    return written


def _not_received_since(partition: Partition, runs: Runs, received: int) -> Runs:
    """Those of the messages that wait and have been received exactly so often, so by nobody after that.

    Why a count is proof enough: every lease adds one to it, in the record that makes the lease, and nothing takes one
    away but the word of the lease's own receiver that nobody has seen the messages, nor their count, which ends that
    lease. A lease that is given back otherwise keeps it, also one that never reached its receiver; so do a delay, a
    move that is abandoned, a snapshot and a replay. A message that moves gets another sequence number, and so does
    one that comes back, so that an old receipt never names it. Numbers are never used again. So under one sequence
    number a count stands for one lease, and whoever was told it was that lease's holder.

    A failover that lost the record of a lease (`async`, or an unclean election) lost its count with it, and the next lease gets the same
    one. Then the count stands for two leases on the same message: whichever holder says that it is done with it, has had it.
    """
    found: list[int] = []
    for run in partition.table.among(states.RUNS_WAITING, runs):
        counts = partition.table.receive_counts(run)
        found.extend(run[0] + offset for offset, count in enumerate(counts) if count == received)
    return runs_of(found)


def _with_ready(partition: Partition, outcome: Outcome, received: int) -> tuple[Runs, Outcome]:
    """Which of the stale messages are ready and received by nobody since, and the outcome with them as done.

    Not those that wait out a delay: its timer would stay, and could end a later delay early.
    """
    late = _not_received_since(partition, outcome.stale, received)
    ready = partition.table.among(states.RUNS_IN[states.READY], late)
    if not ready:
        return [], outcome
    stale = difference(outcome.stale, ready)
    return ready, Outcome(outcome.done + count_of(ready), outcome.gone, stale)


def _received_at_least(partition: Partition, runs: Runs, most: int) -> Runs:
    spent: list[int] = []
    for run in runs:
        counts = partition.table.receive_counts(run)
        if max(counts) >= most:
            spent.extend(run[0] + offset for offset, count in enumerate(counts) if count >= most)
    return runs_of(spent)


def _held(partition: Partition, number: int, runs: Runs) -> tuple[Runs, Outcome]:
    """Which of the messages the lease still holds, and what became of the others."""
    lease = partition.leases.get(number)
    if lease is not None and lease.is_all(runs):
        return runs, Outcome(count_of(runs), 0, [])
    wanted = checked(runs)
    done = lease.held(wanted) if lease is not None else []
    if done == wanted:
        return done, Outcome(count_of(done), 0, [])
    rest = difference(wanted, done)
    gone = 0
    stale: Runs = []
    for run in rest:
        living = partition.table.runs_in(states.RUNS_LIVING, run[0], run[0] + run[1], run[1])
        stale += living
        gone += run[1] - count_of(living)
    return done, Outcome(count_of(done), gone, stale)


def checked(runs: Runs) -> Runs:
    """Bounds what a receipt may name before anything walks over it."""
    if any(first < 0 or count < 1 for first, count in runs) or count_of(runs) > limits.RECEIVE_MESSAGES:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"a receipt names 1 to {limits.RECEIVE_MESSAGES} messages by (first, count)",
        )
    return normalized(runs)


def undelivered(partition: Partition, lease: int, runs: Runs, now_ms: int) -> list[PendingRecord]:
    """The receiver was gone before its messages could leave: they are ready again at once."""
    done, _ = _held(partition, lease, normalized(runs))
    return give_back(partition, lease, done, "undelivered", now_ms, now_ms)


def purge(partition: Partition, now_ms: int) -> Decision[int]:
    """Everything that is there now is gone; the reply is how many."""
    moving = partition.table.counts[states.MOVING]
    messages = partition.table.messages - moving
    if partition.log is not None:  # what waits may be in both
        messages = max(messages, partition.log.messages)
    return Decision((PendingRecord(Purged(partition.table.next, now_ms)),), messages)

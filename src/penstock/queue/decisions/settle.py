"""Decides what a receipt may still do: delete, release, extend. A stale receipt does nothing (I4).

A receipt is stale once its lease on the message has ended. If it also has the receive count of its delivery, and the
message has not been received since, it may still delete the message, or hide it again if it is ready.
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
    """The consumer returns the messages, with an optional error. `may_move`: the dead-letter queue exists.

    `unreceived`: the consumer never saw them. This receive then does not count and makes no message a dead letter.
    """
    done, outcome = _held(partition, lease, runs)
    if unreceived:
        record = Released(lease, done, "unreceived", now_ms, now_ms + delay_ms, error)
        return Decision((PendingRecord(record),) if done else (), outcome)
    if received and outcome.stale and not delay_ms:  # they are ready already: nothing to write
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
    """The waiting messages that have been received exactly so often, so by no consumer since.

    Why a count is proof enough: every lease adds one to it, in the record that makes the lease. Only the receiver of the
    lease can take it back, by saying that it saw neither the messages nor their count, and that ends the lease. A lease
    that ends otherwise keeps the count, also one that never reached its receiver; so do a delay, an abandoned move, a
    snapshot and a replay. A message that moves gets another sequence number, and so does one that comes back, so an old
    receipt never names it. Sequence numbers are never used again. So for one sequence number a count identifies one lease,
    and only the holder of that lease knows it.

    A failover that lost the record of a lease (`async`, or an unclean election) lost its count too, and the next lease
    gets the same count. Then the count identifies two leases of the same message. Each holder has received the message, so
    each may say that it is done.
    """
    found: list[int] = []
    for run in partition.table.among(states.RUNS_WAITING, runs):
        counts = partition.table.receive_counts(run)
        found.extend(run[0] + offset for offset, count in enumerate(counts) if count == received)
    return runs_of(found)


def _with_ready(partition: Partition, outcome: Outcome, received: int) -> tuple[Runs, Outcome]:
    """The stale messages that are ready and not received since, and the outcome that counts them as done.

    Messages that wait out a delay are not included: their timer would stay, and could end a later delay early.
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
    """The messages that the lease still holds, and the outcome for the others."""
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
    if partition.log is not None:  # messages that wait may be in both
        messages = max(messages, partition.log.messages)
    return Decision((PendingRecord(Purged(partition.table.next, now_ms)),), messages)

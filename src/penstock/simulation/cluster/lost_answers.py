"""Removes from the history of a run what only a losing log said.

The acknowledgement of a lost record is like an answer that never came: the client cannot know the outcome of its request.
So those answers, and no others, become lost answers, deliveries with a lost lease are removed, and all checkers then
require the full promises of the rest. This is exact because the surviving log is one log: everything in it must be
consistent with everything before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.routing.numbers import inward
from penstock.simulation.cluster.lost_records import LostRecords
from penstock.simulation.history import History
from penstock.simulation.log_history import LogHistory, LogRead
from penstock.simulation.message_history import DeliveredMessage, SentBatch
from penstock.simulation.recorder import sequences_of


def forget(history: History, lost: LostRecords) -> None:
    """Changes the history, at the end of a run."""
    if not lost.queues:
        return
    for batch in history.batches:
        if batch.life.queue_id in lost.queues:
            _forget_sends(batch, lost)
    for message in history.messages.values():
        message.deleted_late = any(_was_deleted_late(delivery, lost) for delivery in message.deliveries)
        message.deliveries[:] = _kept(message.deliveries, lost)
    history.deliveries[:] = _kept(history.deliveries, lost)
    for delivery in history.deliveries:
        if delivery.life.queue_id in lost.queues:
            _forget_settlements(delivery, lost)
    _forget_purges(history, lost)
    for queue_id, spans in lost.watermarks.items():
        life = history.lives[queue_id]
        life.watermarks_us = {told for told in life.watermarks_us if not any(told in span for span in spans)}
    history.claims_lost |= lost.claims
    history.returned |= lost.returned
    # Only an unclean election may lose that: a move continues when all replicas in sync have its last step.
    history.moves_lost |= {place for place in lost.moved if place[0] in history.unclean}
    _forget_logs(history.log, lost)


def _forget_purges(history: History, lost: LostRecords) -> None:
    """A purge is undone in partitions whose surviving log has no record of it, and a losing log has one."""
    for (queue_id, ordinal), fell in lost.purges.items():
        stands = sorted(lost.purged.get((queue_id, ordinal), ()))
        for purge in sorted(history.lives[queue_id].purges, key=lambda purge: purge.asked_ms):
            if purge.answered_ms is None:
                continue
            during = range(purge.asked_ms - history.skew_ms, purge.answered_ms + history.skew_ms + 1)
            kept = next((at_ms for at_ms in stands if at_ms in during), None)
            if kept is not None:
                stands.remove(kept)
            elif any(at_ms in during for at_ms in fell):
                purge.undone.add(ordinal)
                purge.messages = None


def _forget_sends(batch: SentBatch, lost: LostRecords) -> None:
    """The rest is the first answer from the surviving log."""
    queue_id = batch.life.queue_id
    answers = list(zip(batch.answers, batch.heard, strict=True))
    places = [sequences_of(answer.runs) for answer, _ in answers]
    for index, message in enumerate(batch.messages):
        if message.fate not in ("stored", "duplicate") or (queue_id, message.sequence) not in lost.sent:
            continue
        message.fate = "unknown"
        for (answer, heard), sequences in zip(answers, places, strict=True):
            if (queue_id, sequences[index]) not in lost.sent:
                message.fate = "duplicate" if index in answer.duplicates else "stored"
                message.sequence, message.sent_ms = sequences[index], answer.sent_ms
                message.answered_ms, message.answered_us, message.stamp_us = heard
                break
    kept = [
        place
        for place, sequences in enumerate(places)
        if not any((queue_id, sequence) in lost.sent for sequence in sequences)
    ]
    batch.answers[:] = [batch.answers[place] for place in kept]
    batch.heard[:] = [batch.heard[place] for place in kept]


def _kept(deliveries: list[DeliveredMessage], lost: LostRecords) -> Iterator[DeliveredMessage]:
    for delivery in deliveries:
        queue_id = delivery.life.queue_id
        if (
            queue_id not in lost.queues
            or (queue_id, inward(delivery.sequence)[0], delivery.lease) not in lost.leases
        ):
            yield delivery


def _was_deleted_late(delivery: DeliveredMessage, lost: LostRecords) -> bool:
    return (delivery.life.queue_id, delivery.sequence) in lost.deleted_late and any(
        settlement.may_have_deleted() for settlement in delivery.settlements
    )


def _forget_settlements(delivery: DeliveredMessage, lost: LostRecords) -> None:
    queue_id, sequence = delivery.life.queue_id, delivery.sequence
    for settlement in delivery.settlements:
        is_lost = (queue_id, sequence, delivery.lease, settlement.kind) in lost.settled
        ordinal, number = inward(sequence)
        ended = (queue_id, sequence) in lost.ended or number < lost.purged_to.get((queue_id, ordinal), 0)
        # The log with that answer had lost the message, and another log has restored it.
        was_away = (queue_id, sequence) in lost.returned
        was_gone = (ended or was_away) and settlement.result in ("gone", "done-or-gone")
        # The first attempt deleted it in a log that came back later; one in between, without it, answered the second.
        was_deleted = (
            settlement.kind == "delete"
            and settlement.again
            and settlement.result == "stale"
            and (queue_id, sequence, delivery.lease) in lost.deletions_returned
        )
        if (is_lost and settlement.result in ("done", "done-or-gone")) or was_gone or was_deleted:
            settlement.result, settlement.answered_ms = "lost", None


def _forget_logs(log: LogHistory, lost: LostRecords) -> None:
    log.reads[:] = [read for read in log.reads if _is_left(read, lost)]
    log.gone[:] = [seen for seen in log.gone if seen.start >= max(lost.cuts.get(seen.life.queue_id, {0}))]
    log.bounds[:] = [seen for seen in log.bounds if seen.begin not in lost.cuts.get(seen.life.queue_id, ())]
    log.joined[:] = [
        row
        for row in log.joined
        if (row.life.queue_id, row.place.group, row.place.generation) not in lost.generations
    ]
    for commit in log.commits:
        if (
            commit.life.queue_id,
            commit.place.group,
            commit.offset,
        ) in lost.offsets and commit.result == "done":
            commit.result, commit.answered_ms = "lost", None
    for seek in log.seeks:
        queue_id = seek.life.queue_id
        is_lost = seek.offset is not None and (queue_id, seek.group, seek.offset) in lost.offsets
        if seek.result == "done" and (is_lost or (queue_id, seek.group) in lost.removed_groups):
            seek.result, seek.answered_ms = "lost", None


def _is_left(read: LogRead, lost: LostRecords) -> bool:
    """Leaves of a read what is in the log that won; False: nothing is."""
    queue_id = read.life.queue_id
    if queue_id not in lost.queues:
        return True
    for place, message in enumerate(read.messages):
        if (queue_id, message.offset) in lost.sent:
            read.messages = read.messages[:place]
            read.next = message.offset
            return place > 0
    return True

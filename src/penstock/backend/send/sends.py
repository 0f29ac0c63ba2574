"""Accepts batches. On a queue ordered by the clock a send may be held while the time is too uncertain. With server stamps it
is answered when its stamp has certainly passed; this wait and the disk's run in parallel.
"""

from __future__ import annotations

from collections.abc import Collection

from penstock.backend.admin.administration import late_queue_of
from penstock.backend.node.parts import NodeParts
from penstock.backend.send.held_sends import HeldSend
from penstock.backend.upkeep.upkeep_times import earliest
from penstock.model import limits
from penstock.model.batch import Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import NUMBERS_SKIPPED, DuplicatesSent, MoveStarted
from penstock.model.reserved_queues import check_not_reserved
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.commit_wait import answerable_us, wait_us
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import upkeep
from penstock.queue.decisions.decision import Admitted, Decision
from penstock.queue.decisions.stamping import NOT_STAMPED, ProducerStamps, why_not_now
from penstock.queue.partition import Partition
from penstock.wire.messages import Failed, Send, SendResult
from penstock.wire.send_order import out_of_order

CLOCK_RETRY_MS = 10
"""How often a clock that is too uncertain is asked again."""


def send(
    parts: NodeParts, connection: int, request_id: int, request: Send, body: memoryview, now_ms: int
) -> None:
    """Takes a batch in and answers, or holds it until the time is certain enough; see `SendOrder` for those that follow."""
    partition = parts.catalogue.usable(request.queue_id)
    epoch = partition.epochs.last
    if request.after:
        parts.send_order.check(connection, request, epoch)
    _send(parts, partition, connection, request_id, request, body, now_ms)
    parts.send_order.taken(connection, request, epoch)


def _send(
    parts: NodeParts,
    partition: Partition,
    connection: int,
    request_id: int,
    request: Send,
    body: memoryview,
    now_ms: int,
) -> None:
    if len(body) > limits.BATCH_BYTES:
        raise PenstockError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {len(body)} bytes is over the limit of {limits.BATCH_BYTES}",
        )
    if partition.log is not None and not request.internal:
        check_not_reserved(partition.name, "sent to")
    if partition.settings.ordering != "clock":
        result = _take_in(parts, partition, request, body, now_ms, None)
        parts.answer(connection, request_id, result, about=request.queue_id)
        return
    held = parts.held_sends
    if held.waiting(request.queue_id):  # sends that were held before come first
        _let_in(parts, partition, now_ms)
    now = parts.clock()
    reason = why_not_now(partition, now)
    if reason is None and not held.waiting(request.queue_id):
        _take_in_by_clock(parts, partition, connection, request_id, request, body, now_ms, now)
        return
    if reason is not None and partition.settings.when_uncertain == "refuse":
        raise PenstockError(ErrorCode.CLOCK_UNCERTAIN, reason)
    until_ms = now_ms + limits.SEND_HELD_MS
    held.add(
        HeldSend(connection, request_id, request, bytes(body), until_ms), reason or "others wait already"
    )


def _take_in_by_clock(
    parts: NodeParts,
    partition: Partition,
    connection: int,
    request_id: int,
    request: Send,
    body: Buffer,
    now_ms: int,
    now: ClockInterval | None,
) -> None:
    result = _take_in(parts, partition, request, body, now_ms, now)
    # Also for a repeated batch: no client may learn that it is stored before its stamp is past.
    stamp_us = partition.commit_wait.last_us if partition.settings.server_stamped else 0
    parts.answer(connection, request_id, result, stamp_us=stamp_us, about=request.queue_id)


def _take_in(
    parts: NodeParts,
    partition: Partition,
    request: Send,
    body: Buffer,
    now_ms: int,
    now: ClockInterval | None,
) -> SendResult:
    parts.logbook.check_room_for_send()
    parts.model.check_takes_sends(partition.partition_id)
    if request.left_out and not len(body) and not parts.model.makes_queues:
        return _remember(parts, partition, request, now_ms)
    said = NOT_STAMPED
    if request.process or request.time_us:
        said = ProducerStamps(request.process, request.counter, request.time_us, request.uncertainty_us)
    decision = sending.admit(
        partition,
        Batch(body),
        request.producer,
        request.number,
        now_ms,
        may_move=parts.may_move(partition),
        said=said,
        now=now,
        left_out=() if parts.model.makes_queues else request.left_out,
    )
    if _is_unreadable(parts, partition, decision):
        decision = Decision((), decision.reply)
    if partition.sorting is not None and decision.records and parts.model.makes_queues:
        last = decision.records[-1].record
        if isinstance(last, MoveStarted) and last.late is not None:
            late_queue_of(parts, partition, now_ms)
    before = partition.table.next
    admitted = decision.reply
    try:
        parts.carry_out(partition, decision)
        if partition.sorting is not None and not partition.settings.window_ms:
            parts.write(partition, upkeep.let_out(partition, now_ms, parts.clock))
    except PenstockError:
        if partition.table.next == before:
            raise
        # The batch is stored, so it is not refused: upkeep writes what found no room in the journal behind it.
    return SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms, admitted.stamp_us)


def _remember(parts: NodeParts, partition: Partition, request: Send, now_ms: int) -> SendResult:
    """Remembers only that a batch came, of which other partitions have all messages."""
    decision = sending.remember(partition, request.producer, request.number, now_ms, request.left_out)
    if _is_unreadable(parts, partition, decision):
        decision = Decision((), decision.reply)
    admitted = parts.carry_out(partition, decision)
    return SendResult(admitted.runs, admitted.duplicates, admitted.sent_ms, admitted.stamp_us)


def _is_unreadable(parts: NodeParts, partition: Partition, decision: Decision[Admitted]) -> bool:
    """Whether replicas of an earlier version would follow no further: then what was sent before goes unnoted, as it did for them."""
    if not decision.records:
        return False
    record = decision.records[0].record
    if not isinstance(record, DuplicatesSent):
        return False
    return not parts.model.understood(partition.partition_id, NUMBERS_SKIPPED)


# -- what waits for the clock --------------------------------------------------------------------------------


def pass_time(parts: NodeParts, connections: Collection[int], now_ms: int) -> None:
    """Accepts held sends that may continue, refuses those held for too long, answers those whose stamp has passed."""
    for partition_id in parts.held_sends.queues():
        try:
            _let_in(parts, parts.catalogue.usable(partition_id), now_ms)
        except PenstockError as error:
            end_held(parts, parts.held_sends.drop_queue(partition_id), error)
        overdue = parts.held_sends.overdue(partition_id, now_ms)
        if overdue:
            message = f"the send was held for {limits.SEND_HELD_MS} ms and the time is still too uncertain"
            end_held(parts, overdue, PenstockError(ErrorCode.CLOCK_UNCERTAIN, message))
    if parts.outbox.stamped:
        answer_past(parts, connections)


def _let_in(parts: NodeParts, partition: Partition, now_ms: int) -> None:
    """Accepts held sends, in the order of arrival, as long as the clock and the disk allow it."""
    held = parts.held_sends
    while (first := held.first(partition.partition_id)) is not None and not parts.congested():
        now = parts.clock()
        reason = why_not_now(partition, now)
        if reason is not None and partition.settings.when_uncertain == "hold":
            return
        held.take(partition.partition_id)
        try:
            if reason is not None:  # the setting was changed meanwhile
                raise PenstockError(ErrorCode.CLOCK_UNCERTAIN, reason)
            if not parts.send_order.still_follows(first.connection, first.request, partition.epochs.last):
                raise out_of_order()
            _take_in_by_clock(
                parts, partition, first.connection, first.request_id, first.request, first.body, now_ms, now
            )
        except PenstockError as error:
            end_held(parts, [first], error)


def end_held(parts: NodeParts, sends: list[HeldSend], error: PenstockError) -> None:
    """Refuses sends that were held; those that follow them must not be stored before they are sent again."""
    for held in sends:
        parts.send_order.refused(held.connection, held.request)
        parts.answer(held.connection, held.request_id, Failed(error.code, error.message))


def answer_past(parts: NodeParts, connections: Collection[int]) -> None:
    """Releases answers that are on disk and whose stamp is certainly past."""
    now = parts.clock()
    if now is not None:
        parts.outbox.passed(answerable_us(now), connections)


def next_ms(parts: NodeParts, now_ms: int) -> int | None:
    """When to read the clock again for waiting sends."""
    held_ms = now_ms + CLOCK_RETRY_MS if parts.held_sends else None
    stamp_us = parts.outbox.next_stamp_us()
    if stamp_us is None:
        return held_ms
    now = parts.clock()
    wait_ms = CLOCK_RETRY_MS if now is None else max(1, -(-wait_us(stamp_us, now) // 1_000))
    return earliest(held_ms, now_ms + wait_ms)

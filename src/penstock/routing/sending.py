"""Routes a send: to one partition, or in shares to several, and combines their answers.

Every send to a node has a producer and a number, the client's or this router's own. So it may be sent again after a lost
connection, and to another primary, without being stored twice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock.cluster.layout.entries import QueueEntry
from penstock.model import limits
from penstock.model.batch import DEDUPLICATION, Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import ELSEWHERE
from penstock.model.runs import count_of
from penstock.routing.batch_parts import (
    BatchPart,
    DuplicateOf,
    needs_splitting,
    ordinal_of_batch,
    share_out,
    together,
    without,
)
from penstock.routing.claiming import Claims, is_claimed
from penstock.routing.context import RoutingContext
from penstock.routing.numbers import outward_runs
from penstock.routing.send_turns import Turn
from penstock.steps.asking import answer_to, expected, raised
from penstock.steps.step import Ask, AskAll, Outcome, Reply, Steps
from penstock.wire.messages import Send, SendResult
from penstock.wire.send_order import out_of_order

_COLUMNS_AT = 1
"""The offset of the columns field in an encoded batch."""
_SENT_AGAIN_HERE = (ErrorCode.OUT_OF_ORDER, ErrorCode.QUEUE_NOT_FOUND)
"""Errors after which a sender repeats the batch. They say that nothing is stored, so they are not used if something may be
stored.
"""
_COUNTER_MAX = 2**64 - 1
"""The largest number that fits into a request. The node checks the real limits of counters."""


def send(context: RoutingContext, request: Send, body: Buffer) -> Steps[Reply]:
    """Stores a batch."""
    queue = context.queue(request.queue_id)
    count = len(queue.partitions)
    if count == 1:
        return (yield from _send_whole(context, queue, 0, request, body))
    if request.producer:
        elsewhere = ordinal_of_batch(request.producer, request.number, count)
    else:
        elsewhere = context.spread.for_batch(queue)
    columns = body[_COLUMNS_AT] if len(body) > _COLUMNS_AT else 0
    if not needs_splitting(queue.settings, columns):
        if request.after and context.turns.is_broken(queue.queue_id, request.producer):
            raise out_of_order()
        return (yield from _send_whole(context, queue, elsewhere, request, body))
    batch = Batch(body)
    shares = share_out(batch, queue.settings, count, elsewhere)
    if not request.producer:
        return (yield from _send_shares(context, queue, shares, request, batch, None))
    turn = context.turns.take(queue.queue_id, request.producer, follows=request.after > 0)
    try:
        return (yield from _send_shares(context, queue, shares, request, batch, turn))
    except PenstockError:
        turn.leave(failed=True)
        raise
    finally:
        turn.end()


def _send_shares(
    context: RoutingContext,
    queue: QueueEntry,
    shares: list[BatchPart],
    request: Send,
    batch: Batch,
    turn: Turn | None,
) -> Steps[Reply]:
    """Sends each partition what it gets; `turn`: after what the producer sent before."""
    has_ids = queue.settings.strict and bool(batch.columns & DEDUPLICATION)
    if len(shares) > 1 or has_ids:
        _check_sizes(queue, batch)  # before anything is stored or claimed
        _check_counters(request, batch)
    claims = Claims(queue)
    known: dict[int, int | DuplicateOf] = {}
    if has_ids:
        known = yield from _sent_elsewhere(claims, batch, shares)
        shares = without(shares, known, batch.count, numbered=request.producer > 0)
    asks = [_ask(context, queue, share, request, batch, known) for share in shares]
    outcomes: list[Outcome] = yield AskAll(asks, turn)
    if has_ids and _are_barred(outcomes):
        try:
            yield from claims.lift_bars()
        except PenstockError:
            pass  # the answer of the partitions
        else:
            if request.after:
                # It has left its place behind the send that it follows: its client sends it again behind that one.
                outcomes = [out_of_order() if isinstance(one, PenstockError) else one for one in outcomes]
            else:
                outcomes = yield from _ask_again(asks, outcomes)
    if known:
        shares, outcomes = _without_notes(shares, outcomes, batch.count)
    results = _stored(outcomes)
    if len(shares) == 1 and shares[0].places is None and _is_of_one(results[0], batch.count):
        return _outward(shares[0].ordinal, results[0])
    return Reply(together(batch.count, shares, results, known, context.now_ms()))


def _are_barred(outcomes: Sequence[Outcome]) -> bool:
    """Whether all that keeps a batch from being stored may be bars on its ids.

    Not where a share was refused because a send before it was: that one has to be stored first, and its sender sends both again.
    """
    errors = [outcome for outcome in outcomes if isinstance(outcome, PenstockError)]
    return bool(errors) and all(error.code is ErrorCode.OVERLOADED for error in errors)


def _is_of_one(result: SendResult, count: int) -> bool:
    """Whether the answer of one partition is the answer for a batch of `count` messages: all its numbers are of that partition."""
    runs = result.runs
    return count_of(runs) == count and all(first < ELSEWHERE for first, _ in runs)


def _without_notes(
    shares: Sequence[BatchPart], outcomes: Sequence[Outcome], count: int
) -> tuple[list[BatchPart], list[Outcome]]:
    """Leaves out shares without a message that their partitions cannot remember: a node of an earlier version refuses them.

    What is acknowledged of them is stored elsewhere, and was found there.
    """
    kept = [
        (share, outcome)
        for share, outcome in zip(shares, outcomes, strict=True)
        if not isinstance(outcome, PenstockError) or outcome.sent_again or share.sent(count)
    ]
    return [share for share, _ in kept], [outcome for _, outcome in kept]


def _ask_again(asks: Sequence[Ask], outcomes: Sequence[Outcome]) -> Steps[list[Outcome]]:
    """Repeats the shares that were refused. What the first attempt stored stays stored."""
    refused = [place for place, outcome in enumerate(outcomes) if isinstance(outcome, PenstockError)]
    again: list[Outcome] = yield AskAll([asks[place] for place in refused])
    merged = list(outcomes)
    for place, outcome in zip(refused, again, strict=True):
        merged[place] = outcome
    return merged


def _first_error(outcomes: Sequence[Outcome], code: ErrorCode | None = None) -> PenstockError | None:
    errors = (outcome for outcome in outcomes if isinstance(outcome, PenstockError))
    return next((error for error in errors if code is None or error.code is code), None)


def _stored(outcomes: Sequence[Outcome]) -> list[SendResult]:
    """The numbers that the partitions stored; raises if one of them stored nothing.

    A refusal says that nothing was stored. If another partition has stored its share, that is wrong. If the refusal is
    temporary, the sender learns that the outcome is unknown, and sends the batch again under its number. Shares that are
    stored are not stored twice then.
    """
    error = _first_error(outcomes)
    if error is None:
        return [expected(raised(outcome), SendResult) for outcome in outcomes]
    for outcome in outcomes:
        if isinstance(outcome, PenstockError) and outcome.code is ErrorCode.UNREACHABLE:
            raise outcome  # another share may be stored
    if all(isinstance(outcome, PenstockError) for outcome in outcomes):
        # If it follows a refused send, its client sends it again, whatever prevents another share from being stored now.
        raise _first_error(outcomes, ErrorCode.OUT_OF_ORDER) or error
    is_sent_again = error.retryable or error.code in _SENT_AGAIN_HERE
    code = ErrorCode.UNREACHABLE if is_sent_again else error.code
    raise PenstockError(code, f"a part of the batch is stored, and another part was refused: {error.message}")


def _sent_elsewhere(
    claims: Claims, batch: Batch, shares: Sequence[BatchPart]
) -> Steps[dict[int, int | DuplicateOf]]:
    """By position in the batch: messages whose ids were sent to other partitions, or are earlier in the batch for another one."""
    names = batch.names(DEDUPLICATION) or ()
    ordinals = [0] * batch.count
    for share in shares:
        for place in share.places if share.places is not None else range(batch.count):
            ordinals[place] = share.ordinal
    firsts: dict[bytes, int] = {}
    twins: dict[int, int | DuplicateOf] = {}
    for place, name in enumerate(names):
        if is_claimed(name) and ordinals[firsts.setdefault(name, place)] != ordinals[place]:
            twins[place] = DuplicateOf(firsts[name])
    if not firsts:
        return {}
    found = yield from claims.claim({name: ordinals[place] for name, place in firsts.items()})
    return {
        place: twins[place] if place in twins else found[name]
        for place, name in enumerate(names)
        if name in found or place in twins
    }


def _send_whole(
    context: RoutingContext, queue: QueueEntry, ordinal: int, request: Send, body: Buffer
) -> Steps[Reply]:
    partition = queue.partitions[ordinal]
    result, _ = yield from answer_to(Ask(_numbered(context, partition, request), body, partition), SendResult)
    if len(queue.partitions) > 1:
        context.spread.filled(partition)
    return _outward(ordinal, result)


def _outward(ordinal: int, result: SendResult) -> Reply:
    """The answer of one partition for a whole batch."""
    if not ordinal:
        return Reply(result)
    return Reply(msgspec.structs.replace(result, runs=outward_runs(ordinal, result.runs)))


def _ask(
    context: RoutingContext,
    queue: QueueEntry,
    share: BatchPart,
    request: Send,
    batch: Batch,
    known: Mapping[int, int | DuplicateOf],
) -> Ask:
    partition = queue.partitions[share.ordinal]
    numbered = _numbered(context, partition, request)
    if share.places is None and not share.known:
        context.spread.filled(partition)
        return Ask(numbered, batch.data, partition)
    sent = share.sent(batch.count)
    if share.known:
        numbered = msgspec.structs.replace(numbered, left_out=share.left_out(batch.count, known))
    if not sent:
        return Ask(numbered, b"", partition)
    context.spread.filled(partition)
    if request.process:
        numbered = msgspec.structs.replace(numbered, counter=request.counter + sent[0])
    return Ask(numbered, batch.select(sent).data, partition)


def _numbered(context: RoutingContext, partition: int, request: Send) -> Send:
    if request.producer:
        return msgspec.structs.replace(request, queue_id=partition, left_out=[])
    return msgspec.structs.replace(
        request,
        queue_id=partition,
        producer=context.producer,
        number=context.next_number(partition),
        left_out=[],
    )


def _check_counters(request: Send, batch: Batch) -> None:
    """Each share gets the counter of its first message, which has to fit into a request."""
    if request.counter + batch.count > _COUNTER_MAX:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"bad stamps: {batch.count} messages with counters from {request.counter}, at most {_COUNTER_MAX}",
        )


def _check_sizes(queue: QueueEntry, batch: Batch) -> None:
    """A batch that one message spoils is refused whole, before a part of it is stored."""
    if len(batch.data) > limits.BATCH_BYTES:
        raise PenstockError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a batch of {len(batch.data)} bytes is over the limit of {limits.BATCH_BYTES}",
        )
    batch.check()
    largest = max(batch.message_sizes())
    if largest > queue.settings.max_message_bytes:
        raise PenstockError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a message of {largest} bytes is over the {queue.settings.max_message_bytes} that queue "
            f"{queue.name!r} accepts (max_message_bytes)",
        )

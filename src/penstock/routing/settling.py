"""Routes a delete, release or extend: each receipt to the partition that issued it.

Messages count as gone only if their queue is known to be deleted. If the map does not know a queue, the store is asked,
because another front end may have just created it.
"""

from __future__ import annotations

import msgspec

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import count_of
from penstock.routing import outward_answers
from penstock.routing.context import RoutingContext, partition_of
from penstock.routing.numbers import inward_runs, node_token, queue_of_token
from penstock.routing.unheard import look_for
from penstock.steps.asking import ask_all
from penstock.steps.step import Ask, Reply, Steps
from penstock.wire.messages import Delete, Extend, Receipt, ReceiptOutcome, Release, Settled

_NOTHING = ReceiptOutcome(0, 0, [])


def settle(context: RoutingContext, request: Delete | Release | Extend) -> Steps[Reply]:
    """One outcome for each receipt, in order; receipts of a deleted queue count as gone."""
    outcomes: list[ReceiptOutcome] = [_NOTHING] * len(request.receipts)
    shares: dict[int, list[Receipt]] = {}
    places: dict[int, list[tuple[int, int]]] = {}
    """By partition: the place of each of its receipts in the request, and the partition's ordinal."""
    for receipt in request.receipts:
        _check(receipt)
    for place, receipt in enumerate(request.receipts):
        queue_id = queue_of_token(receipt.token)
        if not context.map.has_heard_of(queue_id):
            yield from _look_for(context, queue_id)
        queue = context.map.incarnation(queue_id)
        if queue is None:
            outcomes[place] = ReceiptOutcome(0, count_of(receipt.runs), [])
            continue
        for ordinal, runs in (inward_runs(receipt.runs) or {0: []}).items():
            partition = partition_of(queue, ordinal)
            token = node_token(partition, receipt.token)
            shares.setdefault(partition, []).append(Receipt(token, runs, receipt.received))
            places.setdefault(partition, []).append((place, ordinal))
    asks = [
        Ask(msgspec.structs.replace(request, receipts=receipts), partition=partition)
        for partition, receipts in shares.items()
    ]
    for settled, where in zip((yield from ask_all(asks, Settled)), places.values(), strict=True):
        for given, (place, ordinal) in zip(settled.outcomes, where, strict=True):
            outcomes[place] = _joined(outcomes[place], outward_answers.outcome(given, ordinal))
    return Reply(Settled(outcomes))


def _check(receipt: Receipt) -> None:
    """Checks the counts like a node, which is not asked about a deleted queue: the answer and the usage row are sums of these
    counts.
    """
    if any(first < 0 or count < 1 for first, count in receipt.runs) or (
        count_of(receipt.runs) > limits.RECEIVE_MESSAGES
    ):
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"a receipt names 1 to {limits.RECEIVE_MESSAGES} messages by (first, count)",
        )


def _look_for(context: RoutingContext, queue_id: int) -> Steps[None]:
    """Returns where a queue is gone; raises an error that can be retried where it is there, or the store cannot say.

    What may be done to a queue was not asked before it was known. So the request has to come again, now that it is.
    """
    yield from look_for(context, queue_id)
    queue = context.map.incarnation(queue_id)
    if queue is not None:
        raise PenstockError(
            ErrorCode.METADATA_UNAVAILABLE,
            f"this front end has just received queue {queue.name!r}; try again",
        )


def _joined(one: ReceiptOutcome, other: ReceiptOutcome) -> ReceiptOutcome:
    if one is _NOTHING:
        return other
    return ReceiptOutcome(one.done + other.done, one.gone + other.gone, [*one.stale, *other.stale])

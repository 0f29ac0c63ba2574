"""Routing a delete, release or extend: each receipt to the partition that gave it out."""

from __future__ import annotations

from functools import partial

import msgspec

from penstock.model.runs import count_of
from penstock.routing import outward_answers
from penstock.routing.context import RoutingContext, partition_of
from penstock.routing.numbers import inward_runs, node_token, queue_of_token
from penstock.routing.steps import Ask, Reply, Steps, Until, ask_all
from penstock.wire.messages import Delete, Extend, Receipt, ReceiptOutcome, Release, Settled

NEWS_MS = 500
"""How long news of a queue may take from the store to here."""
_NOTHING = ReceiptOutcome(0, 0, [])


def settle(context: RoutingContext, request: Delete | Release | Extend) -> Steps[Reply]:
    """One outcome per receipt, in order; what is about a queue that is no more counts as gone."""
    outcomes: list[ReceiptOutcome] = [_NOTHING] * len(request.receipts)
    shares: dict[int, list[Receipt]] = {}
    places: dict[int, list[tuple[int, int]]] = {}
    """By partition: the place of each of its receipts in the request, and the partition's ordinal."""
    for place, receipt in enumerate(request.receipts):
        queue_id = queue_of_token(receipt.token)
        if not context.map.has_heard_of(queue_id):  # made just now through another front end, perhaps
            yield Until(partial(context.map.has_heard_of, queue_id), NEWS_MS)
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
        Ask(partition, msgspec.structs.replace(request, receipts=receipts))
        for partition, receipts in shares.items()
    ]
    for settled, where in zip((yield from ask_all(asks, Settled)), places.values(), strict=True):
        for given, (place, ordinal) in zip(settled.outcomes, where, strict=True):
            outcomes[place] = _joined(outcomes[place], outward_answers.outcome(given, ordinal))
    return Reply(Settled(outcomes))


def _joined(one: ReceiptOutcome, other: ReceiptOutcome) -> ReceiptOutcome:
    if one is _NOTHING:
        return other
    return ReceiptOutcome(one.done + other.done, one.gone + other.gone, [*one.stale, *other.stale])

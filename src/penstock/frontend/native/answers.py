"""The result and the number of messages of an answer of the native protocol, for usage records."""

from __future__ import annotations

from penstock.model.errors import ERRORS, ErrorCode
from penstock.model.runs import Runs
from penstock.wire import messages
from penstock.wire.answers import DeliveredBatch
from penstock.wire.log_messages import LoggedBatch

OK_STATUS = 200
_STATUSES = {
    ErrorCode.UNAUTHENTICATED: 403,
    ErrorCode.ACCESS_DENIED: 403,
    ErrorCode.THROTTLED: 403,  # as SQS answers it
    ErrorCode.INTERNAL: 500,
}


def status_of(code: str) -> int:
    """The corresponding HTTP status, so that rows of both protocols can be compared."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return 500
    return _STATUSES.get(known, 503 if ERRORS[known].retryable else 400)


def messages_in(answer: messages.Answer) -> int:
    """How many messages a request that succeeded sent, received, deleted or changed."""
    match answer:
        case messages.SendResult():
            return _count_of_runs(answer.runs)
        case messages.Delivery() | messages.Peeked():
            return _count_of_batches(answer.batches)
        case messages.Settled():
            outcomes = answer.outcomes
            if len(outcomes) == 1:
                return outcomes[0].done + outcomes[0].gone
            return sum(outcome.done + outcome.gone for outcome in outcomes)
        case messages.LogSlice():
            return _count_of_batches(answer.batches)
        case messages.GroupDelivery():
            return sum(_count_of_batches(delivery.batches) for delivery in answer.deliveries)
        case messages.Count() | messages.Redriven():
            return answer.messages
        case _:
            return 0


def _count_of_runs(runs: Runs) -> int:
    if len(runs) == 1:
        return runs[0][1]
    return sum(count for _, count in runs)


def _count_of_batches(batches: list[DeliveredBatch] | list[LoggedBatch]) -> int:
    if len(batches) == 1:
        return batches[0].count
    return sum(batch.count for batch in batches)

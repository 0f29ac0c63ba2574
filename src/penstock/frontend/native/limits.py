"""Limits of users and queues (`penstock limit`) for requests of the native protocol, counted as for SQS.

A message that is sent, deleted, released or extended costs one, like an entry of an SQS batch. A receive costs one for
every ten requested messages, because a receive of SQS returns ten at most. Everything else costs one.
"""

from __future__ import annotations

from penstock.frontend.native.permissions import QueueNames, queue_ids_of
from penstock.frontend.native.rules import About, Rule
from penstock.frontend.throttle.throttle import Refusal, Throttle
from penstock.model.batch import HEADER_BYTES, count_of
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import BATCH_MESSAGES
from penstock.wire import messages
from penstock.wire.frames import Frame

MESSAGES_A_RECEIVE = 10
"""So many one request of SQS receives at most."""


class NativeLimits:
    """Asks the throttle, which both protocols share."""

    def __init__(self, throttle: Throttle, names: QueueNames) -> None:
        self._throttle = throttle
        self._names = names

    def check(self, user: str, rule: Rule, request: messages.Request, frame: Frame, now_ms: int) -> None:
        """Raises `throttled` where a limit is used up."""
        if self._throttle.is_idle:
            return
        refusal = self._throttle.refuses(user, self._queues_of(rule, request), _cost(request, frame), now_ms)
        if refusal is not None:
            raise PenstockError(ErrorCode.THROTTLED, _sentence(refusal))

    def charge_credit(self, user: str, queue_id: int, credit: int, now_ms: int) -> None:
        """Charges for the credit of a subscription. It has no answer, so it cannot be refused; the debt counts against the
        user's next requests.
        """
        if not self._throttle.is_idle:
            self._throttle.charge(user, self._names_of({queue_id}), _receives(credit), now_ms)

    def _queues_of(self, rule: Rule, request: messages.Request) -> list[str]:
        if rule.about is About.NAME:
            name: str = request.name  # type: ignore[union-attr]  # as in `Permissions.check`
            return [name] if self._names.id_of(name) is not None else []
        return self._names_of(queue_ids_of(rule, request))

    def _names_of(self, queue_ids: set[int]) -> list[str]:
        return [name for queue_id in queue_ids if (name := self._names.name_of(queue_id)) is not None]


def _cost(request: messages.Request, frame: Frame) -> int:
    """Never more than the largest batch, whatever a client claims, because a debt to a queue's limit affects others too."""
    match request:
        case messages.Send():
            count = count_of(frame.body) if len(frame.body) >= HEADER_BYTES else 1
        case messages.Delete() | messages.Release() | messages.Extend():
            count = sum(run[1] for receipt in request.receipts for run in receipt.runs)
        case messages.Receive() | messages.ReceiveAny():
            count = _receives(request.max_messages)
        case messages.Subscribe():
            count = _receives(request.credit)
        case _:
            count = 1
    return max(1, min(count, BATCH_MESSAGES))


def _receives(count: int) -> int:
    return max(1, min(-(-count // MESSAGES_A_RECEIVE), BATCH_MESSAGES // MESSAGES_A_RECEIVE))


def _sentence(refusal: Refusal) -> str:
    (kind, name), limit = refusal
    return (
        f"{kind} {name!r} is limited to {limit.rate:g} requests a second, {limit.burst} at once (`penstock limit`); "
        "try again in a moment"
    )

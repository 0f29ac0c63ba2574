"""What the answer of a node means for one request to a partition: the final answer, or a reason to ask again.

The answer of a node that no longer leads is not certain: the request may have been carried out and be part of what the
next primary has. So it counts as no answer, as if the connection was lost. Only requests that may be repeated are sent
again, and their next answer is combined with the possible effects of the first attempt.
"""

from __future__ import annotations

import msgspec

from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import count_of
from penstock.steps.step import Outcome, Reply
from penstock.wire.messages import (
    ClaimIds,
    CommitOffset,
    Delete,
    DeleteGroup,
    Extend,
    JoinGroup,
    LeaveGroup,
    Purge,
    ReadLog,
    ReceiptOutcome,
    Receive,
    ReceiveAny,
    Redrive,
    Release,
    Request,
    SeekGroup,
    Send,
    Settled,
)

MISSED_AT_MOST = 3
NOT_TWICE = (Purge, Redrive)
"""Requests that are not repeated when their outcome is unknown."""
WAITING = (Receive, ReceiveAny, ReadLog)
"""Requests that wait at the node, and are cancelled when their answer is not needed."""
_NOT_TAKEN = (ErrorCode.NOT_PRIMARY, ErrorCode.SHUTTING_DOWN, ErrorCode.NOT_ENOUGH_REPLICAS)
"""Nothing was done. A replica that was briefly away is soon back, so these errors are also worth another attempt."""
_SETTLING = (Delete, Release, Extend)
_REMEMBERED = (CommitOffset, SeekGroup, JoinGroup, LeaveGroup, DeleteGroup, ClaimIds)
"""Requests with effects other than messages."""
_NEVER_DONE = (
    *(ErrorCode.UNREACHABLE, ErrorCode.BAD_RECEIPT, ErrorCode.UNKNOWN_REQUEST),
    ErrorCode.QUEUE_NOT_FOUND,
)
"""Errors that the first attempt would have got as well; and of a queue that no longer exists, nothing that was done remains."""

_TELLS_NOTHING = (ErrorCode.BAD_REQUEST,)
"""The answer about a batch that is older than the remembered ones: it is unknown whether it was stored. A front end
may have more sends under way than that."""


class Attempts:
    """How often one request was sent, and what is known about it."""

    __slots__ = ("missed", "uncertain")

    def __init__(self) -> None:
        self.missed = 0
        """How often a node did not know the partition."""
        self.uncertain = False
        """Whether a node may have done what was asked without saying so."""

    def asks_again(self, request: Request, error: PenstockError, *, others_have_it: bool) -> bool:
        """Whether this counts as no answer, and the present or next leader must be asked."""
        code = error.code
        if code in _NOT_TAKEN:
            return True
        if code is ErrorCode.UNREACHABLE:
            if isinstance(request, NOT_TWICE):
                return False
            self.uncertain = True
            return True
        if code is ErrorCode.QUEUE_NOT_FOUND:
            self.missed += 1
            return self.missed <= MISSED_AT_MOST
        # Data that is damaged on one node is undamaged on another, which leads next.
        return code is ErrorCode.QUEUE_DAMAGED and others_have_it

    def is_known(self, request: Request, outcome: Outcome) -> bool:
        """Whether an answer is the outcome of the request; after a lost attempt it may only be the outcome of the last one.

        A refusal says that nothing was done, but an earlier attempt may have done it. If receipts are settled twice, the
        second answer only says what the first left of them.
        """
        if not self.uncertain:
            return True
        if isinstance(request, _SETTLING):
            return False
        if not isinstance(outcome, PenstockError):
            return True
        if isinstance(request, Send):  # a queue that is gone, or damaged, by now may have stored it before
            return not (outcome.retryable or outcome.sent_again or outcome.code in _TELLS_NOTHING)
        return not isinstance(request, _REMEMBERED)

    def certain(self, request: Request, outcome: Outcome) -> Outcome:
        """The answer for the client: nothing that an earlier attempt may have made untrue."""
        if self.is_known(request, outcome):
            return outcome
        if not isinstance(outcome, PenstockError):
            return _given_back(outcome) if isinstance(request, Release) else outcome
        if isinstance(request, Send) and outcome.code is ErrorCode.QUEUE_NOT_FOUND:
            return unknown(outcome)  # a consumer may have received the messages before the queue was deleted
        return outcome if outcome.code in _NEVER_DONE else unknown(outcome)


def unknown(refusal: PenstockError) -> PenstockError:
    """A refusal after an attempt with an unknown outcome."""
    return PenstockError(
        ErrorCode.UNREACHABLE,
        f"the first attempt may or may not have been carried out, and the second one was refused: {refusal.message}",
    )


def _given_back(reply: Reply) -> Reply:
    """A repeated release finds that the lease has ended, perhaps by itself. Either way no consumer holds the messages."""
    settled = reply.answer
    if not isinstance(settled, Settled):
        return reply
    outcomes = [
        ReceiptOutcome(outcome.done + count_of(outcome.stale), outcome.gone, [])
        for outcome in settled.outcomes
    ]
    return reply._replace(answer=Settled(outcomes))


def shortened(request: Request, left_ms: int) -> Request:
    """The same request again: all attempts together wait for messages as long as it asked for."""
    if not isinstance(request, WAITING) or not request.wait_ms:
        return request
    return msgspec.structs.replace(request, wait_ms=max(0, left_ms))

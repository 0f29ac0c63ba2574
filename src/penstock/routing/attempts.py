"""What the answer of a node means for one question to a partition: told to whoever asked, or no answer yet.

What a node says that leads no more means nothing certain: the request may have been carried out and be part of what the next
primary has. So it is no answer, as when the connection was lost; only what may be asked twice is asked again, and what is said
then is weighed with what the first attempt may have done.
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
"""What is not asked again when nobody knows whether it was done."""
WAITING = (Receive, ReceiveAny, ReadLog)
"""What waits at the node, and need not any longer when nobody wants it."""
_NOT_TAKEN = (ErrorCode.NOT_PRIMARY, ErrorCode.SHUTTING_DOWN, ErrorCode.NOT_ENOUGH_REPLICAS)
"""Nothing of it was done. A replica that was away for a moment is soon back, so that too is worth another attempt."""
_SETTLING = (Delete, Release, Extend)
_REMEMBERED = (CommitOffset, SeekGroup, JoinGroup, LeaveGroup, DeleteGroup, ClaimIds)
"""What leaves something behind beside messages."""
_NEVER_DONE = (
    *(ErrorCode.UNREACHABLE, ErrorCode.BAD_RECEIPT, ErrorCode.UNKNOWN_REQUEST),
    ErrorCode.QUEUE_NOT_FOUND,
)
"""What the first attempt was told as well, and of a queue that is no more nothing is left of what was done to it."""

_TELLS_NOTHING = (ErrorCode.BAD_REQUEST,)
"""What is said of a batch that is older than those that are remembered: nobody can tell any more whether it was stored. A front end
may have more sends under way than that."""


class Attempts:
    """How often one question was asked, and what is known of that."""

    __slots__ = ("missed", "uncertain")

    def __init__(self) -> None:
        self.missed = 0
        """How often a node did not know the partition."""
        self.uncertain = False
        """Whether a node may have done what was asked without saying so."""

    def asks_again(self, request: Request, error: PenstockError, *, others_have_it: bool) -> bool:
        """Whether this is no answer, and whoever leads now, or next, is to be asked."""
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
        # What is damaged on one node is whole on another, which leads next.
        return code is ErrorCode.QUEUE_DAMAGED and others_have_it

    def is_known(self, request: Request, outcome: Outcome) -> bool:
        """Whether an answer says what became of the request; where an attempt before it was lost it may speak of itself alone.

        A refusal says that nothing was done, which an earlier attempt may have been. Receipts that are settled twice say
        of the second time what the first has left of them.
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
        """What may be told to whoever asked: nothing that an earlier attempt may have made untrue."""
        if self.is_known(request, outcome):
            return outcome
        if not isinstance(outcome, PenstockError):
            return _given_back(outcome) if isinstance(request, Release) else outcome
        if isinstance(request, Send) and outcome.code is ErrorCode.QUEUE_NOT_FOUND:
            return unknown(outcome)  # somebody may have received what was stored before the queue was deleted
        return outcome if outcome.code in _NEVER_DONE else unknown(outcome)


def unknown(refusal: PenstockError) -> PenstockError:
    """A refusal after an attempt of which nobody knows what became."""
    return PenstockError(
        ErrorCode.UNREACHABLE,
        f"the first attempt may or may not have been carried out, and the second one was refused: {refusal.message}",
    )


def _given_back(reply: Reply) -> Reply:
    """A release that is asked again finds that the lease has ended, perhaps by itself. Either way nobody holds the messages."""
    settled = reply.answer
    if not isinstance(settled, Settled):
        return reply
    outcomes = [
        ReceiptOutcome(outcome.done + count_of(outcome.stale), outcome.gone, [])
        for outcome in settled.outcomes
    ]
    return reply._replace(answer=Settled(outcomes))


def shortened(request: Request, left_ms: int) -> Request:
    """The same once more: what waits for messages waits in all as long as it was to."""
    if not isinstance(request, WAITING) or not request.wait_ms:
        return request
    return msgspec.structs.replace(request, wait_ms=max(0, left_ms))

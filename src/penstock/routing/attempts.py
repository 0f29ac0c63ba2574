"""What the answer of a node means for one question to a partition: told to whoever asked, or no answer yet.

What a node says that leads no more means nothing certain: the request may have been carried out and be part of what the next
primary has. So it is no answer, as when the connection was lost; only what may be asked twice is asked again.
"""

from __future__ import annotations

import msgspec

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.steps import Outcome
from penstock.wire.messages import Purge, ReadLog, Receive, ReceiveAny, Redrive, Request, Send

MISSED_AT_MOST = 3
NOT_TWICE = (Purge, Redrive)
"""What is not asked again when nobody knows whether it was done."""
WAITING = (Receive, ReceiveAny, ReadLog)
"""What waits at the node, and need not any longer when nobody wants it."""
_NOT_TAKEN = (ErrorCode.NOT_PRIMARY, ErrorCode.SHUTTING_DOWN, ErrorCode.NOT_ENOUGH_REPLICAS)
"""Nothing of it was done. A replica that was away for a moment is soon back, so that too is worth another attempt."""


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

    def certain(self, request: Request, outcome: Outcome) -> Outcome:
        """What may be told: a refusal says that nothing was stored, which an earlier attempt may have been."""
        if not self.uncertain or not isinstance(request, Send) or not isinstance(outcome, PenstockError):
            return outcome
        if not outcome.retryable or outcome.code is ErrorCode.UNREACHABLE:
            return outcome
        return PenstockError(
            ErrorCode.UNREACHABLE,
            f"the first attempt may have been stored or not, and the next one was not: {outcome.message}",
        )


def shortened(request: Request, left_ms: int) -> Request:
    """The same once more: what waits for messages waits in all as long as it was to."""
    if not isinstance(request, WAITING) or not request.wait_ms:
        return request
    return msgspec.structs.replace(request, wait_ms=max(0, left_ms))

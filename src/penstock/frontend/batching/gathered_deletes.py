"""Deletes of one queue that arrive in one turn, sent as one request to the engine.

If it fails for any reason, each delete is sent alone: no request is refused for the receipt of another, or for a partition
that has only another's message. Messages that were deleted by then are gone, which is no error of a delete.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from penstock.frontend.engine import Answered, EngineLink
from penstock.frontend.telling import tell
from penstock.model.errors import ErrorCode, PenstockError
from penstock.steps.asking import wrong_answer
from penstock.steps.step import Reply
from penstock.wire.messages import Delete, Receipt, ReceiptOutcome, Settled

RECEIPTS = 1_000
"""So many go at once; more begin the next request."""
_NO_BODY = memoryview(b"")


_Request = tuple[Sequence[Receipt], Answered]
"""Its receipts, and the callback. A plain tuple, because one is made for every request."""


class GatheredDeletes:
    """The deletes of this turn, by queue."""

    def __init__(self, engine: EngineLink, later: Callable[[Callable[[], None]], object]) -> None:
        self._engine = engine
        self._later = later
        """Calls something once everything that has arrived by now is handled."""
        self._waiting: dict[int, list[_Request]] = {}
        self._receipts = 0

    def delete(self, queue_id: int, receipts: Sequence[Receipt], done: Answered) -> None:
        """Deletes with others; `done` gets the outcomes of these receipts alone, or why there are none."""
        waiting = self._waiting
        is_first = not waiting
        waiting.setdefault(queue_id, []).append((receipts, done))
        self._receipts += len(receipts)
        if self._receipts >= RECEIPTS:
            self._ask_all()
        elif is_first:
            self._later(self._ask_all)

    def _ask_all(self) -> None:
        waiting, self._waiting = self._waiting, {}
        self._receipts = 0
        for requests in waiting.values():
            self._ask(requests)

    def _ask(self, requests: Sequence[_Request]) -> None:
        receipts = [receipt for some, _ in requests for receipt in some]
        self._engine.ask(Delete(receipts), b"", partial(self._answered, requests), len(requests))

    def _answered(self, requests: Sequence[_Request], outcome: Reply | PenstockError) -> None:
        if isinstance(outcome, PenstockError):
            if len(requests) == 1:
                tell(requests[0][1], outcome)
                return
            for request in requests:
                self._ask([request])
            return
        answer = outcome.answer
        if not isinstance(answer, Settled):
            for _, done in requests:
                tell(done, wrong_answer(answer, Settled))
            return
        outcomes: Sequence[ReceiptOutcome] = answer.outcomes
        asked = sum([len(receipts) for receipts, _ in requests])
        if len(outcomes) != asked:  # then the answers cannot be assigned
            found = f"the engine gave {len(outcomes)} outcomes for {asked} receipts"
            for _, done in requests:
                tell(done, PenstockError(ErrorCode.INTERNAL, found))
            return
        start = 0
        for receipts, done in requests:
            end = start + len(receipts)
            tell(done, Reply(Settled(list(outcomes[start:end])), _NO_BODY))
            start = end

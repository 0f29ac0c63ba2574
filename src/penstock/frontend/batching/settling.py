"""Settles several receipts with one native request; deletes of one delivery become runs of one receipt."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from penstock.frontend.messages.receipt_handle import ReceiptHandle
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import runs_of
from penstock.sqs.errors import SqsError
from penstock.sqs.refusals import bad_receipt_handle
from penstock.steps.step import Ask, DeleteTogether, Reply, Steps
from penstock.wire.messages import Receipt, Settled

Settlement = Ask | DeleteTogether
MakeStep = Callable[[list[Receipt]], Settlement]
"""The request for receipts; its outcome is `Settled`."""


class Outcome(NamedTuple):
    """The outcome of one receipt."""

    done: bool = True
    gone: bool = False
    """The message was not there any more."""
    stale: bool = False
    """The message is there, but no longer under this receipt."""
    error: SqsError | None = None


_DONE = Outcome()
_GONE = Outcome(done=False, gone=True)
_STALE = Outcome(done=False, stale=True)


class Settling:
    """Receipt handles of one request that are settled in the same way."""

    def __init__(self, *, after_lease: bool = False, together: bool = False) -> None:
        self._after_lease = after_lease
        self._together = together
        """Whether those of one delivery may share a receipt: the engine then counts the gone, and names them not."""
        self._handles: dict[str, ReceiptHandle] = {}

    def add(self, text: str, handle: ReceiptHandle) -> None:
        """One more; the same one twice counts once."""
        self._handles[text] = handle

    def settle(self, make: MakeStep) -> Steps[dict[str, Outcome]]:
        """Asks the engine; the outcome of each handle by its text."""
        try:
            return (yield from self._ask(make, self._handles))
        except PenstockError as error:
            if error.code is not ErrorCode.BAD_RECEIPT:
                raise
        # One forged receipt fails the whole native request, and must fail only itself.
        outcomes: dict[str, Outcome] = {}
        for text, handle in self._handles.items():
            try:
                outcomes |= yield from self._ask(make, {text: handle})
            except PenstockError as error:
                if error.code is not ErrorCode.BAD_RECEIPT:
                    raise
                outcomes[text] = Outcome(done=False, error=bad_receipt_handle(text))
        return outcomes

    def _ask(self, make: MakeStep, handles: dict[str, ReceiptHandle]) -> Steps[dict[str, Outcome]]:
        if not handles:
            return {}
        by_receipt: dict[tuple[bytes, int, int], dict[int, str]] = {}
        for text, (token, sequence, received) in handles.items():
            place = 0 if self._together else sequence
            by_receipt.setdefault((token, received, place), {})[sequence] = text
        receipts = [
            Receipt(token, runs_of(sorted(texts)), received if self._after_lease else None)
            for (token, received, _), texts in by_receipt.items()
        ]
        reply: Reply = yield make(receipts)
        settled = cast(Settled, reply.answer)
        outcomes: dict[str, Outcome] = {}
        for texts, outcome in zip(by_receipt.values(), settled.outcomes, strict=True):
            if outcome.done == len(texts):
                outcomes.update(dict.fromkeys(texts.values(), _DONE))
                continue
            stale = {n for first, count in outcome.stale for n in range(first, first + count)}
            rest = _DONE if outcome.done else _GONE
            for sequence, text in texts.items():
                outcomes[text] = _STALE if sequence in stale else rest
        return outcomes

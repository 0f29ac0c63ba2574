"""Deletes of one turn: together when they can be, alone when they must be, each with its own outcomes."""

from __future__ import annotations

from collections.abc import Callable

from penstock.frontend.batching.gathered_deletes import RECEIPTS, GatheredDeletes
from penstock.frontend.engine import Answered
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.steps.step import Reply
from penstock.wire.messages import Delete, Receipt, ReceiptOutcome, Request, Settled

Outcome = Reply | PenstockError


class Engine:
    """Remembers what it is asked, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[list[Receipt], Answered, int]] = []
        self.later: list[Callable[[], None]] = []

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        assert isinstance(request, Delete)
        self.asked.append((request.receipts, done, stands_for))
        return len(self.asked)

    def cancel(self, ticket: int) -> None:
        raise AssertionError("nothing here waits")

    def end_turn(self) -> None:
        later, self.later = self.later, []
        for call in later:
            call()

    def settle(self) -> None:
        """Answers everything that was asked: as many are done as the receipt's first message says."""
        asked, self.asked = self.asked, []
        for receipts, done, _ in asked:
            outcomes = [ReceiptOutcome(receipt.runs[0][0], 0, []) for receipt in receipts]
            done(Reply(Settled(outcomes), memoryview(b"")))

    def fail(self, code: ErrorCode) -> None:
        asked, self.asked = self.asked, []
        for _, done, _ in asked:
            done(PenstockError(code, "no"))


def gathered() -> tuple[Engine, GatheredDeletes]:
    engine = Engine()
    return engine, GatheredDeletes(engine, lambda call: engine.later.append(call))


def receipts(*numbers: int) -> list[Receipt]:
    return [Receipt(b"token", [(number, 1)]) for number in numbers]


def done_in(outcomes: list[Outcome]) -> list[list[int]]:
    """How many each receipt of each request has deleted."""
    found = []
    for outcome in outcomes:
        assert isinstance(outcome, Reply)
        assert isinstance(outcome.answer, Settled)
        found.append([receipt.done for receipt in outcome.answer.outcomes])
    return found


def test_deletes_of_one_turn_travel_together_and_are_answered_apart() -> None:
    engine, deletes = gathered()
    outcomes: list[Outcome] = []
    for numbers in ((1,), (2, 3), (4,)):
        deletes.delete(7, receipts(*numbers), outcomes.append)
    assert engine.asked == []
    engine.end_turn()
    ((asked, _, stands_for),) = engine.asked
    assert (asked, stands_for) == (receipts(1, 2, 3, 4), 3)
    engine.settle()
    assert done_in(outcomes) == [[1], [2, 3], [4]]


def test_queues_do_not_mix_and_turns_do_not_either() -> None:
    engine, deletes = gathered()
    outcomes: list[Outcome] = []
    deletes.delete(1, receipts(1), outcomes.append)
    deletes.delete(2, receipts(2), outcomes.append)
    engine.end_turn()
    deletes.delete(1, receipts(3), outcomes.append)
    engine.end_turn()
    assert [asked for asked, _, _ in engine.asked] == [receipts(1), receipts(2), receipts(3)]


def test_nobody_is_refused_for_the_receipt_or_the_partition_of_another() -> None:
    for code in (ErrorCode.BAD_RECEIPT, ErrorCode.UNREACHABLE):
        engine, deletes = gathered()
        outcomes: list[Outcome] = []
        for numbers in ((1,), (2, 3)):
            deletes.delete(1, receipts(*numbers), outcomes.append)
        engine.end_turn()
        engine.fail(code)
        assert outcomes == []
        assert [asked for asked, _, _ in engine.asked] == [receipts(1), receipts(2, 3)]
        other = engine.asked.pop()
        engine.settle()
        other[1](PenstockError(code, "no"))
        assert done_in(outcomes[:1]) == [[1]]
        assert isinstance(outcomes[1], PenstockError)
        assert engine.asked == []


def test_a_request_has_bounds() -> None:
    engine, deletes = gathered()
    for number in range(RECEIPTS + 1):
        deletes.delete(1, receipts(number), lambda outcome: None)
    assert [len(asked) for asked, _, _ in engine.asked] == [RECEIPTS]
    engine.end_turn()
    assert [len(asked) for asked, _, _ in engine.asked] == [RECEIPTS, 1]


def test_one_who_cannot_take_the_answer_does_not_stop_the_others() -> None:
    engine, deletes = gathered()
    outcomes: list[Outcome] = []

    def broken(outcome: Outcome) -> None:
        raise RuntimeError("no use for it")

    deletes.delete(1, receipts(1), broken)
    deletes.delete(1, receipts(2), outcomes.append)
    engine.end_turn()
    engine.settle()
    assert done_in(outcomes) == [[2]]


def test_everybody_is_told_of_an_answer_with_too_few_outcomes() -> None:
    engine, deletes = gathered()
    outcomes: list[Outcome] = []
    for number in (1, 2):
        deletes.delete(1, receipts(number), outcomes.append)
    engine.end_turn()
    ((_, done, _),) = engine.asked
    done(Reply(Settled([ReceiptOutcome(1, 0, [])]), memoryview(b"")))
    assert [isinstance(found, PenstockError) and found.code for found in outcomes] == [ErrorCode.INTERNAL] * 2

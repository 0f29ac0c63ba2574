"""Sends of one turn: together when they can be, alone when they must be, each with its own answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from penstock.frontend.batching.gathered_sends import MESSAGES, GatheredSends
from penstock.frontend.engine import Answered
from penstock.model.batch import Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import Runs
from penstock.steps.step import Reply
from penstock.wire.messages import Request, Send, SendResult
from tests.frontend.pipeline import logged


class Engine:
    """Remembers what it is asked, and answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Batch, Answered, int]] = []
        self.later: list[Callable[[], None]] = []
        self.next = 1

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        assert isinstance(request, Send)
        self.asked.append((request.queue_id, Batch(body), done, stands_for))
        return len(self.asked)

    def cancel(self, ticket: int) -> None:
        raise AssertionError("nothing here waits")

    def end_turn(self) -> None:
        later, self.later = self.later, []
        for call in later:
            call()

    def store(self) -> None:
        """Answers everything that was asked with sequence numbers."""
        asked, self.asked = self.asked, []
        for _, batch, done, _ in asked:
            first, self.next = self.next, self.next + batch.count
            done(Reply(SendResult([(first, batch.count)], [], 0), memoryview(b"")))

    def answer(self, runs: Runs) -> None:
        """Answers what was asked with these numbers, whatever it was."""
        asked, self.asked = self.asked, []
        for _, _, done, _ in asked:
            done(Reply(SendResult(runs, [], 0), memoryview(b"")))

    def fail(self, code: ErrorCode) -> None:
        asked, self.asked = self.asked, []
        for _, _, done, _ in asked:
            done(PenstockError(code, "no"))


Outcome = Sequence[int] | PenstockError
NONE = [b""]
"""The attributes of one message without any."""


def numbers_in(outcomes: list[Outcome]) -> list[list[int]]:
    """The sequence numbers that everybody was told, who were told nothing else."""
    assert not [outcome for outcome in outcomes if isinstance(outcome, PenstockError)]
    return [list(outcome) for outcome in outcomes if not isinstance(outcome, PenstockError)]


def gathered() -> tuple[Engine, GatheredSends]:
    engine = Engine()
    return engine, GatheredSends(engine, lambda call: engine.later.append(call))


def test_messages_of_one_turn_travel_together_and_are_answered_apart() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    for name in (b"a", b"b", b"c"):
        sends.send(7, [name], NONE, outcomes.append)
    assert engine.asked == []
    engine.end_turn()
    ((queue_id, batch, _, stands_for),) = engine.asked
    assert (queue_id, batch.bodies(), stands_for) == (7, [b"a", b"b", b"c"], 3)
    engine.store()
    assert numbers_in(outcomes) == [[1], [2], [3]]


def test_queues_do_not_mix_and_turns_do_not_either() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    sends.send(1, [b"one"], NONE, outcomes.append)
    sends.send(2, [b"two"], NONE, outcomes.append)
    engine.end_turn()
    sends.send(1, [b"three"], NONE, outcomes.append)
    engine.end_turn()
    assert [(queue_id, batch.bodies()) for queue_id, batch, _, _ in engine.asked] == [
        (1, [b"one"]),
        (2, [b"two"]),
        (1, [b"three"]),
    ]


def test_attributes_stay_with_their_message() -> None:
    engine, sends = gathered()
    sends.send(1, [b"plain"], NONE, lambda outcome: None)
    sends.send(1, [b"rich"], [b"\x80"], lambda outcome: None)
    engine.end_turn()
    batch = engine.asked[0][1]
    assert [batch.attributes(index) for index in range(2)] == [b"", b"\x80"]


def test_nobody_is_refused_for_the_message_of_another() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    for body in (b"small", b"large"):
        sends.send(1, [body], NONE, outcomes.append)
    engine.end_turn()
    engine.fail(ErrorCode.MESSAGE_TOO_LARGE)
    assert outcomes == []
    assert [batch.bodies() for _, batch, _, _ in engine.asked] == [[b"small"], [b"large"]]
    large = engine.asked.pop()
    engine.store()
    large[2](PenstockError(ErrorCode.MESSAGE_TOO_LARGE, "no"))
    assert numbers_in(outcomes[:1]) == [[1]]
    assert isinstance(outcomes[1], PenstockError)


def test_what_may_have_been_stored_is_not_sent_again() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    for _ in range(3):
        sends.send(1, [b"x"], NONE, outcomes.append)
    engine.end_turn()
    engine.fail(ErrorCode.UNREACHABLE)
    assert engine.asked == []
    assert [isinstance(outcome, PenstockError) for outcome in outcomes] == [True] * 3


def test_a_batch_has_bounds() -> None:
    engine, sends = gathered()
    for _ in range(MESSAGES + 1):
        sends.send(1, [b"x"], NONE, lambda outcome: None)
    assert [batch.count for _, batch, _, _ in engine.asked] == [MESSAGES]
    engine.end_turn()
    engine.end_turn()
    assert [batch.count for _, batch, _, _ in engine.asked] == [MESSAGES, 1]


def test_one_who_cannot_take_the_answer_does_not_stop_the_others() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []

    def broken(outcome: Outcome) -> None:
        raise RuntimeError("no use for it")

    sends.send(1, [b"a"], NONE, broken)
    sends.send(1, [b"b"], NONE, outcomes.append)
    engine.end_turn()
    engine.store()
    assert numbers_in(outcomes) == [[2]]


@pytest.mark.parametrize("runs", [[], [(1, 1)], [(1, 1), (5, 2)], [(1, 3)]])
def test_everybody_is_told_of_an_answer_with_too_few_or_too_many_numbers(runs: Runs) -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    for _ in range(2):
        sends.send(1, [b"x"], NONE, outcomes.append)
    engine.end_turn()
    with logged() as lines:
        engine.answer(runs)
    assert [isinstance(found, PenstockError) and found.code for found in outcomes] == [ErrorCode.INTERNAL] * 2
    assert "this is a defect of Penstock" in lines[0]


def test_numbers_may_come_in_several_runs() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    for _ in range(3):
        sends.send(1, [b"x"], NONE, outcomes.append)
    engine.end_turn()
    engine.answer([(4, 1), (9, 2)])
    assert numbers_in(outcomes) == [[4], [9], [10]]


def test_several_messages_of_one_request_stay_together_and_in_order() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    sends.send(1, [b"a"], NONE, outcomes.append)
    sends.send(1, [b"b", b"c"], [b"", b"\x80"], outcomes.append)
    sends.send(1, [b"d"], NONE, outcomes.append)
    engine.end_turn()
    ((_, batch, _, stands_for),) = engine.asked
    assert (batch.bodies(), stands_for) == ([b"a", b"b", b"c", b"d"], 3)
    assert [batch.attributes(index) for index in range(4)] == [b"", b"", b"\x80", b""]
    engine.answer([(4, 2), (9, 2)])
    assert numbers_in(outcomes) == [[4], [5, 9], [10]]


def test_a_request_that_is_tried_alone_is_still_whole() -> None:
    engine, sends = gathered()
    outcomes: list[Outcome] = []
    sends.send(1, [b"a", b"b"], [b"", b""], outcomes.append)
    sends.send(1, [b"c"], NONE, outcomes.append)
    engine.end_turn()
    engine.fail(ErrorCode.QUEUE_FULL)
    assert [batch.bodies() for _, batch, _, _ in engine.asked] == [[b"a", b"b"], [b"c"]]
    engine.fail(ErrorCode.QUEUE_FULL)
    assert engine.asked == []
    assert [isinstance(outcome, PenstockError) for outcome in outcomes] == [True] * 2

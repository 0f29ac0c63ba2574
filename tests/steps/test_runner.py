"""Several questions at once: all answers, the first that has something, and what comes too late."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.router import told
from penstock.steps.runner import StepRunner, not_carried_out
from penstock.steps.step import Ask, AskAll, AskFirst, Outcome, Reply, Single, Steps, Until
from penstock.wire.messages import Count, Done, Ping

_LATE = PenstockError(ErrorCode.UNREACHABLE, "nobody is there")


class _Request(bytearray):
    """The body of a request; whether it is in memory can be seen."""


class _Asked:
    """Keeps what is asked until the test answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[Ask, Callable[[Any], None]]] = []
        self.cancelled: list[int] = []

    def start(self, step: Single, done: Callable[[Any], None]) -> int:
        assert isinstance(step, Ask)
        self.asked.append((step, done))
        return len(self.asked) - 1

    def cancel(self, call: int) -> None:
        self.cancelled.append(call)

    def answer(self, call: int, outcome: Outcome) -> None:
        self.asked[call][1](outcome)


def _begin(steps: Steps[Reply]) -> tuple[_Asked, list[Reply | Exception], StepRunner[Reply, int]]:
    asked, ended = _Asked(), list[Reply | Exception]()
    runner = StepRunner(steps, asked, ended.append)
    runner.start()
    return asked, ended, runner


def _back(partition: int, reply: Reply) -> Ask | None:
    return Ask(Ping(), b"back", partition) if isinstance(reply.answer, Count) else None


def _first() -> Steps[Reply]:
    found: tuple[int, Reply] | None = yield AskFirst(
        [Ask(Ping(), partition=partition, give_back=_back) for partition in (7, 8, 9)],
        lambda reply: isinstance(reply.answer, Count),
    )
    return found[1] if found is not None else Reply(Done())


def _all() -> Steps[Reply]:
    outcomes: list[Outcome] = yield AskAll([Ask(Ping(), partition=partition) for partition in (7, 8)])
    return Reply(Count(sum(isinstance(outcome, PenstockError) for outcome in outcomes)))


def test_the_first_that_has_something_ends_the_wait_of_the_others() -> None:
    asked, ended, _ = _begin(_first())
    asked.answer(0, Reply(Done()))
    assert not ended
    asked.answer(1, Reply(Count(5)))
    assert ended == [Reply(Count(5))]
    assert asked.cancelled == [0, 1, 2]


def test_what_comes_too_late_is_given_back_once() -> None:
    asked, ended, _ = _begin(_first())
    asked.answer(1, Reply(Count(5)))
    asked.answer(2, Reply(Count(6)))
    asked.answer(0, Reply(Done()))
    assert [ask for ask, _ in asked.asked[3:]] == [Ask(Ping(), b"back", 9)]
    assert ended == [Reply(Count(5))]


def _all_or_nothing(request: _Request) -> Steps[Reply]:
    outcomes: list[Outcome] = yield AskAll([Ask(Ping(), request, partition) for partition in (7, 8)])
    for outcome in outcomes:
        if isinstance(outcome, PenstockError):
            raise outcome
    return Reply(Done())


def _one(request: _Request) -> Steps[Reply]:
    reply: Reply = yield Ask(Ping(), request)
    return reply


@pytest.mark.parametrize("steps", [_one, _all_or_nothing])
def test_what_was_refused_does_not_stay_in_memory(steps: Callable[[_Request], Steps[Reply]]) -> None:
    """The collector of cycles runs after 20,000 objects: that is a thousand refused batches."""
    request = _Request(b"a batch")
    is_there = weakref.ref(request)
    gc.disable()
    try:
        asked, ended, runner = _begin(steps(request))
        del request
        while asked.asked:
            asked.asked.pop()[1](PenstockError(ErrorCode.BAD_REQUEST, "it is refused"))
        assert isinstance(ended.pop(), PenstockError)
        del asked, runner
        assert is_there() is None
    finally:
        gc.enable()


def test_where_nobody_has_something_one_answer_is_enough() -> None:
    asked, ended, _ = _begin(_first())
    outcomes: list[Outcome] = [_LATE, Reply(Done()), _LATE]
    for call, outcome in enumerate(outcomes):
        asked.answer(call, outcome)
    assert ended == [Reply(Done())]


def test_where_all_fail_the_first_failure_is_told() -> None:
    asked, ended, _ = _begin(_first())
    for call in range(3):
        asked.answer(call, _LATE)
    assert ended == [_LATE]


def test_all_are_waited_for() -> None:
    asked, ended, _ = _begin(_all())
    asked.answer(1, _LATE)
    assert not ended
    asked.answer(0, Reply(Done()))
    assert ended == [Reply(Count(1))]


def test_a_request_that_is_told_to_stop_waiting_does_not_wait_at_a_later_step() -> None:
    def twice() -> Steps[Reply]:
        yield Ask(Ping(), partition=7)
        reply: Reply = yield Ask(Ping(), partition=8)
        return reply

    asked, _, runner = _begin(twice())
    runner.stop_waiting()
    asked.answer(0, Reply(Done()))
    assert asked.cancelled == [0, 1]


def test_what_comes_for_a_request_that_is_abandoned_is_given_back() -> None:
    closed: list[bool] = []

    def one() -> Steps[Reply]:
        try:
            reply: Reply = yield Ask(Ping(), partition=7, give_back=_back)
        finally:
            closed.append(True)
        return reply

    asked, ended, runner = _begin(one())
    runner.abandon()
    assert closed
    assert asked.cancelled == [0]
    asked.answer(0, Reply(Count(5)))
    assert [ask for ask, _ in asked.asked[1:]] == [Ask(Ping(), b"back", 7)]
    assert not ended


def test_an_abandoned_request_takes_no_further_step() -> None:
    def twice() -> Steps[Reply]:
        yield Ask(Ping(), partition=7)
        reply: Reply = yield Ask(Ping(), partition=8)
        return reply

    asked, ended, runner = _begin(twice())
    runner.abandon()
    asked.answer(0, Reply(Done()))
    assert len(asked.asked) == 1
    assert not ended


def test_all_that_comes_for_an_abandoned_wait_at_several_is_given_back() -> None:
    asked, ended, runner = _begin(_first())
    runner.abandon()
    for call in range(3):
        asked.answer(call, Reply(Count(5)))
    assert [ask.partition for ask, _ in asked.asked[3:]] == [7, 8, 9]
    assert not ended


def test_an_exception_that_steps_do_not_catch_ends_the_request_and_is_told_by_the_router_as_a_defect() -> (
    None
):
    def broken() -> Steps[Reply]:
        yield Ask(Ping(), partition=7)
        raise KeyError("broken")

    asked, ended, _ = _begin(broken())
    asked.answer(0, Reply(Done()))
    (result,) = ended
    assert isinstance(result, KeyError)
    outcome = told(result)
    assert isinstance(outcome, PenstockError)
    assert outcome.code is ErrorCode.INTERNAL
    assert outcome.__cause__ is result


def test_a_world_says_which_step_it_cannot_carry_out() -> None:
    class Nothing:
        def start(self, step: Single, done: Callable[[Any], None]) -> int:
            raise not_carried_out(step)

        def cancel(self, under_way: int) -> None:
            raise AssertionError

    def one() -> Steps[Reply]:
        yield Until(lambda: True, 1)
        return Reply(Done())

    ended: list[Reply | Exception] = []
    StepRunner(one(), Nothing(), ended.append).start()
    (result,) = ended
    assert str(result) == "Until is not carried out here"

"""Several questions at once: all answers, the first that has something, and what comes too late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.errand import Errand
from penstock.routing.steps import (
    Ask,
    AskAll,
    AskAnyNode,
    AskFirst,
    Look,
    Outcome,
    Put,
    Remove,
    Reply,
    Steps,
    Until,
)
from penstock.wire.messages import Count, Done, Ping

_LATE = PenstockError(ErrorCode.UNREACHABLE, "nobody is there")


class _Desk:
    """Keeps what is asked until the test answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[Ask, Callable[[Outcome], None]]] = []
        self.cancelled: list[int] = []

    @property
    def calls(self) -> _Desk:
        return self

    def start(self, ask: Ask, done: Callable[[Outcome], None]) -> int:
        self.asked.append((ask, done))
        return len(self.asked) - 1

    def cancel(self, call: int) -> None:
        self.cancelled.append(call)

    def answer(self, call: int, outcome: Outcome) -> None:
        self.asked[call][1](outcome)

    def ask_any_node(self, step: AskAnyNode, done: Callable[[Outcome], None]) -> None:
        raise NotImplementedError

    def use_store(self, step: Look | Put | Remove, done: Callable[[Any], None]) -> None:
        raise NotImplementedError

    def wait_until(self, step: Until, done: Callable[[bool], None]) -> None:
        done(step.holds())


def _begin(steps: Steps[Reply]) -> tuple[_Desk, list[Outcome], Errand[int]]:
    desk, ended = _Desk(), list[Outcome]()
    errand = Errand(steps, desk, ended.append)
    errand.start()
    return desk, ended, errand


def _first() -> Steps[Reply]:
    found: tuple[int, Reply] | None = yield AskFirst(
        [Ask(partition, Ping()) for partition in (7, 8, 9)],
        lambda reply: isinstance(reply.answer, Count),
        lambda partition, reply: Ask(partition, Ping(), b"back"),
    )
    return found[1] if found is not None else Reply(Done())


def _all() -> Steps[Reply]:
    outcomes: list[Outcome] = yield AskAll([Ask(partition, Ping()) for partition in (7, 8)])
    return Reply(Count(sum(isinstance(outcome, PenstockError) for outcome in outcomes)))


def test_the_first_that_has_something_ends_the_wait_of_the_others() -> None:
    desk, ended, _ = _begin(_first())
    desk.answer(0, Reply(Done()))
    assert not ended
    desk.answer(1, Reply(Count(5)))
    assert ended == [Reply(Count(5))]
    assert desk.cancelled == [0, 1, 2]


def test_what_comes_too_late_is_given_back_once() -> None:
    desk, ended, _ = _begin(_first())
    desk.answer(1, Reply(Count(5)))
    desk.answer(2, Reply(Count(6)))
    desk.answer(0, Reply(Done()))
    assert [ask for ask, _ in desk.asked[3:]] == [Ask(9, Ping(), b"back")]
    assert ended == [Reply(Count(5))]


def test_where_nobody_has_something_one_answer_is_enough() -> None:
    desk, ended, _ = _begin(_first())
    outcomes: list[Outcome] = [_LATE, Reply(Done()), _LATE]
    for call, outcome in enumerate(outcomes):
        desk.answer(call, outcome)
    assert ended == [Reply(Done())]


def test_where_all_fail_the_first_failure_is_told() -> None:
    desk, ended, _ = _begin(_first())
    for call in range(3):
        desk.answer(call, _LATE)
    assert ended == [_LATE]


def test_all_are_waited_for() -> None:
    desk, ended, _ = _begin(_all())
    desk.answer(1, _LATE)
    assert not ended
    desk.answer(0, Reply(Done()))
    assert ended == [Reply(Count(1))]


def test_who_gave_up_before_a_question_does_not_wait_for_it() -> None:
    def twice() -> Steps[Reply]:
        yield Ask(7, Ping())
        reply: Reply = yield Ask(8, Ping())
        return reply

    desk, _, errand = _begin(twice())
    errand.cancel()
    desk.answer(0, Reply(Done()))
    assert desk.cancelled == [0, 1]


def test_a_defect_is_told_and_is_this_requests_alone() -> None:
    def broken() -> Steps[Reply]:
        yield Ask(7, Ping())
        raise KeyError("broken")

    desk, ended, _ = _begin(broken())
    desk.answer(0, Reply(Done()))
    (told,) = ended
    assert isinstance(told, PenstockError)
    assert told.code is ErrorCode.INTERNAL
    assert isinstance(told.__cause__, KeyError)

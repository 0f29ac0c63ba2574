"""What the answer of a node is worth, and what may be asked again."""

from __future__ import annotations

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.attempts import MISSED_AT_MOST, Attempts, shortened
from penstock.routing.steps import Reply
from penstock.wire.messages import Delete, DescribeQueue, Done, Purge, Receive, Redrive, Request, Send


def _again(attempts: Attempts, request: Request, code: ErrorCode, *, others_have_it: bool = True) -> bool:
    return attempts.asks_again(request, PenstockError(code, "no"), others_have_it=others_have_it)


@pytest.mark.parametrize("request_", [Send(1), Purge(1), Redrive(1), Delete([]), DescribeQueue("q")])
def test_what_was_not_taken_is_asked_again_and_certain(request_: Request) -> None:
    attempts = Attempts()
    assert _again(attempts, request_, ErrorCode.NOT_PRIMARY)
    assert _again(attempts, request_, ErrorCode.SHUTTING_DOWN)
    assert not attempts.uncertain


def test_what_may_have_been_done_is_asked_again_only_where_twice_does_no_harm() -> None:
    attempts = Attempts()
    assert not _again(attempts, Purge(1), ErrorCode.UNREACHABLE)
    assert not _again(attempts, Redrive(1), ErrorCode.UNREACHABLE)
    assert not attempts.uncertain
    assert _again(attempts, Send(1), ErrorCode.UNREACHABLE)
    assert attempts.uncertain


def test_damage_of_one_node_is_no_answer_where_others_hold_the_partition() -> None:
    assert _again(Attempts(), Send(1), ErrorCode.QUEUE_DAMAGED)
    assert not _again(Attempts(), Send(1), ErrorCode.QUEUE_DAMAGED, others_have_it=False)


def test_a_partition_that_nobody_knows_is_asked_for_a_few_times() -> None:
    attempts = Attempts()
    answers = [_again(attempts, Send(1), ErrorCode.QUEUE_NOT_FOUND) for _ in range(MISSED_AT_MOST + 1)]
    assert answers == [True] * MISSED_AT_MOST + [False]


def test_a_refusal_after_an_attempt_that_may_have_been_stored_is_no_refusal() -> None:
    attempts = Attempts()
    full = PenstockError(ErrorCode.QUEUE_FULL, "full")
    assert attempts.certain(Send(1), full) is full
    _again(attempts, Send(1), ErrorCode.UNREACHABLE)
    told = attempts.certain(Send(1), full)
    assert isinstance(told, PenstockError)
    assert told.code is ErrorCode.UNREACHABLE
    assert attempts.certain(Send(1), Reply(Done())) == Reply(Done())


def test_what_waits_waits_in_all_as_long_as_it_was_to() -> None:
    assert shortened(Receive(1, 10, 500), 200) == Receive(1, 10, 200)
    assert shortened(Receive(1, 10, 500), -3) == Receive(1, 10, 0)
    assert shortened(Receive(1, 10, 0), 200) == Receive(1, 10, 0)

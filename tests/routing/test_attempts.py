"""What the answer of a node is worth, and what may be asked again."""

from __future__ import annotations

import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.limits import PRODUCER_BATCHES_REMEMBERED
from penstock.routing.attempts import MISSED_AT_MOST, Attempts, shortened
from penstock.steps.step import Reply
from penstock.wire.messages import (
    ClaimIds,
    CommitOffset,
    Delete,
    DeleteGroup,
    DescribeQueue,
    Done,
    Extend,
    FindOffset,
    JoinGroup,
    LeaveGroup,
    Peek,
    Purge,
    ReadLog,
    ReceiptOutcome,
    Receive,
    Redrive,
    Release,
    Request,
    SeekGroup,
    Send,
    Settled,
)
from penstock.wire.refusals import error_of
from tests.backend.harness import NodeHarness


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


def test_a_batch_that_was_stored_and_is_remembered_no_more_is_not_refused() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    body = encode_parts([b"one"])
    for number in range(1, PRODUCER_BATCHES_REMEMBERED + 2):  # all are under way when the connection breaks
        node.call(Send(queue, 7, number), body)
    attempts = Attempts()
    _again(attempts, Send(queue, 7, 1), ErrorCode.UNREACHABLE)
    said = node.fail(Send(queue, 7, 1), body)
    told = attempts.certain(Send(queue, 7, 1), error_of(said))
    assert isinstance(told, PenstockError)
    assert told.code is ErrorCode.UNREACHABLE, "it is stored: its sender must not be told that it was refused"


@pytest.mark.parametrize(
    "request_",
    [
        *(Delete([]), Release([]), Extend([], 1), CommitOffset(1, "g", 5), SeekGroup(1, "g", 5)),
        *(JoinGroup(1, "g", "me"), LeaveGroup(1, "g", "me"), DeleteGroup(1, "g"), ClaimIds(1, [], [], [])),
    ],
)
def test_nobody_is_told_that_nothing_was_done_where_an_earlier_attempt_may_have(request_: Request) -> None:
    attempts = Attempts()
    refusals = [
        PenstockError(code, "no")
        for code in (
            ErrorCode.NOT_A_MEMBER,
            ErrorCode.STALE_RECEIPT,
            ErrorCode.DISK_FULL,
            ErrorCode.LIMIT_REACHED,
        )
    ]
    alike = PenstockError(ErrorCode.BAD_RECEIPT, "never")
    for refusal in (*refusals, alike):
        assert attempts.is_known(request_, refusal)
        assert attempts.certain(request_, refusal) is refusal
    _again(attempts, request_, ErrorCode.UNREACHABLE)
    for refusal in refusals:
        assert not attempts.is_known(request_, refusal)
        told = attempts.certain(request_, refusal)
        assert isinstance(told, PenstockError)
        assert told.code is ErrorCode.UNREACHABLE
    assert attempts.certain(request_, alike) is alike


@pytest.mark.parametrize("request_", [Receive(1), ReadLog(1, 0), DescribeQueue("q"), Peek(1), FindOffset(1)])
def test_who_only_looks_is_told_what_is_so_now(request_: Request) -> None:
    attempts = Attempts()
    _again(attempts, request_, ErrorCode.UNREACHABLE)
    refusal = PenstockError(ErrorCode.OFFSET_GONE, "no")
    assert attempts.is_known(request_, refusal)
    assert attempts.certain(request_, refusal) is refusal


def test_receipts_that_were_settled_before_count_as_settled() -> None:
    attempts = Attempts()
    settled = Reply(Settled([ReceiptOutcome(1, 2, [(5, 3), (9, 1)])]))
    for request in (Delete([]), Release([]), Extend([], 1)):
        assert attempts.is_known(request, settled)
        assert attempts.certain(request, settled) is settled
    _again(attempts, Delete([]), ErrorCode.UNREACHABLE)
    for request in (Delete([]), Release([]), Extend([], 1)):
        assert not attempts.is_known(request, settled), "whose doing it was, nobody can say"
    assert attempts.certain(Delete([]), settled) is settled
    assert attempts.certain(Extend([], 1), settled) is settled, "the lease has ended whoever extended it"
    assert attempts.certain(Release([]), settled) == Reply(Settled([ReceiptOutcome(5, 2, [])]))


def test_what_waits_waits_in_all_as_long_as_it_was_to() -> None:
    assert shortened(Receive(1, 10, 500), 200) == Receive(1, 10, 200)
    assert shortened(Receive(1, 10, 500), -3) == Receive(1, 10, 0)
    assert shortened(Receive(1, 10, 0), 200) == Receive(1, 10, 0)


def test_a_queue_that_is_gone_by_now_may_have_stored_a_send_before() -> None:
    attempts = Attempts()
    gone = PenstockError(ErrorCode.QUEUE_NOT_FOUND, "it was deleted")
    assert attempts.is_known(Send(1), gone)
    attempts.uncertain = True
    assert not attempts.is_known(Send(1), gone)
    told = attempts.certain(
        Send(1), gone
    )  # a client that sends it again then hears that the queue is gone, and looks it up
    assert isinstance(told, PenstockError)
    assert told.code is ErrorCode.UNREACHABLE

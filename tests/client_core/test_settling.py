"""Settlements: what is settled in one turn travels together, and what an answer means for each message."""

from __future__ import annotations

from typing import Generic, TypeVar

import pytest

from penstock.client_core.call import Call
from penstock.client_core.lease import Lease
from penstock.client_core.settling import DELETE, GIVE_BACK, SettleAction, Settlement, Settling, WholeReceipt
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import (
    Delete,
    DeliveredBatch,
    Done,
    Extend,
    Receipt,
    ReceiptOutcome,
    Release,
    Settled,
)

T = TypeVar("T")


class Waiter(Generic[T]):
    def __init__(self) -> None:
        self.result: T | PenstockError | str = "waits"

    def done(self) -> bool:
        return self.result != "waits"

    def cancelled(self) -> bool:
        return self.result == "cancelled"

    def set_result(self, result: T, /) -> None:
        self.result = result

    def set_exception(self, exception: PenstockError, /) -> None:
        self.result = exception


class World(Settling):
    """A turn ends when the test says so, and calls are answered by it."""

    def __init__(self) -> None:
        super().__init__("orders")
        self.turns = 0
        self.sent: list[tuple[Call, Delete | Release | Extend]] = []

    def _turn_began(self) -> None:
        self.turns += 1

    def _start(self, call: Call, request: Delete | Release | Extend) -> None:
        self.sent.append((call, request))

    def whole(self, action: SettleAction, lease: Lease) -> Waiter[Settlement]:
        waiter: Waiter[Settlement] = Waiter()
        receipt = lease.receipt()
        assert receipt is not None
        self.add_whole(action, [WholeReceipt(lease, receipt, waiter)])
        return waiter

    def one(self, action: SettleAction, lease: Lease, sequence: int) -> Waiter[None]:
        waiter: Waiter[None] = Waiter()
        self.add_one(action, lease, sequence, waiter)
        return waiter

    def answer(self, *outcomes: ReceiptOutcome, resent: int = 0) -> None:
        call, _ = self.sent[-1]
        call.resent = resent
        call.succeed(Settled(list(outcomes)), memoryview(b""))


def _lease(token: bytes = b"t", first: int = 1, count: int = 3) -> Lease:
    batch = DeliveredBatch(first, count, sent_ms=1, size=0, receive_counts=1, first_received_ms=1)
    return Lease(token, [batch], 0.0)


def test_what_is_settled_in_one_turn_is_one_request_for_each_action() -> None:
    world, first, second = World(), _lease(b"a"), _lease(b"b", 10)
    world.whole(DELETE, first)
    world.whole(DELETE, second)
    world.one(GIVE_BACK, second, 10)
    world.end_turn()
    assert world.turns == 1
    assert [request for _, request in world.sent] == [
        Delete([Receipt(b"a", [(1, 3)]), Receipt(b"b", [(10, 3)])]),
        Release([Receipt(b"b", [(10, 1)])], unreceived=True),
    ]


def test_each_is_told_what_became_of_its_own() -> None:
    world, lease = World(), _lease()
    waiter = world.whole(DELETE, lease)
    world.end_turn()
    world.answer(ReceiptOutcome(1, 1, [(3, 1)]))
    assert waiter.result == Settlement(1, 1, [3])
    assert lease.open_runs() == []


def test_a_release_that_was_sent_again_and_came_too_late_was_done_before() -> None:
    world, lease = World(), _lease()
    waiter = world.whole(GIVE_BACK, lease)
    world.end_turn()
    world.answer(ReceiptOutcome(0, 0, [(1, 3)]), resent=1)
    assert waiter.result == Settlement(3, 0, [])


@pytest.mark.parametrize("action", [DELETE, SettleAction("extend", 1_000)])
def test_anything_else_that_came_too_late_did_so_however_often_it_was_sent(action: SettleAction) -> None:
    world, lease = World(), _lease()
    waiter = world.whole(action, lease)
    world.end_turn()
    world.answer(ReceiptOutcome(0, 0, [(1, 3)]), resent=1)
    assert waiter.result == Settlement(0, 0, [1, 2, 3])
    assert lease.open_runs() == [], "somebody else may have them"


def test_an_extension_leaves_messages_open_and_one_that_is_gone_cannot_be_kept() -> None:
    world, lease = World(), _lease()
    kept = world.one(SettleAction("extend", 1_000), lease, 1)
    world.end_turn()
    world.answer(ReceiptOutcome(1, 0, []))
    assert kept.result is None
    assert lease.open_runs() == [(1, 3)]
    gone = world.one(SettleAction("extend", 1_000), lease, 2)
    world.end_turn()
    world.answer(ReceiptOutcome(0, 1, []))
    assert isinstance(gone.result, PenstockError)
    assert gone.result.code is ErrorCode.STALE_RECEIPT


def test_an_answer_that_does_not_fit_fails_all() -> None:
    world = World()
    waiter = world.whole(DELETE, _lease())
    world.end_turn()
    world.sent[0][0].succeed(Done(), memoryview(b""))
    assert isinstance(waiter.result, PenstockError)
    assert waiter.result.code is ErrorCode.INTERNAL


def test_what_nobody_waits_for_need_not_be_asked_again() -> None:
    world = World()
    waiter = world.whole(DELETE, _lease())
    world.end_turn()
    assert not world.sent[0][0].abandoned()
    waiter.result = "cancelled"
    assert world.sent[0][0].abandoned()

"""Sends that wait for a certain clock: in order, and bounded whoever leaves."""

from __future__ import annotations

import pytest

from penstock.backend.send.held_sends import HeldSend, HeldSends
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import Send


def held(queue: int, body: bytes, connection: int = 1, until_ms: int = 100) -> HeldSend:
    return HeldSend(connection, 1, Send(queue), body, until_ms)


def refused(sends: HeldSends, send: HeldSend) -> str:
    with pytest.raises(PenstockError) as caught:
        sends.add(send, "the time is uncertain")
    assert caught.value.code is ErrorCode.CLOCK_UNCERTAIN
    return caught.value.message


def test_those_of_a_queue_leave_in_the_order_in_which_they_came() -> None:
    sends = HeldSends()
    for body in (b"a", b"b", b"c"):
        sends.add(held(1, body, until_ms=ord(body)), "")
    sends.add(held(2, b"x"), "")
    assert sends.take(1).body == b"a"
    assert [send.body for send in sends.overdue(1, ord("b"))] == [b"b"]
    assert [send.body for send in sends.drop_queue(1)] == [b"c"]
    assert sends.queues() == [2]


def test_a_queue_holds_no_more_than_its_share() -> None:
    sends = HeldSends(2**40)
    body = bytes(limits.SENDS_HELD_BYTES_PER_QUEUE // 2)
    sends.add(held(1, body), "")
    sends.add(held(1, body), "")
    assert "2 sends are held for the queue already" in refused(sends, held(1, b"x"))
    sends.add(held(2, b"x"), "")


@pytest.mark.parametrize("way", ["take", "overdue", "drop", "leave"])
def test_all_queues_together_are_bounded_too(way: str) -> None:
    sends = HeldSends(100)
    sends.add(held(1, bytes(40)), "")
    sends.add(held(2, bytes(30), connection=2), "")
    sends.add(held(2, bytes(30)), "")
    assert "3 for all queues, and there is no room for more" in refused(sends, held(3, b"x"))
    match way:
        case "take":
            sends.take(2)
        case "overdue":
            sends.overdue(2, 100)
        case "drop":
            sends.drop_queue(2)
        case _:
            sends.leave_connection(2)
    left = 60 if way in ("overdue", "drop") else 30
    sends.add(held(3, bytes(left)), "")
    refused(sends, held(3, b"x"))


def test_a_queue_on_which_only_a_lost_client_waited_is_empty() -> None:
    sends = HeldSends(100)
    sends.add(held(1, bytes(60)), "")
    sends.add(held(2, bytes(40), connection=2), "")
    sends.leave_connection(1)
    assert sends.queues() == [2]
    assert sends.first(1) is None
    sends.add(held(3, bytes(60)), "")

"""Queues that the server stamps: answers that wait for their stamp, and sends that wait for the clock."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.wire import messages
from tests.backend.harness import NodeHarness


def start_send(node: NodeHarness, queue: int, body: bytes, connection: int = 1, **fields: Any) -> int:
    """Begins a send; returns the request's id."""
    return node.start(messages.Send(queue, **fields), encode_parts([body]), connection)


def result(node: NodeHarness, request: int, connection: int = 1) -> messages.SendResult | None:
    """The answer to a send, if it has come."""
    found = node.answers(request, connection)
    if not found:
        return None
    assert isinstance(found[0].answer, messages.SendResult), found[0].answer
    return found[0].answer


def failure(node: NodeHarness, request: int) -> messages.Failed | None:
    """The failure that a send ended with, if it has."""
    found = node.answers(request)
    if not found:
        return None
    assert isinstance(found[0].answer, messages.Failed), found[0].answer
    return found[0].answer


def test_an_answer_waits_until_its_stamp_is_certainly_past() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock")
    node.uncertainty_us = 5_000
    sent = start_send(node, queue, b"a")
    assert result(node, sent) is None
    node.advance(9)
    assert result(node, sent) is None
    node.advance(2)
    answer = result(node, sent)
    assert answer is not None
    assert answer.stamp_us == (node.now_ms - 11) * 1_000 + 5_000


def test_nobody_waits_behind_a_stamped_answer() -> None:
    node = NodeHarness()
    stamped, plain = node.create("stamped", ordering="clock"), node.create("plain")
    node.uncertainty_us = 50_000
    first = start_send(node, stamped, b"a")
    node.send(plain, [b"b"])
    assert node.receive(stamped).bodies == [b"a"]  # only the sender waits
    assert result(node, first) is None


def test_stamps_rise_though_the_clock_stands_still_and_goes_back() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock")
    requests = [start_send(node, queue, b"x") for _ in range(3)]
    node.now_ms -= 1
    requests.append(start_send(node, queue, b"x"))
    node.advance(3)
    answers = [result(node, request) for request in requests]
    stamps = [answer.stamp_us for answer in answers if answer is not None]
    assert len(stamps) == 4
    assert stamps == sorted(set(stamps))


@pytest.mark.parametrize("how", ["crash", "restart"])
def test_stamps_go_on_after_a_restart_with_a_clock_that_is_behind(how: str) -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock")
    sent = start_send(node, queue, b"a")
    node.advance(1)
    before = result(node, sent)
    node.now_ms -= 20
    getattr(node, how)()
    assert before is not None
    assert node.node.last_stamp_us == before.stamp_us
    sent = start_send(node, queue, b"b")
    node.advance(30)
    after = result(node, sent)
    assert after is not None
    assert after.stamp_us == before.stamp_us + 1
    assert node.drain(queue) == [b"a", b"b"]


def test_a_retry_is_not_answered_before_the_stamp_is_past() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock")
    node.uncertainty_us = 5_000
    first = start_send(node, queue, b"a", producer=7, number=1)
    again = start_send(node, queue, b"a", producer=7, number=1)
    assert result(node, again) is None
    node.advance(20)
    one, other = result(node, first), result(node, again)
    assert one is not None
    assert one == other
    assert node.drain(queue) == [b"a"]


def test_the_stamp_of_a_retry_survives_a_restart() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock")
    sent = start_send(node, queue, b"a", producer=7, number=1)
    node.advance(1)
    first = result(node, sent)
    node.restart()
    again = start_send(node, queue, b"a", producer=7, number=1)
    node.advance(1)
    assert result(node, again) == first


def test_consumers_see_the_stamp() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock")
    sent = start_send(node, queue, b"a")
    node.advance(1)
    answer = result(node, sent)
    assert answer is not None
    received = node.receive(queue)
    assert received.heads[0].stamp_us == answer.stamp_us
    assert node.show("orders").statistics.watermark_us == answer.stamp_us


@pytest.mark.parametrize("uncertainty_us", [None, 200_000])
def test_an_uncertain_clock_refuses(uncertainty_us: int | None) -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", max_uncertainty_ms=100)
    node.uncertainty_us = uncertainty_us
    failed = failure(node, start_send(node, queue, b"a"))
    assert failed is not None
    assert failed.code == ErrorCode.CLOCK_UNCERTAIN
    assert node.show("orders").statistics.sent_total == 0


def test_a_clock_far_behind_the_last_stamp_refuses() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", max_uncertainty_ms=10)
    start_send(node, queue, b"a")
    node.now_ms -= 60_000
    failed = failure(node, start_send(node, queue, b"b"))
    assert failed is not None
    assert "went back" in failed.message


def test_an_uncertain_clock_holds_sends_in_order() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    node.uncertainty_us = None
    held = [start_send(node, queue, body) for body in (b"a", b"b")]
    node.advance(1_000)
    assert [result(node, request) for request in held] == [None, None]
    node.uncertainty_us = 0
    held.append(start_send(node, queue, b"c"))
    node.advance(20)
    assert all(result(node, request) is not None for request in held)
    assert node.drain(queue) == [b"a", b"b", b"c"]


def test_a_held_send_goes_on_though_nobody_else_sends() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    node.uncertainty_us = None
    held = start_send(node, queue, b"a")
    node.uncertainty_us = 0
    node.advance(20)
    assert result(node, held) is not None


def test_a_send_is_not_held_forever() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    node.uncertainty_us = None
    held = start_send(node, queue, b"a")
    node.advance(limits.SEND_HELD_MS + 20)
    failed = failure(node, held)
    assert failed is not None
    assert failed.code == ErrorCode.CLOCK_UNCERTAIN
    node.uncertainty_us = 0
    node.advance(100)
    assert node.drain(queue) == []


def test_no_more_sends_are_held_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SENDS_HELD_PER_QUEUE", 2)
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    node.uncertainty_us = None
    requests = [start_send(node, queue, b"a") for _ in range(3)]
    assert failure(node, requests[2]) is not None
    assert failure(node, requests[0]) is None


def test_what_a_client_that_left_had_held_is_dropped() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    other = node.connect()
    node.uncertainty_us = None
    start_send(node, queue, b"a", other)
    kept = start_send(node, queue, b"b")
    node.node.disconnected(other, node.now_ms)
    node.uncertainty_us = 0
    node.advance(20)
    assert result(node, kept) is not None
    assert node.drain(queue) == [b"b"]


def test_held_sends_of_a_deleted_queue_fail() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    node.uncertainty_us = None
    held = start_send(node, queue, b"a")
    node.call(messages.DeleteQueue("orders"))
    node.advance(20)
    failed = failure(node, held)
    assert failed is not None
    assert failed.code == ErrorCode.QUEUE_NOT_FOUND


def test_redriven_messages_get_the_next_stamp() -> None:
    node = NodeHarness()
    dead = node.create("dead", ordering="fifo")
    queue = node.create("orders", ordering="clock", dead_letter_queue="dead", max_receives=1)
    start_send(node, queue, b"a")
    received = node.receive(queue)
    node.call(messages.Release([received.receipt()]))
    start_send(node, queue, b"b")
    node.call(messages.Redrive(dead))
    node.advance(1)
    again = node.receive(queue)
    assert again.bodies == [b"b", b"a"]
    assert again.heads[0].stamp_us < again.heads[1].stamp_us

"""Queues ordered by their producers' stamps, through the node: the window, late messages, restarts, moves."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.settings import QueueSettings
from penstock.ordering.timestamp_id import TimestampId
from penstock.wire import messages
from tests.backend.harness import NodeHarness, Received

WINDOW_MS = 50


def clock_queue(node: NodeHarness, **settings: object) -> int:
    """A queue ordered by its producers' synchronized stamps."""
    return node.create(
        "orders", **{"ordering": "clock", "stamps": "producer", "window_ms": WINDOW_MS, **settings}
    )


def send(
    node: NodeHarness, queue: int, bodies: list[bytes], stamp_us: int, process: int = 1, **more: object
) -> messages.SendResult:
    """A batch of one time."""
    return node.send(queue, bodies, process=process, time_us=stamp_us, **more)


def one(**columns: object) -> bytes:
    """An encoded batch of one message."""
    return encode_parts([b"x"], **columns)  # type: ignore[arg-type]  # as the caller names them


def peeked(node: NodeHarness, queue: int) -> list[str]:
    """The states of all messages."""
    answer = node.call(messages.Peek(queue, 0, 100))
    assert isinstance(answer, messages.Peeked)
    return [state for head in answer.batches for state in head.states or []]


def test_messages_wait_for_the_window_and_leave_in_the_order_of_stamps() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    start_us = node.now_ms * 1_000
    send(node, queue, [b"c"], start_us - 1_000, process=1)
    send(node, queue, [b"a"], start_us - 3_000, process=2)
    send(node, queue, [b"b"], start_us - 2_000, process=3)
    assert peeked(node, queue) == ["held"] * 3
    assert node.show("orders").statistics.held == 3
    assert node.receive(queue).bodies == []
    node.advance(WINDOW_MS - 3)
    assert node.receive(queue).bodies == [b"a"]
    node.advance(2)
    assert peeked(node, queue) == ["ready", "leased", "ready"]
    assert node.show("orders").statistics.watermark_us == start_us - 1_000


def test_messages_inside_a_batch_are_sorted_by_its_column() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    start_us = node.now_ms * 1_000
    node.send(queue, [b"c", b"a", b"b"], process=9, stamps_us=[start_us, start_us - 20, start_us - 10])
    node.advance(WINDOW_MS)
    received = node.receive(queue)
    assert received.bodies == [b"a", b"b", b"c"]
    assert [(head.stamp_us, head.process, head.counter) for head in received.heads][-1] == (start_us, 9, 0)


def test_a_waiting_receiver_gets_what_leaves_the_window() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    waiting = node.start(messages.Receive(queue, 10, wait_ms=1_000))
    send(node, queue, [b"a"], node.now_ms * 1_000)
    node.advance(WINDOW_MS - 1)
    assert not node.answers(waiting)
    node.advance(1)
    assert node.answers(waiting)


def test_a_window_of_nothing_lets_out_in_the_same_turn() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    send(node, queue, [b"a"], node.now_ms * 1_000)
    assert node.receive(queue).bodies == [b"a"]


def test_batches_without_stamps_get_the_servers_time() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    results = [node.send(queue, [body]) for body in (b"a", b"b", b"c")]
    assert len({result.stamp_us for result in results}) == 3
    node.advance(1)
    assert node.drain(queue) == [b"a", b"b", b"c"]
    assert node.show("orders").statistics.late_total == 0


def test_a_stamp_in_the_future_is_refused_with_its_batch() -> None:
    node = NodeHarness()
    queue = clock_queue(node, max_uncertainty_ms=20)
    request = messages.Send(queue, process=1, time_us=node.now_ms * 1_000 + 21_000)
    assert node.fail(request, one()).code == ErrorCode.STAMP_IN_FUTURE
    send(node, queue, [b"a"], node.now_ms * 1_000 + 20_000)
    assert node.show("orders").statistics.sent_total == 1


def test_a_producer_whose_clock_is_too_uncertain_is_refused() -> None:
    node = NodeHarness()
    queue = clock_queue(node, max_uncertainty_ms=20)
    request = messages.Send(queue, process=1, time_us=node.now_ms * 1_000, uncertainty_us=20_001)
    assert node.fail(request, one()).code == ErrorCode.CLOCK_UNCERTAIN


@pytest.mark.parametrize(
    "fields", [{"process": 0}, {"process": -1}, {"process": 2**48}, {"process": 1, "counter": 2**24}]
)
def test_bad_ids_are_refused(fields: dict[str, Any]) -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    request = messages.Send(queue, **{"time_us": node.now_ms * 1_000, **fields})
    assert node.fail(request, one()).code == ErrorCode.BAD_REQUEST


def test_order_leaves_no_room_for_priorities_and_delays() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    stamped = messages.Send(queue, process=1, time_us=node.now_ms * 1_000)
    assert node.fail(stamped, one(priorities=[3])).code == ErrorCode.UNSUPPORTED
    assert node.fail(stamped, one(delays_ms=[50])).code == ErrorCode.UNSUPPORTED


# -- late messages -------------------------------------------------------------------------------------------


def late_ones(node: NodeHarness) -> Received:
    """What is in the queue of late messages."""
    return node.receive(node.show("orders.late").queue_id)


def test_late_messages_go_to_their_own_queue_and_say_how_late_they_are() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    start_us = node.now_ms * 1_000
    send(node, queue, [b"x"], start_us, process=5)
    node.advance(WINDOW_MS)
    node.send(
        queue,
        [b"late", b"in time", b"later"],
        process=6,
        stamps_us=[start_us - 700, start_us + 10, start_us - 500],
    )
    late = late_ones(node)
    assert late.bodies == [b"late", b"later"]
    origin = late.heads[0].origin
    assert origin is not None
    assert (origin.source, origin.reason) == ("orders", "late")
    assert origin.late is not None
    assert origin.late.floor_us == start_us
    assert origin.late.window_needed_us == WINDOW_MS * 1_000 + 700
    assert origin.late.precedes == TimestampId(start_us, 5, 0).to_text()
    assert (late.heads[0].stamp_us, late.heads[0].process) == (start_us - 700, 6)
    node.advance(WINDOW_MS)
    assert node.drain(queue) == [b"x", b"in time"]
    shown = node.show("orders").statistics
    assert shown.late_total == 2
    assert shown.dead_lettered_total == 0
    assert node.show("orders.late").settings.retention_ms > node.show("orders").settings.retention_ms


def test_the_queue_of_late_messages_is_made_again_when_it_was_deleted() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    for _ in range(2):
        send(node, queue, [b"x"], node.now_ms * 1_000)
        send(node, queue, [b"late"], node.now_ms * 1_000 - 1)
        assert late_ones(node).bodies == [b"late"]
        node.call(messages.DeleteQueue("orders.late"))
        node.advance(1)
    assert node.drain(queue) == [b"x", b"x"]


def test_a_late_message_sent_again_is_stored_once() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    start_us = node.now_ms * 1_000
    send(node, queue, [b"x"], start_us)
    first = send(node, queue, [b"late"], start_us - 1, producer=3, number=1)
    assert send(node, queue, [b"late"], start_us - 1, producer=3, number=1) == first
    assert late_ones(node).bodies == [b"late"]


def test_a_late_message_can_be_redriven() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    send(node, queue, [b"x"], node.now_ms * 1_000)
    node.advance(WINDOW_MS)
    send(node, queue, [b"late"], node.now_ms * 1_000 - 1_000 * WINDOW_MS)
    send(node, queue, [b"waits"], node.now_ms * 1_000)
    node.call(messages.Redrive(node.show("orders.late").queue_id))
    assert node.drain(queue) == [b"x", b"late"]  # before everything that waits in the window
    node.advance(WINDOW_MS)
    assert node.drain(queue) == [b"waits"]


def test_names_of_sorted_queues_leave_room_for_late() -> None:
    node = NodeHarness()
    settings = QueueSettings(ordering="causal")
    node.call(messages.CreateQueue("q" * 155, settings))
    assert node.fail(messages.CreateQueue("q" * 156, settings)).code == ErrorCode.BAD_REQUEST


# -- crash and restart ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["crash", "restart"])
def test_the_watermark_survives(how: str) -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    start_us = node.now_ms * 1_000
    send(node, queue, [b"b"], start_us, process=1)
    send(node, queue, [b"a"], start_us - 1_000, process=2)
    node.advance(WINDOW_MS - 1)
    send(node, queue, [b"c"], start_us + 5, process=1)
    getattr(node, how)()
    assert node.show("orders").statistics.watermark_us == start_us - 1_000
    send(node, queue, [b"late"], start_us - 1_001, process=3)
    send(node, queue, [b"ab"], start_us - 999, process=3)
    node.advance(WINDOW_MS + 5)
    assert node.drain(queue) == [b"a", b"ab", b"b", b"c"]
    assert late_ones(node).bodies == [b"late"]


def test_what_was_let_out_keeps_its_order_through_checkpoints() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    start_us = node.now_ms * 1_000
    expected = []
    for round_number in range(60):  # enough for several checkpoints
        at_us = start_us + round_number * 1_000
        node.send(queue, [b"%04d-b" % round_number + bytes(5_000)], process=1, time_us=at_us + 900)
        node.send(queue, [b"%04d-a" % round_number + bytes(5_000)], process=2, time_us=at_us + 800)
        expected += [b"%04d-a" % round_number, b"%04d-b" % round_number]
        node.advance(1)
    node.restart()
    assert [body[:6] for body in node.drain(queue)] == expected


def test_a_clock_that_knows_nothing_holds_up_the_window_and_nothing_is_lost() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    send(node, queue, [b"a"], node.now_ms * 1_000)
    node.uncertainty_us = None
    node.advance(10 * WINDOW_MS)
    assert node.receive(queue).bodies == []
    node.uncertainty_us = 0
    node.advance(20)
    assert node.receive(queue).bodies == [b"a"]


# -- causal --------------------------------------------------------------------------------------------------


def test_causal_queues_order_each_session_by_its_own_clock() -> None:
    node = NodeHarness()
    node.uncertainty_us = None  # they need no clock
    queue = node.create("orders", ordering="causal", window_ms=WINDOW_MS)
    send(node, queue, [b"1b"], 2_000, process=1)
    send(node, queue, [b"2b"], 10**15, process=2)
    send(node, queue, [b"1a"], 1_000, process=1)
    node.send(queue, [b"plain"])
    assert peeked(node, queue) == ["held"] * 4
    node.advance(WINDOW_MS)
    assert node.drain(queue) == [b"1a", b"1b", b"2b", b"plain"]
    send(node, queue, [b"late"], 1_500, process=1)
    send(node, queue, [b"1c"], 3_000, process=1)
    late = late_ones(node)
    assert late.bodies == [b"late"]
    assert late.heads[0].origin is not None
    assert late.heads[0].origin.late is not None
    assert late.heads[0].origin.late.floor_us == 2_000
    node.advance(WINDOW_MS)
    assert node.drain(queue) == [b"1c"]


def test_a_repeated_receive_attempt_gives_the_same_order() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    start_us = node.now_ms * 1_000
    node.send(queue, [b"c", b"b", b"a"], process=1, stamps_us=[start_us, start_us - 1, start_us - 2])
    for _ in range(2):
        assert node.receive(queue, attempt=b"try").bodies == [b"a", b"b", b"c"]


def test_subscribers_get_the_order_of_stamps() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    start_us = node.now_ms * 1_000
    subscription = node.start(messages.Subscribe(queue, 10))
    node.send(queue, [b"c", b"b", b"a"], process=1, stamps_us=[start_us, start_us - 1, start_us - 2])
    arrived = node.answers(subscription)
    answer = arrived[0].answer
    assert isinstance(answer, messages.Delivery)
    assert [head.first for head in answer.batches] == [3, 2, 1]


# -- purge, expiry, overflow ---------------------------------------------------------------------------------


def test_a_purge_takes_what_waits_and_leaves_the_watermark() -> None:
    node = NodeHarness()
    queue = clock_queue(node)
    start_us = node.now_ms * 1_000
    send(node, queue, [b"a"], start_us - 1_000 * WINDOW_MS)
    node.advance(1)
    send(node, queue, [b"b"], start_us)
    assert node.call(messages.Purge(queue)) == messages.Count(2)
    send(node, queue, [b"late"], start_us - 1_000 * WINDOW_MS)
    assert late_ones(node).bodies == [b"late"]
    node.advance(2 * WINDOW_MS)
    assert node.drain(queue) == []


def test_what_waits_expires() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=1_000)
    node.send(queue, [b"a", b"b"], process=1, time_us=node.now_ms * 1_000, ttls_ms=[100, 5_000])
    node.advance(500)
    assert peeked(node, queue) == ["held"]
    node.advance(600)
    assert node.drain(queue) == [b"b"]


def test_what_waits_counts_and_can_be_dropped() -> None:
    node = NodeHarness()
    queue = clock_queue(node, max_messages=2, overflow="drop-oldest")
    start_us = node.now_ms * 1_000
    for place, body in enumerate((b"a", b"b", b"c")):
        send(node, queue, [body], start_us - place)
    node.advance(WINDOW_MS)
    assert node.drain(queue) == [b"c", b"b"]
    assert node.show("orders").statistics.dropped_total == 1


def test_a_full_queue_refuses_what_would_wait() -> None:
    node = NodeHarness()
    queue = clock_queue(node, max_messages=1)
    send(node, queue, [b"a"], node.now_ms * 1_000)
    request = messages.Send(queue, process=1, time_us=node.now_ms * 1_000)
    assert node.fail(request, one()).code == ErrorCode.QUEUE_FULL


def test_one_lease_at_a_time_in_the_order_of_groups() -> None:
    node = NodeHarness()
    queue = clock_queue(node, window_ms=0)
    at_us = node.now_ms * 1_000
    node.send(
        queue,
        [b"a1", b"b1", b"a2"],
        groups=[b"a", b"b", b"a"],
        process=1,
        stamps_us=[at_us - 2, at_us - 1, at_us],
    )
    first = node.receive(queue, 1)
    assert first.bodies == [b"a1"]
    assert node.receive(queue).bodies == [b"b1"]
    node.call(messages.Release([first.receipt()]))
    assert node.receive(queue).bodies == [b"a1", b"a2"]


# -- best-effort queues --------------------------------------------------------------------------------------


def test_late_messages_of_best_effort_queues_go_to_the_head() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    for number in range(4):
        node.send(queue, [b"%d" % number], process=1, counter=number, time_us=1_000 + number)
    assert node.receive(queue, 2).bodies == [b"0", b"1"]
    node.send(queue, [b"late"], process=2, time_us=900)
    node.send(queue, [b"later"], process=2, time_us=950)
    node.send(queue, [b"new"], process=2, time_us=2_000)
    node.restart()
    assert node.drain(queue) == [b"late", b"later", b"2", b"3", b"new"]
    assert node.show("orders").statistics.late_total == 2


def test_messages_without_stamps_are_never_late() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    node.send(queue, [b"0"])
    node.send(queue, [b"1"], process=1, time_us=1_000)
    assert node.drain(queue) == [b"0", b"1"]
    node.send(queue, [b"2", b"3"])
    assert node.drain(queue) == [b"2", b"3"]
    assert node.show("orders").statistics.late_total == 0

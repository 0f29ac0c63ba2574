"""The clock desk: the time at once, ids that never repeat, and a server that does not know the time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.backend.node.clock_handler import ClockHandler
from penstock.model import limits
from penstock.model.batch import Buffer, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.timestamp_id import IdRange, TimestampId
from penstock.wire import messages
from penstock.wire.frames import Frame, FrameReader
from penstock.wire.messages import ClockReading, decode_answer
from tests.backend.harness import NodeHarness

START_US = 1_700_000_000_000_000


class Clock:
    """A clock that shows what a test says."""

    def __init__(self) -> None:
        self.known: ClockInterval | None = around(START_US, 10)

    def __call__(self) -> ClockInterval | None:
        return self.known

    def handler(self, process: int = 5) -> ClockHandler:
        return ClockHandler(self, "chrony", 150, process)


def readings(output: list[tuple[int, list[Buffer]]]) -> list[tuple[int, int, ClockReading]]:
    found = []
    for connection, buffers in output:
        for frame in FrameReader().feed(b"".join(buffers)):
            answer = decode_answer(frame.head)
            assert isinstance(answer, ClockReading)
            found.append((connection, frame.request_id, answer))
    return found


def test_a_reading_tells_when_the_question_came_and_when_the_answer_left() -> None:
    clock = Clock()
    handler = clock.handler()
    handler.ask(1, 77)
    clock.known = around(START_US + 500, 20)
    assert handler.take({1: True}) == [
        (1, 77, ClockReading(START_US - 10, START_US + 10, START_US + 480, START_US + 520, 150, "chrony"))
    ]
    assert handler.take({1: True}) == []


def test_who_has_gone_is_not_answered() -> None:
    handler = Clock().handler()
    handler.ask(1, 77)
    handler.ask(2, 78)
    assert [(connection, request) for connection, request, _ in handler.take({2: True})] == [(2, 78)]


def test_a_server_that_does_not_know_the_time_says_so() -> None:
    clock = Clock()
    clock.known = None
    handler = clock.handler()
    handler.ask(1, 77)
    assert handler.take({1: True}) == [(1, 77, ClockReading(0, 0, 0, 0, 150, "chrony"))]
    with pytest.raises(PenstockError, match="chrony has not answered yet") as refused:
        handler.take_ids(1)
    assert refused.value.code is ErrorCode.CLOCK_UNCERTAIN


@pytest.mark.parametrize("count", [0, -1, limits.IDS_PER_REQUEST + 1])
def test_ids_are_taken_in_reasonable_numbers(count: int) -> None:
    with pytest.raises(PenstockError, match="take 1 to 100000"):
        Clock().handler().take_ids(count)


@given(st.lists(st.tuples(st.integers(-2_000, 2_000), st.integers(1, 50)), min_size=1, max_size=20))
def test_ids_rise_whatever_the_clock_does_and_say_how_far_they_may_be_off(
    steps: list[tuple[int, int]],
) -> None:
    clock = Clock()
    handler = clock.handler()
    now_us = START_US
    ids: list[TimestampId] = []
    for step_us, count in steps:
        now_us += step_us
        clock.known = around(now_us, 30)
        taken = handler.take_ids(count)
        assert abs(taken.time_us - now_us) + 30 <= taken.uncertainty_us
        ids += IdRange(TimestampId(taken.time_us, taken.process, taken.counter), taken.count).ids()
    assert ids == sorted(set(ids))


def test_the_time_is_told_while_other_answers_wait_for_the_disk() -> None:
    harness = NodeHarness()
    queue_id = harness.create("orders")
    node = harness.node
    for request_id, request, body in (
        (901, messages.Send(queue_id), encode_parts([b"a"])),
        (902, messages.ReadClock(), b""),
    ):
        head = memoryview(messages.encode_message(request))
        node.handle(1, Frame(request_id, head, memoryview(body)), harness.now_ms)
    flush = node.take_flush()
    assert flush is not None
    (reading,) = readings(node.take_output())  # the flush has not run
    assert reading[:2] == (1, 902)
    assert reading[2].received_earliest_us == harness.now_ms * 1_000
    flush.run()
    node.flushed(flush, harness.now_ms)
    ((_, buffers),) = node.take_output()
    ((request_id, head, _, _),) = FrameReader().feed(b"".join(buffers))
    assert request_id == 901
    assert isinstance(messages.decode_answer(head), messages.SendResult)


def test_a_node_tells_the_time_only_to_who_has_said_hello() -> None:
    harness = NodeHarness()
    harness.node.connected(2)
    head = memoryview(messages.encode_message(messages.ReadClock()))
    harness.node.handle(2, Frame(1, head, memoryview(b"")), harness.now_ms)
    harness.node.take_flush()
    ((connection, buffers),) = harness.node.take_output()
    ((_, answer, _, _),) = FrameReader().feed(b"".join(buffers))
    assert connection == 2
    assert isinstance(messages.decode_answer(answer), messages.Failed)

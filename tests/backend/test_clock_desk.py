"""The clock desk: the time at once, ids that never repeat, and a server that does not know the time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.backend.clock_desk import ClockDesk
from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.timestamp_id import IdRange, TimestampId
from penstock.wire.frames import FrameReader
from penstock.wire.messages import ClockReading, decode_answer

START_US = 1_700_000_000_000_000


class Clock:
    """A clock that shows what a test says."""

    def __init__(self) -> None:
        self.known: ClockInterval | None = around(START_US, 10)

    def __call__(self) -> ClockInterval | None:
        return self.known

    def desk(self, process: int = 5) -> ClockDesk:
        return ClockDesk(self, "chrony", 150, process)


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
    desk = clock.desk()
    desk.ask(1, 77)
    clock.known = around(START_US + 500, 20)
    assert readings(desk.take({1: True})) == [
        (1, 77, ClockReading(START_US - 10, START_US + 10, START_US + 480, START_US + 520, 150, "chrony"))
    ]
    assert desk.take({1: True}) == []


def test_who_has_gone_is_not_answered() -> None:
    desk = Clock().desk()
    desk.ask(1, 77)
    desk.ask(2, 78)
    assert [(connection, request) for connection, request, _ in readings(desk.take({2: True}))] == [(2, 78)]


def test_a_server_that_does_not_know_the_time_says_so() -> None:
    clock = Clock()
    clock.known = None
    desk = clock.desk()
    desk.ask(1, 77)
    assert readings(desk.take({1: True})) == [(1, 77, ClockReading(0, 0, 0, 0, 150, "chrony"))]
    with pytest.raises(PenstockError, match="chrony has not told it") as refused:
        desk.take_ids(1)
    assert refused.value.code is ErrorCode.CLOCK_UNCERTAIN


@pytest.mark.parametrize("count", [0, -1, limits.IDS_PER_REQUEST + 1])
def test_ids_are_taken_in_reasonable_numbers(count: int) -> None:
    with pytest.raises(PenstockError, match="take 1 to 100000"):
        Clock().desk().take_ids(count)


@given(st.lists(st.tuples(st.integers(-2_000, 2_000), st.integers(1, 50)), min_size=1, max_size=20))
def test_ids_rise_whatever_the_clock_does_and_say_how_far_they_may_be_off(
    steps: list[tuple[int, int]],
) -> None:
    clock = Clock()
    desk = clock.desk()
    now_us = START_US
    ids: list[TimestampId] = []
    for step_us, count in steps:
        now_us += step_us
        clock.known = around(now_us, 30)
        taken = desk.take_ids(count)
        assert abs(taken.time_us - now_us) + 30 <= taken.uncertainty_us
        ids += IdRange(TimestampId(taken.time_us, taken.process, taken.counter), taken.count).ids()
    assert ids == sorted(set(ids))

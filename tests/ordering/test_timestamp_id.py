"""Timestamp ids: one order in every form, none handed out twice, whatever the clock does."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import PenstockError
from penstock.ordering import timestamp_id
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.timestamp_id import (
    BEFORE_ALL,
    COUNTERS,
    PROCESS_MAX,
    TIME_MAX,
    Sequencer,
    TimestampId,
    last_of,
)

IDS = st.builds(
    TimestampId,
    st.integers(0, TIME_MAX),
    st.integers(0, PROCESS_MAX),
    st.integers(0, COUNTERS - 1),
)
NEAR_IDS = st.builds(TimestampId, st.integers(0, 2), st.integers(0, 2), st.integers(0, 2))


@given(IDS)
def test_every_form_can_be_read_back(identifier: TimestampId) -> None:
    assert timestamp_id.from_integer(identifier.to_integer()) == identifier
    assert timestamp_id.from_bytes(identifier.to_bytes()) == identifier
    assert timestamp_id.from_text(identifier.to_text()) == identifier
    assert len(identifier.to_bytes()) == 16
    assert len(identifier.to_text()) == 26


@given(IDS | NEAR_IDS, IDS | NEAR_IDS)
def test_every_form_has_the_same_order(left: TimestampId, right: TimestampId) -> None:
    smaller = left < right
    assert (left.to_integer() < right.to_integer()) == smaller
    assert (left.to_bytes() < right.to_bytes()) == smaller
    assert (left.to_text() < right.to_text()) == smaller
    assert (left.to_text() == right.to_text()) == (left == right)


@given(IDS)
def test_the_bounds_of_a_time_hold_its_ids(identifier: TimestampId) -> None:
    assert BEFORE_ALL < identifier <= last_of(identifier.time_us)
    assert identifier.time_us == TIME_MAX or last_of(identifier.time_us) < TimestampId(
        identifier.time_us + 1, 0, 0
    )


@pytest.mark.parametrize(
    "text",
    ["", "0" * 25, "0" * 27, "W" * 26, "v" * 26, "0" * 25 + "1", "é" * 26, "+" + "0" * 25, " " + "0" * 25],
)
def test_text_that_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(PenstockError, match="is not a timestamp id"):
        timestamp_id.from_text(text)


def test_bytes_and_numbers_of_another_size_are_refused() -> None:
    with pytest.raises(PenstockError, match="16 bytes, not 15"):
        timestamp_id.from_bytes(bytes(15))
    for number in (-1, 2**128):
        with pytest.raises(PenstockError, match="128 bits"):
            timestamp_id.from_integer(number)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, COUNTERS)), min_size=1, max_size=30),
    st.integers(0, COUNTERS - 1),
)
def test_ids_only_rise_whatever_the_clock_and_the_counter_do(
    steps: list[tuple[int, int]], counter: int
) -> None:
    last = TimestampId(10, 3, counter)
    sequencer = Sequencer(3, last)
    for time_us, count in steps:
        taken = sequencer.take(ClockInterval(time_us, time_us), count)
        assert taken.first > last
        assert taken.first.time_us >= time_us
        assert taken.first.counter + count <= COUNTERS
        last = TimestampId(taken.first.time_us, 3, taken.first.counter + count - 1)


def test_a_batch_takes_consecutive_counters_that_run_on() -> None:
    sequencer = Sequencer(9)
    assert list(sequencer.take(around(1_000, 10), 2).ids()) == [
        TimestampId(1_000, 9, 0),
        TimestampId(1_000, 9, 1),
    ]
    assert list(sequencer.take(around(1_005, 10)).ids()) == [TimestampId(1_005, 9, 2)]


def test_a_clock_that_goes_back_is_waited_for() -> None:
    sequencer = Sequencer(9)
    sequencer.take(around(1_000, 10))
    assert sequencer.take(around(400, 10)).first == TimestampId(1_000, 9, 1)
    assert sequencer.ahead_us(around(400, 10)) == 590
    assert sequencer.ahead_us(around(1_000, 10)) == 0


def test_a_counter_that_comes_round_moves_time_on() -> None:
    sequencer = Sequencer(9, TimestampId(1_000, 9, COUNTERS - 2))
    assert sequencer.take(around(1_000, 0)).first == TimestampId(1_000, 9, COUNTERS - 1)
    assert sequencer.take(around(1_000, 0)).first == TimestampId(1_001, 9, 0)


def test_processes_are_drawn_from_the_dice_that_are_passed() -> None:
    assert timestamp_id.draw_process(random.Random(7)) == timestamp_id.draw_process(random.Random(7))
    assert 0 <= timestamp_id.draw_process(random.Random(8)) <= PROCESS_MAX


def test_what_no_id_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="48 bits"):
        Sequencer(PROCESS_MAX + 1)
    for count in (0, COUNTERS + 1):
        with pytest.raises(ValueError, match="taken at once"):
            Sequencer(1).take(around(1, 0), count)
    with pytest.raises(PenstockError, match="past the end"):
        Sequencer(1).take(around(TIME_MAX + 1, 0))

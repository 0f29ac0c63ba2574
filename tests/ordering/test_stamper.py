"""Stamps of a producer: true to when messages were made, unique, and in the order in which they were made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.stamper import Stamper
from penstock.ordering.timestamp_id import COUNTERS

START_US = 1_700_000_000_000_000


def test_messages_get_the_time_at_which_they_were_made_though_the_time_is_asked_for_once() -> None:
    stamps = Stamper(7).stamp(around(START_US, 50), 10_000, [9_000, 9_500, 10_000])
    assert stamps.times_us == [START_US - 1_000, START_US - 500, START_US]
    assert (stamps.process, stamps.counter) == (7, 0)
    assert stamps.uncertainty_us == 51  # 1 ms of drift at 200 millionths is less than a microsecond
    assert stamps.at(1) == (START_US - 500, 7, 1)


def test_better_knowledge_of_the_time_does_not_put_a_later_message_before_an_earlier_one() -> None:
    producer = Stamper(7)
    first = producer.stamp(around(START_US, 900), 10_000, [10_000])
    second = producer.stamp(around(START_US - 600, 10), 10_100, [10_100])
    assert second.at(0) > first.at(0)
    assert second.times_us == [
        START_US
    ]  # the second was made 100 µs after the first, by a clock 700 µs behind
    assert second.uncertainty_us == 10 + 600


def test_how_far_stamps_are_ahead_is_known() -> None:
    producer = Stamper(7)
    assert producer.ahead_us(around(START_US, 0)) == 0
    producer.stamp(around(START_US, 900), 10_000, [10_000])
    assert producer.ahead_us(around(START_US - 600, 10)) == 600
    assert producer.ahead_us(around(START_US + 600, 10)) == 0


def test_a_message_that_another_producer_of_the_process_stamped_late_keeps_its_own_time() -> None:
    producer = Stamper(7)
    producer.stamp(around(START_US, 0), 10_000, [10_000])
    assert producer.stamp(around(START_US, 0), 10_000, [8_000]).times_us == [START_US - 2_000]


def test_ids_of_one_time_follow_each_other() -> None:
    producer = Stamper(7)
    now = around(START_US, 5)
    assert list(producer.take(now, 1, 2).ids()) == [(START_US, 7, 0), (START_US, 7, 1)]
    assert producer.take(now, 1, 1).first == (START_US, 7, 2)


def test_times_that_messages_bring_along_are_kept_whatever_they_are() -> None:
    producer = Stamper(7)
    producer.stamp(around(START_US, 0), 5, [5])
    assert producer.given([30, 10, 20]) == (7, 1, [30, 10, 20], 0)
    assert producer.stamp(around(START_US, 0), 5, [5]).at(0) == (START_US, 7, 4)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[ClockInterval, int, list[int]]]:
    """What a producer may go through: the time known better and worse, clocks that stand still, batches of any size."""
    reading, made = 1_000, []
    batches = []
    for _ in range(draw(st.integers(1, 12))):
        for _ in range(draw(st.integers(1, 5))):
            reading += draw(st.integers(0, 400))
            made.append(reading)
        reading += draw(st.integers(0, 400))
        guess = START_US + reading + draw(st.integers(-500, 500))
        batches.append((around(guess, draw(st.integers(500, 800))), reading, made))
        made = []
    return batches


@given(histories(), st.integers(0, 40))
def test_ids_rise_in_the_order_of_making_and_are_no_further_off_than_they_say(
    history: list[tuple[ClockInterval, int, list[int]]], left: int
) -> None:
    producer = Stamper(7)
    used = COUNTERS - 1 - left  # the counter comes round in the middle of it
    producer.take(around(0, 0), 0, used)
    ids = []
    for now, reading, made in history:
        stamps = producer.stamp(now, reading, made)
        for index, at in enumerate(made):
            assert abs(stamps.times_us[index] - (START_US + at)) <= stamps.uncertainty_us
            ids.append(stamps.at(index))
    assert ids == sorted(set(ids))

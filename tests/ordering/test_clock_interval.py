"""Intervals and the policy for those that are too wide."""

from __future__ import annotations

from typing import Literal

from penstock.ordering.clock_interval import ClockInterval, UncertaintyPolicy, around


def test_the_middle_is_never_further_off_than_the_uncertainty() -> None:
    for interval in (ClockInterval(10, 10), ClockInterval(10, 11), around(500, 25)):
        assert interval.middle_us - interval.uncertainty_us <= interval.earliest_us
        assert interval.middle_us + interval.uncertainty_us >= interval.latest_us
        assert interval.holds(interval.middle_us)


def test_intervals_that_touch_do_not_contradict_each_other() -> None:
    assert not ClockInterval(0, 5).contradicts(ClockInterval(5, 9))
    assert ClockInterval(0, 4).contradicts(ClockInterval(5, 9))
    assert ClockInterval(5, 9).contradicts(ClockInterval(0, 4))
    assert ClockInterval(0, 4).hull(ClockInterval(6, 9)) == ClockInterval(0, 9)


def test_a_strict_queue_goes_on_up_to_its_maximum_and_then_holds_or_refuses() -> None:
    choices: tuple[Literal["hold", "refuse"], ...] = ("hold", "refuse")
    for choice in choices:
        policy = UncertaintyPolicy(100, choice)
        assert policy.judge(around(10_000, 100)) == "go"
        assert policy.judge(around(10_000, 101)) == choice
        assert policy.judge(None) == choice


def test_the_reason_names_the_numbers_and_the_setting() -> None:
    policy = UncertaintyPolicy(100)
    assert "uncertain by 250 µs, more than the 100 µs" in policy.explain(around(0, 250))
    assert "not synchronized yet" in policy.explain(None)
    assert "max_uncertainty" in policy.explain(around(0, 250))

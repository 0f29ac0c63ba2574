"""A node's own time: it never goes back, follows the wall clock gently, and begins after what is on record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.own_timeline import JUMP_US, SLEW_PPM, OwnTimeline

HOUR_US = 3_600_000_000


@given(
    st.integers(0, 10**15),
    st.lists(st.tuples(st.integers(0, 10**7), st.integers(-HOUR_US, HOUR_US)), min_size=1, max_size=30),
)
def test_time_never_goes_back_and_passes_at_a_rate_clients_allow_for(
    last_us: int, looks: list[tuple[int, int]]
) -> None:
    wall_us, reading_us = 10**12, 500
    timeline = OwnTimeline(wall_us, reading_us, last_us)
    before_us = timeline.interval(wall_us, reading_us).earliest_us
    assert before_us > last_us
    for elapsed_us, wrong_us in looks:
        wall_us += elapsed_us
        reading_us += elapsed_us
        now = timeline.interval(wall_us + wrong_us, reading_us)
        assert now.earliest_us == now.latest_us >= before_us
        passed_us = now.earliest_us - before_us
        if now.earliest_us != wall_us + wrong_us:  # it did not leap forward to a wall clock far ahead
            assert abs(passed_us - elapsed_us) <= elapsed_us * SLEW_PPM // 1_000_000 + 1
        before_us = now.earliest_us


def test_it_shows_the_wall_clock_and_keeps_to_it() -> None:
    timeline = OwnTimeline(5_000_000, 100)
    assert timeline.interval(5_000_000, 100) == ClockInterval(5_000_000, 5_000_000)
    # The monotonic clock is slow by 50 ppm: looks a millisecond apart add up.
    for look in range(1, 10_001):
        now = timeline.interval(5_000_000 + look * 1_000 + look // 20, 100 + look * 1_000)
    assert abs(now.earliest_us - (5_000_000 + 10_000_000 + 500)) <= 1


def test_a_wall_clock_set_back_is_waited_for_gently() -> None:
    timeline = OwnTimeline(5_000_000, 0)
    now = timeline.interval(2_000_000, 1_000_000)
    assert now.earliest_us == 6_000_000 - SLEW_PPM
    assert timeline.ahead_us(2_000_000) == 4_000_000 - SLEW_PPM


def test_a_wall_clock_far_ahead_is_believed_at_once() -> None:
    timeline = OwnTimeline(5_000_000, 0)
    assert timeline.interval(5_000_000 + JUMP_US, 0).earliest_us == 5_000_000 + JUMP_US
    assert timeline.interval(5_000_000 + JUMP_US, 0).earliest_us == 5_000_000 + JUMP_US


def test_a_monotonic_clock_that_goes_back_is_waited_for() -> None:
    timeline = OwnTimeline(5_000_000, 1_000)
    assert timeline.interval(5_000_000, 400).earliest_us == 5_000_000
    assert timeline.interval(5_000_100, 1_100).earliest_us == 5_000_100

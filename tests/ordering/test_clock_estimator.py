"""The estimator: true time is inside while clocks keep to their bounds, and soon again after they broke them."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from penstock.ordering.clock_estimator import ClockEstimator, Exchange, host_reading
from penstock.ordering.clock_interval import ClockInterval, around
from tests.ordering.clocks import LocalClock, TrueTime

BEND = st.floats(-1, 1)
_ERROR = st.just(0) | st.integers(0, 3_000)
ERROR = st.tuples(_ERROR, _ERROR)
"""How far a server's bounds are from true time, below and above: any interval that holds it."""
DELAY = st.integers(0, 20_000) | st.integers(0, 3)
# Exact servers and tiny delays are frequent, because that is where rounding would show.


def holds(interval: ClockInterval, true_us: Fraction) -> bool:
    return interval.earliest_us <= true_us <= interval.latest_us


class World:
    """A client that compares its clock with servers whose bounds are right."""

    def __init__(self, drift_ppm: int) -> None:
        self.true = TrueTime()
        self.clock = LocalClock(self.true, drift_ppm)
        self.estimator = ClockEstimator(drift_ppm)

    def server(self, error: tuple[int, int], wrong_us: int = 0) -> ClockInterval:
        below, above = error
        now_us = self.true.now_us + wrong_us
        return ClockInterval(floor(now_us) - below, ceil(now_us) + above)

    def exchange(
        self,
        delays: tuple[int, int, int],
        bend: float = 0.0,
        error: tuple[int, int] = (0, 0),
        source: str = "server",
        wrong_us: int = 0,
    ) -> Literal["agreed", "contradicted", "rejected"]:
        """A round trip; delays are in thirds of a microsecond, so that readings are rounded."""
        sent_us = self.clock.read_us()
        self.clock.run(Fraction(delays[0], 3), bend)
        received = self.server(error, wrong_us)
        self.clock.run(Fraction(delays[1], 3), bend)
        answered = self.server(error, wrong_us)
        self.clock.run(Fraction(delays[2], 3), bend)
        return self.estimator.learn(
            Exchange(sent_us, received, answered, self.clock.read_us()), source=source
        )

    def known(self) -> ClockInterval:
        interval = self.estimator.interval(self.clock.read_us())
        assert interval is not None
        return interval

    def right(self) -> bool:
        return holds(self.known(), self.true.now_us)


STEP = st.tuples(
    st.integers(0, 60_000_000) | st.integers(0, 3),
    st.tuples(DELAY, DELAY, DELAY),
    BEND,
    ERROR,
    st.sampled_from(["server", "other", "host"]),
)


@given(st.sampled_from([0, 1, 50, 200, 5_000]), st.lists(STEP, min_size=1, max_size=40))
def test_true_time_is_always_inside_while_the_bounds_hold(
    drift_ppm: int, steps: list[tuple[int, tuple[int, int, int], float, tuple[int, int], str]]
) -> None:
    world = World(drift_ppm)
    for pause_us, delays, bend, error, source in steps:
        world.clock.run(Fraction(pause_us, 3), -bend)
        if world.estimator.interval(world.clock.read_us()) is not None:
            assert world.right()
        if source == "host":
            before_us = world.clock.read_us()
            world.clock.run(delays[0], bend)
            known = world.server(error)
            world.clock.run(delays[1], bend)
            world.estimator.learn(host_reading(before_us, known, world.clock.read_us()), source)
        else:
            assert world.exchange(delays, bend, error, source) == "agreed"
        assert world.right()
    world.clock.run(3_600_000_000, 1)
    assert world.right()
    assert world.estimator.contradictions == world.estimator.breaks == 0


@given(st.sampled_from([-1.0, 1.0]), st.integers(1, 3_600_000_000), st.integers(0, 1))
def test_after_a_freeze_or_a_leap_two_exchanges_that_contradict_the_past_put_it_right(
    bend: float, size_us: int, freeze: int
) -> None:
    world = World(200)
    for _ in range(3):
        world.exchange((100, 10, 100))
    if freeze:
        world.clock.freeze(size_us)
    else:
        world.clock.step(size_us)
    first = world.exchange((100, 10, 100), bend)
    if first == "contradicted":
        assert world.right()
        assert world.known().uncertainty_us * 2 >= size_us - 1_000
        world.exchange((100, 10, 100), bend)
        assert world.right()
        assert world.known().uncertainty_us < 200
    for _ in range(8):
        world.exchange((100, 10, 100), bend)
    assert world.right()


def test_a_break_too_small_to_contradict_anything_is_forgotten_with_the_exchanges_of_its_time() -> None:
    world = World(200)
    world.exchange((0, 0, 3_000))  # true time is at the upper bound
    world.clock.freeze(300)
    assert world.exchange((1_500, 0, 1_500)) == "agreed"
    assert not world.right()
    for _ in range(7):
        assert world.exchange((1_500, 0, 1_500)) == "agreed"
    assert world.right()


def test_a_clock_read_in_coarse_steps_is_allowed_for() -> None:
    estimator = ClockEstimator(drift_ppm=0, granularity_us=16_000)
    estimator.learn(Exchange(32_000, around(900_000, 0), around(900_000, 0), 32_000))
    # The same reading may be a whole step earlier or later, and the next one hardly later at all.
    assert estimator.interval(32_000) == ClockInterval(900_000 - 16_000, 900_000 + 2 * 16_000)
    assert estimator.interval(48_000) == ClockInterval(900_000, 900_000 + 3 * 16_000)


@given(st.lists(st.tuples(DELAY, DELAY, BEND, ERROR, st.booleans()), min_size=1, max_size=20))
def test_readings_and_exchanges_need_not_be_handled_in_the_order_of_their_times(
    steps: list[tuple[int, int, float, tuple[int, int], bool]],
) -> None:
    """A turn may ask for the interval of a reading taken at its start, or take exchanges in after a later look."""
    world = World(200)
    put_off: list[Exchange] = []
    for before_us, after_us, bend, error, at_once in steps:
        reading_us, true_us = world.clock.read_us(), world.true.now_us
        world.clock.run(Fraction(before_us, 3), bend)
        known = world.server(error)
        world.clock.run(Fraction(after_us, 3), bend)
        exchange = Exchange(reading_us, known, known, world.clock.read_us())
        if at_once:
            world.estimator.learn(exchange)
        else:
            put_off.append(exchange)
        interval = world.estimator.interval(reading_us)
        assert interval is None or holds(interval, true_us)
    for exchange in put_off:
        assert world.estimator.learn(exchange) == "agreed"
        assert world.right()
    assert world.estimator.contradictions == world.estimator.breaks == 0


def test_before_the_first_exchange_nothing_is_known() -> None:
    assert ClockEstimator().interval(5) is None


def test_an_exchange_leaves_half_the_round_trip_of_uncertainty() -> None:
    estimator = ClockEstimator(drift_ppm=0, granularity_us=0)
    estimator.learn(Exchange(1_000, around(70_000, 0), around(70_050, 0), 1_250))
    assert estimator.interval(1_250) == ClockInterval(70_050, 70_250)


def test_uncertainty_grows_with_the_stated_drift_and_shrinks_with_a_better_exchange() -> None:
    estimator = ClockEstimator(drift_ppm=100, granularity_us=0)
    estimator.learn(Exchange(0, around(50, 0), around(50, 0), 0))
    later = estimator.interval(10_000_000)
    assert later == ClockInterval(10_000_050 - 1_000, 10_000_050 + 1_000)
    worse = Exchange(9_990_000, around(9_995_050, 0), around(9_995_050, 0), 10_000_000)
    estimator.learn(worse)
    assert estimator.interval(10_000_000) == later  # a slow round trip takes nothing away
    estimator.learn(Exchange(10_000_000, around(10_000_060, 0), around(10_000_060, 0), 10_000_020))
    known = estimator.interval(10_000_020)
    assert known is not None
    assert known.uncertainty_us <= 11


def test_a_bound_of_the_host_narrows_what_the_network_left() -> None:
    world = World(200)
    world.exchange((15_000, 0, 15_000))
    assert world.known().uncertainty_us > 4_000
    before_us = world.clock.read_us()
    world.estimator.learn(host_reading(before_us, world.server((40, 40)), world.clock.read_us()), "host")
    assert world.known().uncertainty_us < 50
    assert world.right()


def test_sources_that_contradict_each_other_are_both_allowed_for() -> None:
    world = World(200)
    world.exchange((50, 0, 50), source="one")
    world.exchange((50, 0, 50), source="two", wrong_us=1_000_000)
    world.exchange((50, 0, 50), source="three", wrong_us=700_000)
    assert world.right()
    assert world.known().uncertainty_us > 400_000
    assert world.estimator.sources_contradict(world.clock.read_us())
    world.estimator.forget("two")
    world.estimator.forget("three")
    assert not world.estimator.sources_contradict(world.clock.read_us())
    assert world.right()


def test_a_server_that_steps_for_one_exchange_is_doubted_until_the_next() -> None:
    world = World(200)
    world.exchange((50, 0, 50))
    assert world.exchange((50, 0, 50), wrong_us=5_000_000) == "contradicted"
    assert world.right()
    assert world.known().uncertainty_us > 2_000_000
    assert world.exchange((50, 0, 50)) == "contradicted"
    assert world.right()
    assert world.exchange((50, 0, 50)) == "agreed"
    assert world.right()
    assert world.known().uncertainty_us < 200


def test_a_local_clock_that_goes_back_makes_everything_known_worthless() -> None:
    world = World(200)
    world.exchange((50, 0, 50))
    sent_us = world.clock.read_us()
    world.clock.step(-1_000)
    assert world.estimator.interval(world.clock.read_us()) is None
    assert world.estimator.breaks == 1
    world.clock.run(1_100, 0)
    late = Exchange(sent_us, world.server((0, 0)), world.server((0, 0)), sent_us - 1)
    assert world.estimator.learn(late) == "rejected"
    world.exchange((50, 0, 50))
    assert world.right()


def test_an_exchange_shorter_than_the_server_took_is_rejected() -> None:
    estimator = ClockEstimator()
    assert estimator.learn(Exchange(0, around(1_000, 0), around(9_000, 0), 100)) == "rejected"
    assert estimator.interval(200) is None
    assert estimator.contradictions == 1

"""Simulated clocks: bounded ones never leave true time outside of their interval, broken ones do."""

from __future__ import annotations

from random import Random

import pytest

from penstock.ordering.clock_estimator import DRIFT_PPM
from penstock.simulation.clocks import ClockPlan, LocalClock, NodeClock, NodeClockKind
from penstock.simulation.schedule import Schedule


def _missed(kind: NodeClockKind, seed: int) -> tuple[int, int]:
    """How often an interval did not hold true time, and how often there was one; restarts and disturbances included."""
    schedule, random = Schedule(1_700_000_000_000), Random(seed)
    clock = NodeClock(ClockPlan(node=kind), schedule, random)
    clock.started()
    missed = known = 0
    for _ in range(400):
        schedule.run_for(random.randint(0, 100))
        if random.random() < 0.03:
            clock.disturb()
        if random.random() < 0.01:
            clock.started()
        interval = clock.interval()
        if interval is not None:
            known += 1
            missed += not interval.holds(schedule.true_us)
    return missed, known


@pytest.mark.parametrize("seed", range(8))
def test_a_bounded_clock_always_holds_true_time(seed: int) -> None:
    missed, known = _missed("bounded", seed)
    assert missed == 0
    assert known > 100


def test_a_broken_clock_does_not() -> None:
    assert sum(_missed("broken", seed)[0] for seed in range(8)) > 0


def test_the_time_of_a_node_on_its_own_never_goes_back_while_it_lives() -> None:
    schedule, random = Schedule(1_700_000_000_000), Random(1)
    clock = NodeClock(ClockPlan(node="own"), schedule, random)
    clock.started()
    last_us = 0
    for _ in range(300):
        schedule.run_for(random.randint(0, 50))
        clock.disturb()
        interval = clock.interval()
        assert interval is not None
        assert interval.earliest_us == interval.latest_us >= last_us
        last_us = interval.latest_us


def test_a_local_clock_keeps_to_its_drift_and_can_be_made_to_break_it() -> None:
    schedule = Schedule(0)
    clock = LocalClock(schedule, Random(3))
    before_us = clock.read_us()
    schedule.run_for(10_000)
    passed_us = clock.read_us() - before_us
    assert abs(passed_us - 10_000_000) <= 10_000_000 * DRIFT_PPM // 1_000_000
    clock.freeze(500)
    frozen_us = clock.read_us()
    schedule.run_for(400)
    assert clock.read_us() == frozen_us
    schedule.run_for(200)
    assert 0 < clock.read_us() - frozen_us <= 110_000
    clock.step(-5_000)
    assert clock.read_us() < frozen_us + 110_000

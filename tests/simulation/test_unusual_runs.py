"""Runs with hundreds of queues and runs over days: some are drawn, they are what they say, and every promise holds."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.simulation.campaign import run_seed
from penstock.simulation.scenario import draw_scenario
from penstock.simulation.schedule import Schedule
from penstock.simulation.unusual_runs import DAYS, MANY_QUEUES, make_unusual
from penstock.simulation.world import World

HOUR_MS = 3_600_000


def test_both_kinds_are_drawn_seldom() -> None:
    kinds = Counter(make_unusual(draw_scenario(Random(seed))).kind for seed in range(1, 601))
    assert 3 <= kinds[DAYS] <= 30
    assert 3 <= kinds[MANY_QUEUES] <= 30
    assert kinds[""] > 540


@pytest.mark.parametrize("seed", [131, 189, 214])
def test_runs_with_hundreds_of_queues(seed: int) -> None:
    world = World(seed)
    assert len(world.scenario.queues) >= 100
    report = run_seed(seed)
    assert report.kind == MANY_QUEUES
    assert not report.violations
    assert report.messages > 300


@pytest.mark.parametrize("seed", [113, 133, 222])
def test_runs_over_days(seed: int) -> None:
    report = run_seed(seed)
    assert report.kind == DAYS
    assert not report.violations
    assert report.simulated_ms > 48 * HOUR_MS
    assert report.messages > 300


def test_work_goes_on_after_every_night() -> None:
    world = World(113)
    world.run()
    sent_ms = [message.sent_ms - world.schedule.start_ms for message in world.history.messages.values()]
    assert len(world.scenario.nights) >= 3
    for begins_ms, ends_ms in world.scenario.nights:
        assert any(ends_ms <= at_ms < ends_ms + 60_000 for at_ms in sent_ms)
        assert not any(begins_ms + 60_000 < at_ms < ends_ms for at_ms in sent_ms)


def test_who_rests_wakes_up_in_the_morning() -> None:
    schedule = Schedule(0)
    schedule.nights = ((100, 5_000), (6_000, 9_000))
    calls: list[int] = []
    for delay_ms in (50, 100, 4_999, 5_999, 6_010):
        schedule.after_rest(delay_ms, lambda: calls.append(schedule.elapsed_ms))
    schedule.run_for(20_000)
    assert calls == [50, 5_000, 5_399, 5_999, 9_010]


def test_a_campaign_says_how_many_there_were() -> None:
    told = CliRunner().invoke(app, ["simulate", "--seed", "131", "--seeds", "3", "--jobs", "1"]).output
    assert f"1 with {MANY_QUEUES}; " in told

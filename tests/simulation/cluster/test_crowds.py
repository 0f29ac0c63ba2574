"""Runs with hundreds of partitions, which have to end in a time that people wait for."""

from __future__ import annotations

from random import Random

from penstock.simulation.cluster.scenario import draw_cluster_scenario
from penstock.simulation.cluster.world import draw_small_sizes
from penstock.simulation.sizes.small_sizes import MANY_QUEUES, STEPS_OF_STATES

CROWDED = 310107


def test_states_of_hundreds_of_partitions_are_not_made_in_the_smallest_steps() -> None:
    scenario = draw_cluster_scenario(Random(f"cluster of 3: {CROWDED}"), 3)
    assert len(scenario.base.queues) >= MANY_QUEUES
    sizes = draw_small_sizes(CROWDED, 3)
    assert sizes
    assert not sizes.keys() & set(STEPS_OF_STATES)


def test_other_runs_have_them() -> None:
    assert any(draw_small_sizes(seed, 3).keys() & set(STEPS_OF_STATES) for seed in range(1, 30))

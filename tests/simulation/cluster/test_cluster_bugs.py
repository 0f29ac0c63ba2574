"""Bugs planted in a cluster are seen by the checkers, and where none is planted nothing is seen."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from penstock.simulation.campaign import run_seed
from penstock.simulation.cluster.planted_bugs import CLUSTER_BUGS
from penstock.simulation.cluster.scenario import draw_cluster_scenario

LIKELY_SEEDS: dict[str, tuple[int, ...]] = {
    "acknowledge-before-replicas": (1,),
    "elect-out-of-sync": (3,),
    "no-fencing": (2, 7),
    "failover-forgets-ids": (17, 37),
    "failover-forgets-producers": (1, 3),
    "failover-forgets-leases": (1, 4),
}
"""Where each was seen, to be quick. Any change of the node makes other things happen in a seed, so others follow."""
MORE_SEEDS = range(1, 400)
MOST_RUNS = 40


def _seeds(name: str) -> Iterator[int]:
    likely = LIKELY_SEEDS.get(name, ())
    yield from likely
    for seed in MORE_SEEDS:
        if seed not in likely and CLUSTER_BUGS[name].shows(draw_cluster_scenario(_dice(seed), 3)):
            yield seed


def _dice(seed: int) -> Random:
    return Random(f"cluster of 3: {seed}")


@pytest.mark.parametrize("name", CLUSTER_BUGS)
def test_a_planted_bug_is_caught(name: str) -> None:
    bug = CLUSTER_BUGS[name]
    for seed in islice(_seeds(name), MOST_RUNS):
        found = {violation.checker for violation in run_seed(seed, name, nodes=3).violations}
        if found.intersection(bug.checkers):
            assert run_seed(seed, nodes=3).violations == []
            return
    pytest.fail(f"nobody notices that {bug.sentence}")

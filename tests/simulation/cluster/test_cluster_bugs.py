"""Bugs planted in a cluster are seen by the checkers, and where none is planted nothing is seen."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import islice
from random import Random

import pytest

from penstock.simulation.campaign import run_seed
from penstock.simulation.cluster.scenario import draw_cluster_scenario
from penstock.simulation.violation import Violation
from tests.simulation.planted.catalogue import CLUSTER_BUGS

SEEDS = range(1, 1_000)
MOST_RUNS = 20
"""Most are caught in a third of the runs in which they may show, or more often: in so many they cannot hide."""
LIKELY_SEEDS: dict[str, tuple[int, ...]] = {
    "leases-are-looked-at-early": (1436, 1879, 1621),
    "deletion-forgets-delayed": (603, 616),
    "async-purges-leave-a-partition": (768, 710),
    "async-watermarks-begin-again": (175, 187, 758),
    "failed-sends-break-nothing": (9,),
    "held-sends-break-nothing": (82,),
    "windows-are-ignored": (60,),
    "hidden-targets-are-forgotten": (382,),
    "nodes-that-start-miss-nothing": (614,),
    "restored-entries-are-lost": (702,),
    "unclean-primaries-keep-everything": (115, 352),
    "what-is-sent-again-follows-nothing": (8, 14),
    "what-is-sent-again-is-new": (7, 8),
    "deposed-primaries-are-believed": (124, 100),
}
"""Where those were seen that show rarely."""

Clean = Callable[[int], list[Violation]]


@pytest.fixture(scope="session")
def clean() -> Clean:
    """The violations of a seed without a bug; each seed is run once for all tests."""

    @cache
    def violations(seed: int) -> list[Violation]:
        return run_seed(seed, nodes=3).violations

    return violations


def _seeds(name: str) -> list[int]:
    """Seeds whose scenario has what makes the bug show, those with little to do first."""
    drawn = ((seed, draw_cluster_scenario(Random(f"cluster of 3: {seed}"), 3)) for seed in SEEDS)
    shown = islice((one for one in drawn if CLUSTER_BUGS[name].shows(one[1])), MOST_RUNS)
    by_work = sorted(shown, key=lambda one: one[1].base.duration_ms * one[1].base.producers)
    return [*LIKELY_SEEDS.get(name, ()), *(seed for seed, _ in by_work)]


@pytest.mark.parametrize("name", CLUSTER_BUGS)
def test_a_planted_bug_is_caught(name: str, clean: Clean) -> None:
    bug = CLUSTER_BUGS[name]
    for seed in _seeds(name):
        found = {violation.checker for violation in run_seed(seed, bug.patches, nodes=3).violations}
        if found.intersection(bug.checkers):
            assert clean(seed) == []
            return
    pytest.fail(f"nobody notices that {bug.sentence}")

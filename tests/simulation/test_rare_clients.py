"""Clients and damage that only some runs have, each drawn from separate dice: they occur, and the promises hold."""

from __future__ import annotations

from random import Random

import pytest

from penstock.simulation.campaign import run_seed


def _has(lines: list[str], who: str, what: str) -> bool:
    return any(f" {who} " in line and what in line for line in lines)


@pytest.mark.parametrize("nodes", [None, 3])
def test_one_run_in_eight_receives_from_several_queues_at_once(nodes: int | None) -> None:
    assert 90 < sum(Random(f"{seed} weighted").random() < 0.12 for seed in range(1_000)) < 150
    outcome = run_seed(58, nodes=nodes, keep_trace=True)
    assert _has(outcome.trace, "weighted", "received from")
    assert not outcome.violations


def test_rivals_meet_at_the_store() -> None:
    outcome = run_seed(23, nodes=3, keep_trace=True)
    assert outcome.faults["queue made, changed or deleted by rivals"]
    assert outcome.faults["several operators at one queue"]
    assert _has(outcome.trace, "rival-0", "Queue contested")
    assert not outcome.violations


def test_aimed_damage_strikes_the_one_machine_whose_disk_is_damaged() -> None:
    outcome = run_seed(141, nodes=3)
    struck = {name: count for name, count in outcome.faults.items() if name in AIMED}
    assert struck
    assert not outcome.violations


def test_the_front_of_a_snapshot_may_be_damaged_and_nothing_is_lost() -> None:
    outcome = run_seed(42)
    assert outcome.faults["front of a snapshot"]
    assert not outcome.violations


AIMED = {
    "a table of a snapshot",
    "both tables of a snapshot",
    "an entry of some kind",
    "a lost file",
    "a damaged identity",
    "lost snapshots",
}

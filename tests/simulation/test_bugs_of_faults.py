"""Bugs that one fault alone brings to light: the same seed with the bug and without the fault holds every promise."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import pytest

from penstock.simulation.campaign import run_seed
from penstock.simulation.cluster.targeted_stops import AimedHunter
from penstock.simulation.faults import Faults
from penstock.simulation.machine_faults import MachineFaults
from penstock.simulation.network import Link
from penstock.simulation.patching import Patch, patched
from tests.simulation.planted.catalogue import patches_of


class Case(NamedTuple):
    """A bug, a seed that shows it, and how the fault that it needs is taken away."""

    seed: int
    nodes: int | None
    without: Sequence[Patch]


def nothing(*arguments: object, **named: object) -> bool:
    """Strikes nothing."""
    return False


CASES = {
    "another-batch-will-do": Case(
        460, None, [(MachineFaults, "misdirect", nothing), (MachineFaults, "misdirect_write", nothing)]
    ),
    "former-lives-end-the-journal": Case(
        37, None, [(MachineFaults, "lose", nothing), (MachineFaults, "lose_write", nothing)]
    ),
    "unreadable-sectors-end-a-file": Case(
        304, None, [(MachineFaults, "make_unreadable", nothing), (MachineFaults, "cannot_read", nothing)]
    ),
    "older-connections-know-less": Case(
        30, None, [(Faults, "_be_impatient", nothing), (Link, "stall", nothing)]
    ),
    "leases-are-looked-at-early": Case(
        1879, 3, [(MachineFaults, "pause_in_turn", nothing), (AimedHunter, "hunt_turns", nothing)]
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_without_the_fault_the_bug_does_not_show(name: str) -> None:
    seed, nodes, without = CASES[name]
    bug = partial(patches_of, name, cluster=nodes is not None)
    assert run_seed(seed, bug, nodes=nodes).violations
    with patched(without):
        assert run_seed(seed, bug, nodes=nodes).violations == []

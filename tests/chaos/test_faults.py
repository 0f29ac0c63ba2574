"""What a run chooses to go wrong."""

from __future__ import annotations

from tests.chaos.faults import KINDS, Kind, faults

ALL: tuple[Kind, ...] = ("kill", "pause", "cut", "power")


def test_every_pair_is_met_before_any_is_met_again() -> None:
    pairs = [(kind, victim) for victim, kinds in KINDS.items() for kind in kinds]
    chosen = [(fault.kind, fault.victim) for fault in faults(1, 2 * len(pairs), ALL)]
    assert sorted(chosen[: len(pairs)]) == sorted(pairs)
    assert sorted(chosen[len(pairs) :]) == sorted(pairs)


def test_what_a_machine_does_not_allow_is_not_chosen() -> None:
    assert {fault.kind for fault in faults(1, 60, ("kill", "pause"))} == {"kill", "pause"}


def test_a_seed_tells_the_same_run_again() -> None:
    assert list(faults(7, 60, ALL)) == list(faults(7, 60, ALL))
    assert list(faults(7, 60, ALL)) != list(faults(8, 60, ALL))

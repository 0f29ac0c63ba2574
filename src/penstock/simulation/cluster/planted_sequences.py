"""Bugs to plant in the order of batches that follow one which was refused (ADR 30); `planted_order` has the patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from penstock.simulation import planted_order
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.planted_patches import Patch


class SequenceBug(NamedTuple):
    """See `ClusterBug`."""

    checkers: tuple[str, ...]
    sentence: str
    patches: Callable[[], Sequence[Patch]]
    shows: Callable[[ClusterScenario], bool]


def _sends_in_order(scenario: ClusterScenario) -> bool:
    faults = scenario.faults
    return scenario.base.ordered_producers > 0 and bool(faults.crashes_ms or faults.cuts_ms or faults.hunt)


SEQUENCE_BUGS: dict[str, SequenceBug] = {
    "failed-sends-break-nothing": SequenceBug(
        ("order",),
        "a front end sends what follows a batch of which a share has failed",
        planted_order.failed_sends_break_nothing,
        _sends_in_order,
    ),
    "held-sends-break-nothing": SequenceBug(
        ("order",),
        "a batch is stored though the one before it was held and refused",
        planted_order.held_sends_break_nothing,
        _sends_in_order,
    ),
}

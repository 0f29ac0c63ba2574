"""Bugs to plant in the order of batches that follow one which was refused (ADR 30); `planted_order` has the patches."""

from __future__ import annotations

from penstock.simulation import planted_order
from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.scenario import ClusterScenario


def _sends_in_order(scenario: ClusterScenario) -> bool:
    faults = scenario.faults
    return scenario.base.ordered_producers > 0 and bool(faults.crashes_ms or faults.cuts_ms or faults.hunt)


SEQUENCE_BUGS: dict[str, ClusterBug] = {
    "failed-sends-break-nothing": ClusterBug(
        ("order",),
        "a front end sends what follows a batch of which a share has failed",
        planted_order.failed_sends_break_nothing,
        _sends_in_order,
    ),
    "held-sends-break-nothing": ClusterBug(
        ("order",),
        "a batch is stored though the one before it was held and refused",
        planted_order.held_sends_break_nothing,
        _sends_in_order,
    ),
}

"""Bugs to plant in how sends follow each other, and in the answer to one that is sent again (ADR 30); `batch_order` has the patches."""

from __future__ import annotations

from penstock.simulation.cluster.scenario import ClusterScenario
from tests.simulation.planted import batch_order
from tests.simulation.planted.bug import ClusterBug


def _sends_in_order(scenario: ClusterScenario) -> bool:
    faults = scenario.faults
    return scenario.base.ordered_producers > 0 and bool(faults.crashes_ms or faults.cuts_ms or faults.hunt)


SEQUENCE_BUGS: dict[str, ClusterBug] = {
    "failed-sends-break-nothing": ClusterBug(
        ("order",),
        "a front end sends what follows a batch of which a share has failed",
        batch_order.failed_sends_break_nothing,
        _sends_in_order,
    ),
    "held-sends-break-nothing": ClusterBug(
        ("order",),
        "a batch is stored though the one before it was held and refused",
        batch_order.held_sends_break_nothing,
        _sends_in_order,
    ),
    "what-is-sent-again-follows-nothing": ClusterBug(
        ("order",),
        "a front end sends a batch again and does not say which one it follows",
        batch_order.what_is_sent_again_follows_nothing,
        _sends_in_order,
    ),
    "what-is-sent-again-is-new": ClusterBug(
        ("I3",),
        "a front end sends a batch again under another number",
        batch_order.what_is_sent_again_is_new,
        _sends_in_order,
    ),
    "deposed-primaries-are-believed": ClusterBug(
        ("I1", "I2"),
        "a front end tells a refusal though an earlier attempt may have been carried out by a primary that was deposed",
        batch_order.deposed_primaries_are_believed,
        lambda scenario: scenario.faults.hunt in ("left-behind", "unsaid", "lost-answer", "dark"),
    ),
}

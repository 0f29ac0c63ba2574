"""Bugs to plant where partitions of a queue agree on whose a deduplication id is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.queue.decisions.decision import Decision
from penstock.queue.partition import Partition
from penstock.queue.state import id_claims
from penstock.routing.claiming import Claims
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.patching import Patch
from penstock.simulation.queue_plan import QueuePlan
from penstock.steps.step import Steps


def claims_are_left_out() -> Sequence[Patch]:
    """Each partition is asked alone whether it has stored an id."""

    def claim(self: Claims, wanted: Mapping[bytes, int]) -> Steps[dict[bytes, int]]:
        yield from ()
        return {}

    return [(Claims, "claim", claim)]


def bars_are_left_out() -> Sequence[Patch]:
    """A partition says that it has not stored an id, and stores it afterwards."""

    def find(
        partition: Partition, ids: Sequence[bytes], versions: Sequence[int], now_ms: int, **choice: Any
    ) -> Decision[list[int]]:
        return Decision((), real(partition, ids, versions, now_ms, **choice).reply)

    real = id_claims.find
    return [(id_claims, "find", find)]


def bars_end_with_the_window() -> Sequence[Patch]:
    """A send that was held up for longer than a short window finds no bar."""
    return [(id_claims, "HELD_MS", 0)]


def has_claims(scenario: ClusterScenario) -> bool:
    """Whether ids are claimed at all."""
    return any(map(_is_claimed, scenario.base.queues))


def has_short_windows(scenario: ClusterScenario) -> bool:
    """Whether a send may easily be held up for longer than a window."""
    faults = scenario.faults
    return bool(faults.crashes_ms or faults.cuts_ms or faults.hunt) and any(
        _is_claimed(plan) and plan.settings.deduplication_window_ms <= 1_000 for plan in scenario.base.queues
    )


def _is_claimed(plan: QueuePlan) -> bool:
    return bool(plan.deduplication) and plan.settings.strict and plan.settings.partitions > 1

"""Bugs that only a process brings to light which stands still in the middle of a turn; `planted_bugs` names them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.planted_patches import Patch


def _stands_still_in_turns(scenario: ClusterScenario) -> bool:
    """Whether processes stand still in turns and nowhere else, and some primary acknowledges alone."""
    faults = scenario.faults
    is_loose = any(queue.settings.replication == "async" for queue in scenario.base.queues)
    stands_elsewhere = faults.pauses_ms or faults.hunt == "standstill"
    return scenario.hunts_turns and not stands_elsewhere and (is_loose or scenario.keeps_numbers)


def _leases_are_looked_at_early() -> Sequence[Patch]:
    """Whether the lease has ended is looked at when time passes, and not when something is acknowledged."""

    def has_lease(self: Leader, led: LedPartition) -> bool:
        return led.primary.synchronous or self.lease_is_alive

    return [(Leader, "_has_lease", has_lease)]


PAUSE_BUGS: dict[str, ClusterBug] = {
    "leases-are-looked-at-early": ClusterBug(
        ("lease", "I8"),
        "a primary that acknowledges alone has looked at its lease before it stood still, and not after",
        _leases_are_looked_at_early,
        _stands_still_in_turns,
    ),
}

"""The faults of a cluster's run, and their frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from penstock.simulation.cluster.targeted_faults import HUNTS, HuntName


@dataclass(slots=True)
class ClusterFaultPlan:
    """The frequency of each fault, as milliseconds between two; 0: never."""

    crashes_ms: int = 0
    most_crash: bool = False
    """Whether a majority, or all, may go down together."""
    cuts_ms: int = 0
    store_away_ms: int = 0
    pauses_ms: int = 0
    disconnects_ms: int = 0
    slow_disk_ms: int = 0
    full_disk_ms: int = 0
    clock_ms: int = 0
    slow_network: bool = False
    drains_ms: int = 0
    """Operators empty a node, and change their minds."""
    flips_ms: int = 0
    """Bits are flipped on one machine, and no other fault removes replicas then, so that a good one remains."""
    skew_ms: int = 0
    """How far the clocks of nodes may be from each other."""
    lossy_network: float = 0.0
    """How much of what is sent is lost and sent again by TCP, late."""
    failing_syncs_ms: int = 0
    """Syncs, and other operations that change something on a disk."""
    stalls_ms: int = 0
    """Connections on which everything takes seconds."""
    refusals_ms: int = 0
    """Single appends find no room in a journal."""
    turn_pauses_ms: int = 0
    """A process pauses in the middle of a turn."""
    hunt: HuntName | None = None
    """The targeted fault of the run, if it has one."""
    hunts_ms: int = 0


def draw_faults(random: Random) -> ClusterFaultPlan:
    """The plan of a run: damage, a hunt, or a little of everything."""

    def sometimes(share: float, low_ms: int, high_ms: int) -> int:
        return random.randint(low_ms, high_ms) if random.random() < share else 0

    if random.random() < 0.12:
        return ClusterFaultPlan(
            flips_ms=random.randint(800, 3_000), disconnects_ms=sometimes(0.5, 400, 4_000)
        )
    if random.random() < 0.3:
        return ClusterFaultPlan(
            hunt=random.choice(HUNTS),
            hunts_ms=random.randint(400, 2_000),
            disconnects_ms=sometimes(0.3, 400, 4_000),
            clock_ms=sometimes(0.2, 1_500, 6_000),
            slow_network=random.random() < 0.15,
            store_away_ms=sometimes(0.1, 3_000, 8_000),
            stalls_ms=sometimes(0.15, 200, 2_000),
            refusals_ms=sometimes(0.2, 100, 800),
            turn_pauses_ms=sometimes(0.1, 600, 4_000),
        )
    return ClusterFaultPlan(
        crashes_ms=sometimes(0.75, 1_200, 5_000),
        most_crash=random.random() < 0.4,
        cuts_ms=sometimes(0.7, 1_200, 5_000),
        store_away_ms=sometimes(0.3, 2_500, 8_000),
        pauses_ms=sometimes(0.35, 1_500, 6_000),
        disconnects_ms=sometimes(0.4, 400, 4_000),
        slow_disk_ms=sometimes(0.3, 2_000, 6_000),
        full_disk_ms=sometimes(0.15, 3_000, 8_000),
        clock_ms=sometimes(0.3, 1_500, 6_000),
        slow_network=random.random() < 0.3,
        drains_ms=sometimes(0.25, 2_000, 6_000),
        failing_syncs_ms=sometimes(0.15, 2_000, 6_000),
        stalls_ms=sometimes(0.3, 200, 2_000),
        refusals_ms=sometimes(0.25, 100, 1_500),
        turn_pauses_ms=sometimes(0.2, 600, 4_000),
    )

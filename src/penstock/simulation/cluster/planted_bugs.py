"""Bugs to plant in a cluster: each breaks replication or the manager on purpose, and the checkers it names must notice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.backend.replication.following import FollowedPartition, Follower
from penstock.backend.replication.leadership import Leadership
from penstock.backend.replication.peer_stream import PeerStream
from penstock.cluster import failover, internal_manager
from penstock.cluster.layout import PartitionEntry
from penstock.cluster.view import ClusterView, Seen
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.primary import Primary
from penstock.replication.primary_secondary.secondary import Secondary
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.planted_patches import Patch, forget_leases, forget_producers


class ClusterBug(NamedTuple):
    """A bug and the checkers of which at least one must notice it."""

    checkers: tuple[str, ...]
    sentence: str
    patches: Callable[[], Sequence[Patch]]
    shows: Callable[[ClusterScenario], bool]
    """The scenarios in which it is likely to show."""


def _fails_over(scenario: ClusterScenario) -> bool:
    return bool(scenario.faults.crashes_ms or scenario.faults.cuts_ms)


def _cuts(scenario: ClusterScenario) -> bool:
    return scenario.faults.cuts_ms > 0


def _commits_alone() -> Sequence[Patch]:
    def commit(self: Primary) -> None:
        self._committed = max(self._committed, self._flushed)

    return [(Primary, "_commit", commit)]


def _elects_anybody() -> Sequence[Patch]:
    """Who is out of sync is asked first, as a manager does that takes whoever answers."""
    real = failover.elect

    def elect(view: ClusterView, seen: Seen[PartitionEntry], *arguments: Any) -> Any:
        entry = seen.entry
        behind = [
            node for node in entry.replicas if node not in entry.in_sync and node in view.members.living
        ]
        if behind:
            entry = msgspec.structs.replace(entry, in_sync=behind)
        return real(view, seen._replace(entry=entry), *arguments)

    return [(internal_manager, "elect", elect)]


def _does_not_fence() -> Sequence[Patch]:
    """Replicas take what an old primary sends, and primaries do not hear that they are deposed."""

    def obeys(self: Follower, followed: FollowedPartition, stream: PeerStream, epoch: int) -> bool:
        return True

    def follows(self: Follower, followed: FollowedPartition, stream: PeerStream, epoch: int) -> bool:
        return followed.cutting is None

    def judge(self: Secondary, epoch: int, previous: int, previous_epoch: int, count: int) -> Any:
        known, self.known_epoch = self.known_epoch, 0
        judgement = real(self, epoch, previous, previous_epoch, count)
        self.known_epoch = known
        return judgement

    def note(self: Follower, stream: PeerStream, followed: FollowedPartition, body_bytes: int) -> None:
        leader, followed.leader = followed.leader, stream.node
        note_real(self, stream, followed, body_bytes)
        followed.leader = leader

    def stand_down(self: Leadership, queue_id: int, why: str) -> None:
        if "leads epoch" not in why and "knows epoch" not in why:
            real_stand_down(self, queue_id, why)

    real, note_real, real_stand_down = Secondary.judge, Follower._note, Leadership.stand_down
    return [
        (Follower, "_obeys", obeys),
        (Follower, "_follows", follows),
        (Follower, "_note", note),
        (Secondary, "judge", judge),
        (Leadership, "stand_down", stand_down),
    ]


def _on_failover(spoil: Callable[[Partition], None]) -> Callable[[], Sequence[Patch]]:
    """A node that takes over has forgotten something."""

    def patches() -> Sequence[Patch]:
        real = Leadership.lead

        def lead(self: Leadership, entry: PartitionEntry) -> bool:
            partition = self.state.parts.catalogue.partitions.get(entry.partition)
            if partition is not None and entry.epoch > 1:
                spoil(partition)
            return real(self, entry)

        return [(Leadership, "lead", lead)]

    return patches


CLUSTER_BUGS: dict[str, ClusterBug] = {
    "acknowledge-before-replicas": ClusterBug(
        ("I1", "I8", "I10"), "a primary acknowledges what only it has", _commits_alone, _cuts
    ),
    "elect-out-of-sync": ClusterBug(
        ("I1", "I10"), "the manager elects a replica that is not in sync", _elects_anybody, _fails_over
    ),
    "no-fencing": ClusterBug(
        ("I1", "I8", "I9", "I10"), "replicas obey a primary that was deposed", _does_not_fence, _cuts
    ),
    "failover-forgets-ids": ClusterBug(
        ("I3",),
        "a node that takes over has forgotten deduplication ids",
        _on_failover(lambda partition: partition.window.clear()),
        lambda scenario: _fails_over(scenario) and any(queue.deduplication for queue in scenario.base.queues),
    ),
    "failover-forgets-producers": ClusterBug(
        ("I3",),
        "a node that takes over has forgotten which batches are stored",
        _on_failover(forget_producers),
        _fails_over,
    ),
    "failover-forgets-leases": ClusterBug(
        ("I4",),
        "a node that takes over makes leased messages ready",
        _on_failover(forget_leases),
        _fails_over,
    ),
}

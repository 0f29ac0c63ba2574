"""Bugs to plant in a cluster: each breaks replication or the manager on purpose, and the checkers it names must notice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec

from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.layout.view import ClusterView, Seen
from penstock.cluster.manager import decide as internal_manager
from penstock.cluster.manager import failover
from penstock.queue.partition import Partition
from penstock.replication.interface import Need
from penstock.replication.primary_secondary.core import secondary
from penstock.replication.primary_secondary.core.epochs import EpochHistory
from penstock.replication.primary_secondary.core.primary import Primary
from penstock.replication.primary_secondary.core.secondary import Secondary
from penstock.replication.primary_secondary.node.follower.follower import Follower
from penstock.replication.primary_secondary.node.follower.follower_state import FollowerState
from penstock.replication.primary_secondary.node.layout_view import KnownEntry
from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.cluster.targeted_faults import HuntName
from penstock.simulation.patching import Patch
from tests.simulation.planted import batch_order, deletion
from tests.simulation.planted.bug import ClusterBug
from tests.simulation.planted.cluster import numbers
from tests.simulation.planted.cluster.changes import (
    purges_alone,
    purges_one_partition,
    sends_by_name,
)
from tests.simulation.planted.patches import forget_ids, forget_leases, forget_producers


def _fails_over(scenario: ClusterScenario) -> bool:
    return bool(scenario.faults.crashes_ms or scenario.faults.cuts_ms or scenario.faults.hunt)


def _hunts(*names: HuntName) -> Callable[[ClusterScenario], bool]:
    return lambda scenario: scenario.faults.hunt in names


def _commits_alone() -> Sequence[Patch]:
    def commit(self: Primary) -> None:
        self._committed = max(self._committed, self._flushed)

    return [(Primary, "_commit", commit)]


def _commits_with_one() -> Sequence[Patch]:
    def commit(self: Primary) -> None:
        others = [follower.confirmed for node, follower in self.followers.items() if node in self.in_sync]
        self._committed = max(self._committed, min(self._flushed, max(others, default=self._flushed)))

    return [(Primary, "_commit", commit)]


def _confirms_before_disk() -> Sequence[Patch]:
    def confirm(self: Follower) -> None:
        self.flushed(self._parts.store.appended_position)
        real(self)

    real = Follower.confirm
    return [(Follower, "confirm", confirm)]


def _drops_from_sync_at_once() -> Sequence[Patch]:
    def propose(self: Primary, in_sync: Iterable[str]) -> None:
        real(self, in_sync)
        self.in_sync = self._proposed or self.in_sync
        self._commit()

    real = Primary.propose
    return [(Primary, "propose", propose)]


def _joins_too_early() -> Sequence[Patch]:
    def wanted_in_sync(self: Primary, now_ms: int, living: Collection[str]) -> frozenset[str] | None:
        confirmed = {node: follower.confirmed for node, follower in self.followers.items()}
        for node, follower in self.followers.items():
            if node not in self.in_sync:
                follower.confirmed = self._last
        wanted = real(self, now_ms, living)
        for node, index in confirmed.items():
            self.followers[node].confirmed = index
        return wanted

    real = Primary.wanted_in_sync
    return [(Primary, "wanted_in_sync", wanted_in_sync)]


def _answers_when_deposed() -> Sequence[Patch]:
    def is_committed(self: Leader, need: Need) -> bool | None:
        return real(self, need) is not False

    real = Leader.is_committed
    return [(Leader, "is_committed", is_committed)]


def _needs_no_lease() -> Sequence[Patch]:
    def has_lease(self: Leader, led: LedPartition) -> bool:
        return True

    return [(Leader, "_has_lease", has_lease)]


def _compares_lengths() -> Sequence[Patch]:
    """Logs of the same length are taken for the same."""

    def shortest(ours: EpochHistory, our_last: int, theirs: EpochHistory, their_last: int) -> int:
        return min(our_last, their_last)

    def judge(self: Secondary, epoch: int, previous: int, previous_epoch: int, count: int) -> Any:
        return real(self, epoch, previous, self.epochs.at(previous), count)

    real = Secondary.judge
    return [(secondary, "last_common", shortest), (Secondary, "judge", judge)]


def _obeys_old_epochs() -> Sequence[Patch]:
    """Replicas forget which epoch they have heard of; primaries still hear that they are deposed."""

    def obeys(self: Follower, follower_state: FollowerState, stream: PeerStream, epoch: int) -> bool:
        return True

    def judge(self: Secondary, epoch: int, previous: int, previous_epoch: int, count: int) -> Any:
        self.known_epoch = 0
        return real(self, epoch, previous, previous_epoch, count)

    real = Secondary.judge
    return [(Follower, "_obeys", obeys), (Secondary, "judge", judge)]


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

    def obeys(self: Follower, follower_state: FollowerState, stream: PeerStream, epoch: int) -> bool:
        return True

    def follows(self: Follower, follower_state: FollowerState, stream: PeerStream, epoch: int) -> bool:
        return follower_state.cutting is None

    def judge(self: Secondary, epoch: int, previous: int, previous_epoch: int, count: int) -> Any:
        known, self.known_epoch = self.known_epoch, 0
        judgement = real(self, epoch, previous, previous_epoch, count)
        self.known_epoch = known
        return judgement

    def note(self: Follower, stream: PeerStream, follower_state: FollowerState, body_bytes: int) -> None:
        leader, follower_state.leader = follower_state.leader, stream.node
        note_real(self, stream, follower_state, body_bytes)
        follower_state.leader = leader

    def stand_down(self: Leader, partition_id: int, why: str) -> None:
        if "leads epoch" not in why and "knows epoch" not in why:
            real_stand_down(self, partition_id, why)

    real, note_real, real_stand_down = Secondary.judge, Follower._note, Leader.stand_down
    return [
        (Follower, "_obeys", obeys),
        (Follower, "_follows", follows),
        (Follower, "_note", note),
        (Secondary, "judge", judge),
        (Leader, "stand_down", stand_down),
    ]


def _on_failover(spoil: Callable[[Partition], None]) -> Callable[[], Sequence[Patch]]:
    """A node that takes over has forgotten something."""

    def patches() -> Sequence[Patch]:
        real = Leader.lead

        def lead(self: Leader, known: KnownEntry) -> bool:
            partition = self.state.parts.catalogue.partitions.get(known.entry.partition)
            if partition is not None and known.entry.epoch > 1:
                spoil(partition)
            return real(self, known)

        return [(Leader, "lead", lead)]

    return patches


def _rescues(scenario: ClusterScenario) -> bool:
    """Whether delayed messages have a dead-letter queue."""
    queues = scenario.base.queues
    return any(queue.delays_ms and queue.settings.dead_letter_queue is not None for queue in queues)


def _operates(*, destructive: bool = False) -> Callable[[ClusterScenario], bool]:
    return lambda scenario: bool(scenario.base.operators) and scenario.destructive >= destructive


def _sends_in_order(scenario: ClusterScenario) -> bool:
    return scenario.base.ordered_producers > 0


REPLICATION_BUGS: dict[str, ClusterBug] = {
    "acknowledge-before-replicas": ClusterBug(
        ("I1", "I8", "I10"),
        "a primary acknowledges what only it has",
        _commits_alone,
        _hunts("left-behind"),
    ),
    "acknowledge-at-first-replica": ClusterBug(
        ("I1", "I10"),
        "a primary acknowledges what one other replica has, and not all in sync",
        _commits_with_one,
        _hunts("left-behind"),
    ),
    "confirm-before-disk": ClusterBug(
        ("I1", "I10"),
        "a replica confirms what its disk does not have yet",
        _confirms_before_disk,
        _hunts("dark"),
    ),
    "drop-from-sync-early": ClusterBug(
        ("I1", "I10"),
        "a primary goes on without a replica before the store knows that it is out of sync",
        _drops_from_sync_at_once,
        _hunts("unsaid"),
    ),
    "join-sync-early": ClusterBug(
        ("I1", "I10"),
        "a replica that comes back counts as in sync before it has everything",
        _joins_too_early,
        _hunts("rejoin"),
    ),
    "elect-out-of-sync": ClusterBug(
        ("I1", "I10"),
        "the manager elects a replica that is not in sync",
        _elects_anybody,
        _hunts("left-behind", "rejoin"),
    ),
    "no-fencing": ClusterBug(
        ("I1", "I8", "I9", "I10"),
        "replicas obey a primary that was deposed, and it does not hear of it",
        _does_not_fence,
        _hunts("old-primary", "standstill"),
    ),
    "obey-old-epochs": ClusterBug(
        ("I1", "I8", "I9", "I10"),
        "replicas do as a primary of an older epoch says",
        _obeys_old_epochs,
        _hunts("old-primary"),
    ),
    "answer-when-deposed": ClusterBug(
        ("I1", "I8"),
        "a primary that is deposed acknowledges what it was asked before",
        _answers_when_deposed,
        _hunts("old-primary", "standstill"),
    ),
    "async-without-lease": ClusterBug(
        ("I8",),
        "a primary that acknowledges alone does so after its lease has ended",
        _needs_no_lease,
        lambda scenario: (
            _hunts("old-primary", "standstill")(scenario)
            and any(queue.settings.replication == "async" for queue in scenario.base.queues)
        ),
    ),
    "compare-lengths-of-logs": ClusterBug(
        ("I1", "I9", "I10"),
        "logs are compared by their length alone, so what was never committed stays",
        _compares_lengths,
        _hunts("old-primary", "standstill", "left-behind"),
    ),
    "failover-forgets-ids": ClusterBug(
        ("I3",),
        "a node that takes over has forgotten deduplication ids",
        _on_failover(forget_ids),
        lambda scenario: _fails_over(scenario) and any(queue.deduplication for queue in scenario.base.queues),
    ),
    "failover-forgets-producers": ClusterBug(
        ("I3",),
        "a node that takes over has forgotten which batches are stored",
        _on_failover(forget_producers),
        _hunts("lost-answer"),
    ),
    "failover-forgets-leases": ClusterBug(
        ("I4",),
        "a node that takes over makes leased messages ready",
        _on_failover(forget_leases),
        _hunts("hand-over"),
    ),
    "purge-not-replicated": ClusterBug(
        ("I1", "I2", "I9"),
        "a primary purges what its replicas keep",
        purges_alone,
        lambda scenario: _fails_over(scenario) and _operates(destructive=True)(scenario),
    ),
    "purge-one-partition": ClusterBug(
        ("I2",),
        "a purge takes the messages of one partition only",
        purges_one_partition,
        lambda scenario: (
            _operates(destructive=True)(scenario)
            and all(queue.settings.partitions > 1 for queue in scenario.base.queues)
        ),
    ),
    "deletion-forgets-delayed": ClusterBug(
        ("I1", "I6"),
        "delayed messages that have a dead-letter queue go with their deleted queue",
        deletion.forgets_delayed,
        lambda scenario: _operates(destructive=True)(scenario) and _rescues(scenario),
    ),
    "deletion-drops-what-moves": ClusterBug(
        ("I1", "I6"),
        "a partition of a deleted queue is dropped with messages that are on their way to another",
        deletion.drops_what_moves,
        lambda scenario: _operates(destructive=True)(scenario) and _rescues(scenario),
    ),
    "moves-count-on-one-disk": ClusterBug(
        ("I1", "I6"),
        "a message has arrived in an async queue when only the primary there has it",
        deletion.counts_on_one_disk,
        _hunts("dead-letter"),
    ),
    "late-moves-arrive": ClusterBug(
        ("I1", "I2", "I5", "I6"),
        "a node takes in messages that the next primary of their queue has sent again since",
        deletion.takes_in_late,
        _hunts("late-move"),
    ),
    "send-to-next-incarnation": ClusterBug(
        ("I2",),
        "a send to a queue that was deleted is stored in the next queue of its name",
        sends_by_name,
        _operates(destructive=True),
    ),
    "reuse-sequence-numbers": ClusterBug(
        ("numbers",),
        "a primary gives out numbers of messages that a failover lost",
        numbers.sequence_numbers_come_back,
        lambda scenario: scenario.keeps_numbers,
    ),
    "reuse-lease-numbers": ClusterBug(
        ("numbers",),
        "a primary gives out numbers of leases that a failover lost",
        numbers.lease_numbers_come_back,
        lambda scenario: scenario.keeps_numbers,
    ),
    "reuse-generations": ClusterBug(
        ("numbers",),
        "a generation of a group of readers has the number of one that a failover lost",
        numbers.generations_come_back,
        lambda scenario: scenario.keeps_numbers,
    ),
    "unclean-primaries-keep-everything": ClusterBug(
        ("numbers",),
        "a primary that is elected uncleanly serves what was never committed, under numbers of other messages",
        numbers.unclean_primaries_keep_everything,
        lambda scenario: scenario.unclean,
    ),
    "any-batch-is-taken": ClusterBug(
        ("order",),
        "a batch is stored though the one before it was refused",
        batch_order.any_batch_is_taken,
        _sends_in_order,
    ),
    "lines-are-jumped": ClusterBug(
        ("order",),
        "a batch goes to the next leader before those that wait for it",
        batch_order.lines_are_jumped,
        lambda scenario: _fails_over(scenario) and _sends_in_order(scenario),
    ),
}

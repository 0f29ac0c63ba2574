"""Bugs to plant in leases, lives, the manager's office, and what is known of the store; `planted_bugs` names them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from penstock.cluster.layout.entries import NEXT_ID
from penstock.cluster.manager.loop import ManagerLoop, Write
from penstock.cluster.membership.campaign import Campaign
from penstock.cluster.membership.held_lease import HeldLease
from penstock.cluster.membership.node_lease import NodeLease
from penstock.cluster.membership.store_requests import Outcome, Renewed
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import Change, Listing
from penstock.replication.primary_secondary.core.primary import Primary
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.routing import creating, deleting
from penstock.routing.context import FreeIds
from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.cluster.targeted_members import adds_again
from penstock.simulation.planted_patches import Patch
from penstock.steps.step import Look, Put, Reply, Steps, Stored
from penstock.wire.messages import DeleteQueue, Done


def counts_from_answer() -> Sequence[Patch]:
    """The lease is counted from when the renewal was answered, not from before it was asked for."""

    def answered(self: HeldLease, question: int, outcome: Outcome, now_ms: int) -> bool:
        self._asked[question] = now_ms
        return real(self, question, outcome, now_ms)

    real = HeldLease.answered
    return [(HeldLease, "answered", answered)]


def ignores_lost_lease() -> Sequence[Patch]:
    """A node does not notice that the store has ended its lease."""

    def answered(self: HeldLease, question: int, outcome: Outcome, now_ms: int) -> bool:
        return real(self, question, Renewed(True) if isinstance(outcome, Renewed) else outcome, now_ms)

    def heard(self: NodeLease, value: bytes | None, version: int, now_ms: int) -> list[object]:
        return []

    real = HeldLease.answered
    return [(HeldLease, "answered", answered), (NodeLease, "heard", heard)]


def keeps_its_life() -> Sequence[Patch]:
    """A node that registers again goes on as the life it was."""

    def begin_new_life(self: NodeLease, now_ms: int) -> None:
        pass

    return [(NodeLease, "_begin_new_life", begin_new_life)]


def forgets_unanswered_put() -> Sequence[Patch]:
    """A registration whose put was not answered is taken for one that was never seen."""

    def give_up(self: NodeLease, *arguments: object) -> None:
        if not self._was_registered:
            self._may_be_seen = False
        real(self, *arguments)  # type: ignore[arg-type]  # as it was called

    real = NodeLease._give_up
    return [(NodeLease, "_give_up", give_up)]


def decides_without_lease() -> Sequence[Patch]:
    """A manager goes on until the store tells it that its lease has ended."""

    def holds(self: Campaign, now_ms: int) -> bool:
        return self._lease is not None

    def lease_holds(self: HeldLease, now_ms: int) -> bool:
        return True

    return [(Campaign, "holds", holds), (HeldLease, "holds", lease_holds)]


def writes_without_version() -> Sequence[Patch]:
    """A manager writes whatever stands there by now."""

    def look(self: ManagerLoop, now_ms: int) -> list[Write]:
        return [
            Write(number, change._replace(version=None))  # type: ignore[arg-type]  # that is the bug
            for number, change in real(self, now_ms)
        ]

    real = ManagerLoop.look
    return [(ManagerLoop, "look", look)]


def keeps_what_is_gone() -> Sequence[Patch]:
    """Who loads the store again does not notice what was taken away meanwhile."""

    def load(self: MetadataCache, listing: Listing) -> None:
        for entry in listing.entries:
            self.apply(Change(*entry))
        self.settle(listing.version)

    return [(MetadataCache, "load", load)]


def takes_old_news() -> Sequence[Patch]:
    """News that comes late replaces what is newer."""

    def apply(self: MetadataCache, change: Change) -> None:
        if change.version < self.version(change.key):
            del self._entries[change.key]
        self._gone.pop(change.key, None)
        real(self, change)

    real = MetadataCache.apply
    return [(MetadataCache, "apply", apply)]


def uses_ids_again() -> Sequence[Patch]:
    """Ids that are taken from the count are not taken off it."""

    def count_on(ids: FreeIds, count: int) -> Steps[None]:
        stored: Stored = yield Look(NEXT_ID)
        first = int(stored.value) if stored.value is not None else 1
        if stored.value is None:
            yield Put(NEXT_ID, str(first).encode(), stored.version)
        ids.set_aside(range(first, first + max(creating.IDS_AT_ONCE, count + ids.wanted)))

    return [(creating, "_count_on", count_on)]


def only_says_deleted() -> Sequence[Patch]:
    """A front end says that a queue is deleted, and nothing is written."""

    def delete(request: DeleteQueue) -> Steps[Reply]:
        yield from deleting.stored_queue(request.name)
        return Reply(Done())

    return [(deleting, "delete", delete)]


def takes_former_replicas() -> Sequence[Patch]:
    """A primary takes any replica of a node for the one that it knows."""

    def set_replicas(
        self: Primary, replicas: Iterable[str], joined: Mapping[str, int], now_ms: int
    ) -> set[str]:
        return real(self, replicas, {}, now_ms)

    def is_member(self: LedPartition, node: str, joined: int | None) -> bool:
        return node in self.primary.followers

    real = Primary.set_replicas
    return [(Primary, "set_replicas", set_replicas), (LedPartition, "is_member", is_member)]


def _is_besieged(scenario: ClusterScenario) -> bool:
    return bool(scenario.store.siege_ms)


def _is_deposed(scenario: ClusterScenario) -> bool:
    """Where the manager loses its lease."""
    return bool(scenario.store.coup_ms)


def _is_besieged_alone(scenario: ClusterScenario) -> bool:
    """Where a node that acknowledges alone loses its lease."""
    is_loose = any(queue.settings.replication == "async" for queue in scenario.base.queues)
    return is_loose and _is_besieged(scenario)


def _starts_unanswered(scenario: ClusterScenario) -> bool:
    return bool(scenario.store.lost_answers_ms and scenario.faults.crashes_ms)


def _makes_queues_again(scenario: ClusterScenario) -> bool:
    return scenario.destructive


def _misses_news(scenario: ClusterScenario) -> bool:
    return bool(scenario.store.breaks_ms) and _makes_queues_again(scenario)


def _writes_late(scenario: ClusterScenario) -> bool:
    """Where a manager that was deposed has writes under way, and there is much to decide."""
    return bool(scenario.store.coup_ms and (scenario.faults.crashes_ms or scenario.faults.drains_ms))


MEMBERSHIP_BUGS: dict[str, ClusterBug] = {
    "former-replicas-count": ClusterBug(
        ("I10",),
        "a primary takes a replica that was added again for the former one of its node",
        takes_former_replicas,
        adds_again,
    ),
    "count-lease-from-answer": ClusterBug(
        ("lease", "manager", "I8"),
        "a lease is counted from the answer to a renewal, and not from before it was asked for",
        counts_from_answer,
        _is_besieged_alone,
    ),
    "lost-lease-unnoticed": ClusterBug(
        ("lease", "I8"),
        "a node goes on as if its lease had been renewed when the store says that it has ended",
        ignores_lost_lease,
        _is_besieged_alone,
    ),
    "same-life-again": ClusterBug(
        ("lives",),
        "a node that lost its lease registers again under the same started_ms",
        keeps_its_life,
        _is_besieged,
    ),
    "unanswered-registration": ClusterBug(
        ("lives",),
        "a node whose first registration was not answered registers again under the same started_ms",
        forgets_unanswered_put,
        _starts_unanswered,
    ),
    "decide-without-lease": ClusterBug(
        ("manager",),
        "a manager goes on deciding after its lease has ended",
        decides_without_lease,
        _is_deposed,
    ),
    "manager-ignores-versions": ClusterBug(
        ("manager", "I11"),
        "a manager writes its decisions whatever stands there by then",
        writes_without_version,
        _writes_late,
    ),
    "forgotten-deletions": ClusterBug(
        ("I11",),
        "who loads the store again keeps what was taken away meanwhile",
        keeps_what_is_gone,
        _misses_news,
    ),
    "old-news": ClusterBug(
        ("I11",),
        "news of the store that comes late replaces what is newer",
        takes_old_news,
        _is_besieged,
    ),
    "deletion-is-only-said": ClusterBug(
        ("I11",),
        "a front end says that a queue is deleted, and it is there",
        only_says_deleted,
        _makes_queues_again,
    ),
    "ids-used-again": ClusterBug(
        ("I11",),
        "front ends take the same ids from the store's count",
        uses_ids_again,
        _makes_queues_again,
    ),
}

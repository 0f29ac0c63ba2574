"""Many short lives of a cluster under its manager: never unsafe, and whole again in the end.

The last tests break one rule of the manager each and show that the checks would notice.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.deletion import given_up
from penstock.cluster.layout.elections import handed_over
from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.placement import Census
from tests.cluster.cluster_model import World
from tests.cluster.model_store import UnsafeError

STEPS = 1_500


def live(world: World, steps: int = STEPS) -> World:
    for _ in range(steps):
        world.step()
    world.bring_back()
    if not world.rest():
        raise UnsafeError("the manager never comes to rest")
    check_wholeness(world)
    return world


def check_wholeness(world: World) -> None:
    """Everything serves and has its replicas, drained nodes are empty, what was deleted is gone."""
    drained = {key.removeprefix(layout.DRAINS) for key, _, _ in world.store.under(layout.DRAINS)}
    places = [name for name in world.nodes if name not in drained]
    entries = world.partitions()
    for entry in entries:
        what = f"partition {entry.partition}: {entry}"
        if entry.serving != entry.epoch or entry.hand_over_to is not None or entry.leaving:
            raise UnsafeError(f"does not serve or is still moved: {what}")
        if set(entry.in_sync) != set(entry.replicas):
            raise UnsafeError(f"not all are in sync: {what}")
        wanted, least = entry.settings.replicas, entry.settings.least_in_sync
        # Where too few nodes are left, a drained one keeps what is needed for sends to be taken.
        fewest, most = min(wanted, len(places)), min(wanted, max(len(places), least))
        if (
            not fewest <= len(entry.replicas) <= most
            or (len(places) >= least and drained & set(entry.replicas))
            or entry.primary in drained
        ):
            raise UnsafeError(f"replicas are missing, too many or on drained nodes: {what}")
        zones = {world.nodes[node].zone for node in places}
        if len({world.nodes[node].zone for node in entry.replicas}) < min(len(zones), len(entry.replicas)):
            raise UnsafeError(f"replicas share a zone: {what}")
    if any(
        layout.decode_queue(value).state == "deleting" for _, value, _ in world.store.under(layout.QUEUES)
    ):
        raise UnsafeError("a deleted queue is still there")
    for node in world.nodes.values():
        held = {entry.partition for entry in entries if node.name in entry.replicas}
        if set(node.replicas) != held:
            raise UnsafeError(f"{node.name} holds {set(node.replicas)} and should hold {held}")
    check_spread(entries, places)


def check_spread(entries: list[layout.PartitionEntry], places: list[str]) -> None:
    """No primary could hand over to a replica that leads two fewer."""
    led = Census(entries).led
    for entry in entries:
        for node in (node for node in entry.in_sync if node in places):
            if led.get(entry.primary or "", 0) - led.get(node, 0) >= 2:
                raise UnsafeError(f"{entry.primary} leads too much: {led}")


@pytest.mark.parametrize("part", range(6))
def test_a_cluster_stays_safe_and_becomes_whole(part: int) -> None:
    elections = hand_overs = commits = 0
    for seed in range(part * 10, part * 10 + 10):
        world = live(World(seed))
        elections += world.store.elections
        hand_overs += world.store.hand_overs
        commits += sum(len(log) for log in world.committed.values())
    assert elections > 100
    assert hand_overs > 20
    assert commits > 1_000


def test_asynchronous_partitions_become_whole_too() -> None:
    for seed in range(1_000, 1_010):
        live(World(seed, replication="async"))


def test_planned_moves_lose_nothing_that_one_node_acknowledged_alone() -> None:
    """With `async` only: nodes are drained, queues altered, nobody crashes."""
    moves = 0
    for seed in range(2_000, 2_008):
        world = live(OnlyPlanned(seed, replication="async"))
        moves += world.store.hand_overs
    assert moves > 10


class OnlyPlanned(World):
    def actions(self) -> list[Callable[[], None]]:
        work = [self.append, self.replicate, self.replicate, self.turn_of_a_node, self.turn_of_a_manager]
        return [*work * 4, self.drain, self.stop_draining, self.alter_queue]

    def note_commits(self) -> None:
        """Everything that a primary has was acknowledged."""
        for replica, partition in self.leaders():
            if len(replica.log) > len(self.committed.get(partition, [])):
                self.committed[partition] = list(replica.log)


# --- the checks would notice --------------------------------------------------------------------------------


def breaks(kind: type[World], attempts: int = 60) -> bool:
    for seed in range(attempts):
        try:
            live(kind(seed))
        except UnsafeError:
            return True
    return False


class ElectsAnybody(World):
    """Believes that every replica is in sync."""

    def decide(self, view: ClusterView) -> list[Change]:
        for partition, seen in view.partitions.items():
            trusting = msgspec.structs.replace(seen.entry, in_sync=list(seen.entry.replicas))
            view.partitions[partition] = seen._replace(entry=trusting)
        return super().decide(view)


class AsksNobody(World):
    """Takes those in sync by the store's word, though a disk may have been replaced."""

    disks_lost = 0.8

    def decide(self, view: ClusterView) -> list[Change]:
        for node, words in view.positions.items():
            fit = {
                partition: msgspec.structs.replace(position, last=1_000_000, fit=True)
                for partition, position in words.positions.items()
                if not position.fit
            }
            view.positions[node] = msgspec.structs.replace(words, positions={**words.positions, **fit})
        return super().decide(view)


class WritesWithoutCondition(World):
    def write(self, change: Change) -> None:
        super().write(change._replace(version=self.store.entries.get(change.key, (b"", 0))[1]))


class ForgetsToRaiseTheEpoch(World):
    def write(self, change: Change) -> None:
        found = self.store.get(change.key)
        if isinstance(change.entry, PartitionEntry) and found is not None:
            epoch = layout.decode_partition(found[0]).epoch
            change = change._replace(entry=msgspec.structs.replace(change.entry, epoch=epoch))
        super().write(change)


class TakesOffTooEarly(World):
    """Counts a replica that is still catching up, and lets the primary's word about it be lost."""

    def write(self, change: Change) -> None:
        if isinstance(change.entry, PartitionEntry) and len(change.entry.replicas) > 1:
            newest = change.entry.replicas[-1]
            if newest not in change.entry.in_sync:
                moved = msgspec.structs.replace(change.entry, in_sync=[*change.entry.in_sync, newest])
                change = change._replace(entry=moved)
        super().write(change)


class NeverReplaces(World):
    """Leaves a drained node as it is."""

    def decide(self, view: ClusterView) -> list[Change]:
        return [change for change in super().decide(view) if "emptied" not in change.reason]


class GivesUpTooEarly(World):
    """Drops partitions of deleted queues at once, whatever is on its way from them."""

    def write(self, change: Change) -> None:
        entry = change.entry
        if isinstance(entry, PartitionEntry) and entry.deleted:
            change = change._replace(entry=given_up(entry, "the queue is deleted"))
        super().write(change)


class ForgetsToMark(World):
    """Leaves the partitions of deleted queues as they are."""

    def decide(self, view: ClusterView) -> list[Change]:
        changes = super().decide(view)
        return [one for one in changes if not isinstance(one.entry, PartitionEntry) or not one.entry.deleted]


class NeverLetsGo(World):
    """Forgets the clean-up of deleted queues."""

    def decide(self, view: ClusterView) -> list[Change]:
        return [change for change in super().decide(view) if change.entry is not None]


@pytest.mark.parametrize(
    "broken",
    [
        ElectsAnybody,
        AsksNobody,
        WritesWithoutCondition,
        ForgetsToRaiseTheEpoch,
        TakesOffTooEarly,
        NeverReplaces,
        GivesUpTooEarly,
        ForgetsToMark,
        NeverLetsGo,
    ],
    ids=lambda kind: kind.__name__,
)
def test_a_broken_manager_is_noticed(broken: type[World]) -> None:
    assert breaks(broken)


class ForgetsToWait(OnlyPlanned):
    """Makes the successor the primary at once, though only the old one has what it acknowledged."""

    def write(self, change: Change) -> None:
        entry = change.entry
        if isinstance(entry, PartitionEntry) and entry.hand_over_to is not None:
            found = self.store.get(layout.node_key(entry.hand_over_to))
            if found is not None:
                change = change._replace(entry=handed_over(entry, layout.decode_node(found[0])))
        super().write(change)

    def __init__(self, seed: int) -> None:
        super().__init__(seed, replication="async")


def test_a_hasty_move_is_noticed() -> None:
    assert breaks(ForgetsToWait)

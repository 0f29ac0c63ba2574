"""Bugs to plant in moves, in the deletion of queues and in freeing: the patches."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.backend.admin import administration
from penstock.backend.node.parts import NodeParts
from penstock.backend.send import moves
from penstock.model.records import Dropped
from penstock.model.runs import runs_of
from penstock.queue.decisions import move as moving
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.snapshot import taking_apart
from penstock.queue.state import states
from penstock.replication.primary_secondary.node.layout_view import LayoutView
from penstock.replication.primary_secondary.node.leader.draining import Draining
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.replication.primary_secondary.node.moves import next_step
from penstock.replication.primary_secondary.node.moves.arrivals import Arrivals
from penstock.replication.primary_secondary.node.moves.cluster_moves import ClusterMoves
from penstock.replication.primary_secondary.node.moves.next_step import UNHEARD, EarlierTarget
from penstock.replication.primary_secondary.node.moves.safe_steps import SafeStep
from penstock.simulation.patching import Patch
from penstock.wire.peer_messages import MovedIn


def forgets_delayed() -> Sequence[Patch]:
    """Delayed messages go with their queue, whether it has a dead-letter queue or not."""

    def rescue(partition: Partition, now_ms: int) -> list[PendingRecord]:
        return []

    return [(moving, "rescue", rescue)]


def drops_dead_letters() -> Sequence[Patch]:
    """With a queue the node drops what is in its dead-letter queue."""

    def delete_partition(parts: NodeParts, partition: Partition, now_ms: int) -> None:
        target = parts.catalogue.named(partition.settings.dead_letter_queue or "")
        real(parts, partition, now_ms)
        if target is not None and target.partition_id not in parts.catalogue.damage:
            drop_ready(parts, target, now_ms)

    real = administration.delete_partition
    return [(administration, "delete_partition", delete_partition)]


def drop_ready(parts: NodeParts, partition: Partition, now_ms: int) -> None:
    """Writes that everything is dropped that could be received."""
    table = partition.table
    ready = [
        number for number in range(1, table.next) if table.state(number) & states.STATE_BITS == states.READY
    ]
    if ready:
        parts.write(partition, [PendingRecord(Dropped(runs_of(ready), now_ms))])


def removes_what_moves() -> Sequence[Patch]:
    """A node removes a deleted queue with what is on its way from it."""

    def has_target(*arguments: object) -> bool:
        return False

    return [(moves, "has_target", has_target)]


def drops_what_moves() -> Sequence[Patch]:
    """A primary gives a partition of a deleted queue up though messages of it are on their way."""

    def is_done(self: Draining, partition_id: int, now_ms: int) -> bool:
        return True

    return [(Draining, "_is_done", is_done)]


def counts_on_one_disk() -> Sequence[Patch]:
    """A step of a move counts when the primary has it, also where that may lose it in a failover."""

    def when_everywhere(self: LedPartition, index: int, step: SafeStep) -> bool:
        if self.primary.committed >= index:
            return True
        self.waiting.append((index, step))
        return False

    def take_everywhere(self: LedPartition) -> list[SafeStep]:
        steps = []
        while self.waiting and self.waiting[0][0] <= self.primary.committed:
            steps.append(self.waiting.popleft()[1])
        return steps

    return [
        (LedPartition, "when_everywhere", when_everywhere),
        (LedPartition, "take_everywhere", take_everywhere),
    ]


def counts_gone_targets_as_reached() -> Sequence[Patch]:
    """A source takes the refusal of a target that was deleted for the word that messages have arrived."""

    def moved_in(self: ClusterMoves, answer: MovedIn) -> None:
        journey = self._requests.get(answer.number)
        known = self._state.layout.get(journey.target) if journey is not None else None
        if answer.refused and (known is None or known.entry.deleted):
            answer = MovedIn(answer.number)
        real(self, answer)

    real = ClusterMoves.moved_in
    return [(ClusterMoves, "moved_in", moved_in)]


def takes_in_late() -> Sequence[Patch]:
    """A node takes messages in that were sent again since, by the next primary of their queue."""

    def check_place(*arguments: object) -> None:
        return None

    return [(Arrivals, "_check_place", check_place)]


def freeing_takes_the_messages() -> Sequence[Patch]:
    """Tables that a purge gave up are taken apart with the messages of their partition, which goes on with them."""
    return [(taking_apart, "_NOT_ITS_OWN", "")]


def gives_up_the_unsettled() -> Sequence[Patch]:
    """A primary gives a partition of a deleted queue up before its sources know what has arrived in it."""

    def settle(self: Arrivals, target: Partition, now_ms: int) -> bool:
        return True

    return [(Arrivals, "settle", settle)]


def forgets_hidden_targets() -> Sequence[Patch]:
    """A source does not wait for a partition whose entry is missing, or too new to read."""

    def earlier_targets(layout: LayoutView, source: int, aim: str) -> list[EarlierTarget]:
        found = real(layout, source, aim)
        return [one for one in found if one.partition == UNHEARD or layout.get(one.partition) is not None]

    real = next_step.earlier_targets
    return [(next_step, "earlier_targets", earlier_targets)]


def misses_nothing() -> Sequence[Patch]:
    """A node that starts takes the layout for whole."""
    return [(LayoutView, "is_whole", True)]


def loses_restored_entries() -> Sequence[Patch]:
    """An entry that is missing stays so when a newer version puts it back."""

    def gone(self: LayoutView, partition: int, now_ms: int, *, unreadable: bool = False) -> None:
        missing = self.missing.get(partition)
        real(self, partition, now_ms, unreadable=unreadable)
        if missing is not None:
            self.missing[partition] = missing

    real = LayoutView.gone
    return [(LayoutView, "gone", gone)]


def sources_hear_nothing() -> Sequence[Patch]:
    """A queue is deleted, and its sources do not hear what has arrived in it."""

    def settle_sources(parts: NodeParts, target: Partition, now_ms: int) -> bool:
        return True

    def settle_with_deleted(parts: NodeParts, source: Partition, now_ms: int) -> None:
        pass

    return [
        (administration, "settle_sources", settle_sources),
        (moves, "settle_sources", settle_sources),
        (moves, "_settle_with_deleted", settle_with_deleted),
    ]

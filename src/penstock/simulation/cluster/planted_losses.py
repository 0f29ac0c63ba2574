"""Bugs to plant that show in queues which may lose something (`async`) and break more than a lost record can: the patches and where they
show; `planted_bugs` names them too. No other queue of such a run has what the bug breaks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.model.records import Deleted
from penstock.model.runs import Runs
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Decision, Outcome, PendingRecord
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.layout_view import KnownEntry
from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.routing import browsing
from penstock.routing.context import RoutingContext
from penstock.simulation import planted_ordering, planted_patches
from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.scenario import LOSING_HUNTS, ClusterScenario
from penstock.simulation.planted_patches import Patch
from penstock.simulation.queue_plan import QueuePlan
from penstock.steps.asking import ask_all
from penstock.steps.step import Ask, Reply, Steps
from penstock.wire.messages import Count, Purge


def _on_failover(spoil: Callable[[Partition], None]) -> Callable[[], Sequence[Patch]]:
    """What a node does to an `async` partition when it takes it over."""

    def patches() -> Sequence[Patch]:
        real = Leader.lead

        def lead(self: Leader, known: KnownEntry) -> bool:
            partition = self.state.parts.catalogue.partitions.get(known.entry.partition)
            is_async = partition is not None and partition.settings.replication == "async"
            if partition is not None and is_async and known.entry.epoch > 1:
                spoil(partition)
            return real(self, known)

        return [(Leader, "lead", lead)]

    return patches


def _deletes_leave_one() -> Sequence[Patch]:
    """A delete of several messages of an `async` queue leaves the last one, and says that it is done."""

    def delete(
        partition: Partition, lease: int, runs: Runs, now_ms: int, received: int | None = None
    ) -> Decision[Outcome]:
        decision = real(partition, lease, runs, now_ms, received)
        if partition.settings.replication != "async" or not decision.records:
            return decision
        record = decision.records[0].record
        assert isinstance(record, Deleted)
        first, count = record.runs[-1]
        left = [*record.runs[:-1], *([(first, count - 1)] if count > 1 else [])]
        written = (PendingRecord(Deleted(lease, left, now_ms)),) if left else decision.records
        return Decision(written, decision.reply)

    real = settling.delete
    return [(settling, "delete", delete)]


def _purges_leave_a_partition() -> Sequence[Patch]:
    """A purge of an `async` queue leaves what is in its last partition, and says that it is done."""

    def purge(context: RoutingContext, request: Purge) -> Steps[Reply]:
        queue = context.queue(request.queue_id)
        if queue.settings.replication != "async" or len(queue.partitions) == 1:
            return (yield from real(context, request))
        asks = [Ask(Purge(partition), partition=partition) for partition in queue.partitions[:-1]]
        return Reply(Count(sum(count.messages for count in (yield from ask_all(asks, Count)))))

    real = browsing.purge
    return [(browsing, "purge", purge)]


def _watermarks_begin_again() -> Sequence[Patch]:
    """A node that took an `async` partition over tells the watermark of a new one."""

    def watermark_us(self: Partition) -> int:
        is_taken_over = self.settings.replication == "async" and self.epochs.last > 1
        return 0 if is_taken_over else real(self)

    real = vars(Partition)["watermark_us"].fget
    return [(Partition, "watermark_us", property(watermark_us))]


def _purges_several(scenario: ClusterScenario) -> bool:
    """Where an `async` queue of several partitions is purged, and primaries change."""
    plans = [plan.settings for plan in scenario.base.queues if plan.settings.partitions > 1]
    is_loose = any(settings.replication == "async" for settings in plans)
    return bool(scenario.base.operators) and scenario.destructive and is_loose and _fails_over(scenario)


def _async(plans: Sequence[QueuePlan]) -> bool:
    """Whether there are any, and all are acknowledged by their primary alone."""
    return bool(plans) and all(plan.settings.replication == "async" for plan in plans)


def _fails_over(scenario: ClusterScenario) -> bool:
    faults = scenario.faults
    return bool(faults.crashes_ms or faults.cuts_ms or faults.hunt in (*LOSING_HUNTS, "hand-over"))


def _loses(what: Callable[[QueuePlan], object] = lambda plan: True) -> Callable[[ClusterScenario], bool]:
    """Where primaries change, and all queues are `async` that have something."""
    return lambda scenario: (
        _fails_over(scenario) and _async([plan for plan in scenario.base.queues if what(plan)])
    )


LOSS_BUGS: dict[str, ClusterBug] = {
    "async-deletes-leave-one": ClusterBug(
        ("I2",),
        "a delete of several messages of an async queue leaves one, and says that it is done",
        _deletes_leave_one,
        _loses(lambda plan: plan.settings.has_queue),
    ),
    "async-failover-forgets-producers": ClusterBug(
        ("I3",),
        "a node that takes over an async partition has forgotten which batches are stored",
        _on_failover(planted_patches.forget_producers),
        lambda scenario: scenario.faults.hunt == "lost-answer" and _loses()(scenario),
    ),
    "async-failover-forgets-leases": ClusterBug(
        ("I4",),
        "a node that takes over an async partition makes leased messages ready",
        _on_failover(planted_patches.forget_leases),
        _loses(lambda plan: plan.settings.has_queue),
    ),
    "async-failover-resets-counts": ClusterBug(
        ("I5",),
        "a node that takes over an async partition has forgotten receive counts",
        _on_failover(planted_patches.reset_receive_counts),
        _loses(lambda plan: plan.settings.has_queue),
    ),
    "async-receives-without-limit": ClusterBug(
        ("I6",),
        "a message of an async queue is received more often than the queue allows",
        planted_patches.receives_without_limit,
        _loses(lambda plan: plan.settings.max_receives is not None),
    ),
    "async-release-delay-ignored": ClusterBug(
        ("I7",),
        "what was released for later in an async queue is ready at once",
        planted_patches.release_delay_ignored,
        _loses(lambda plan: plan.settings.has_queue),
    ),
    "async-fifo-overtakes": ClusterBug(
        ("fifo",),
        "a group of an async queue goes on while its first message is out",
        planted_patches.fifo_passes_leased,
        _loses(lambda plan: plan.settings.strict and plan.settings.has_queue),
    ),
    "async-failover-forgets-the-watermark": ClusterBug(
        ("late",),
        "a node that takes over an async partition takes in what comes before what has left the window",
        _on_failover(planted_ordering.forget_floors),
        _loses(lambda plan: plan.settings.sorted),
    ),
    "async-purges-leave-a-partition": ClusterBug(
        ("I2",),
        "a purge of an async queue leaves what is in one partition, and says that it is done",
        _purges_leave_a_partition,
        _purges_several,
    ),
    "async-watermarks-begin-again": ClusterBug(
        ("late",),
        "a node that took over an async partition tells the watermark of a new one",
        _watermarks_begin_again,
        _loses(lambda plan: plan.settings.sorted and plan.settings.ordering == "clock"),
    ),
    "async-slices-at-the-wrong-message": ClusterBug(
        ("log",),
        "a read from inside of a batch of an async log begins one message too early",
        planted_ordering.slices_begin_with_their_batch,
        _loses(lambda plan: plan.settings.has_log),
    ),
    "async-failover-forgets-offsets": ClusterBug(
        ("groups",),
        "in an async log that another node took over groups of readers begin at the front",
        _on_failover(planted_ordering.forget_offsets),
        lambda scenario: scenario.base.group_members > 0 and _loses(lambda p: p.settings.has_log)(scenario),
    ),
}

"""Bugs to plant in what replicas keep: starts, cuts, retention; `planted_bugs` names them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.backend.node import whole_state
from penstock.replication.primary_secondary.node import peer_stream
from penstock.replication.primary_secondary.node.layout_view import KnownEntry
from penstock.replication.primary_secondary.node.leader import sender
from penstock.replication.primary_secondary.node.leader.leader import Leader
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.simulation import planted_deletion, planted_idleness, planted_opening, planted_ordering
from penstock.simulation.cluster import planted_claims, planted_cuts
from penstock.simulation.cluster.cluster_bug import ClusterBug
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.cluster.targeted_copies import fails_copies
from penstock.simulation.planted_patches import Patch
from penstock.storage import replica_log
from penstock.storage.copy import CopyJob
from penstock.storage.segments import Segments


def _whole_states(scenario: ClusterScenario) -> bool:
    return scenario.faults.hunt == "whole-state"


def _parts_logs(scenario: ClusterScenario) -> bool:
    """Where a primary is hunted that writes what nobody else gets."""
    return scenario.faults.hunt in ("old-primary", "standstill", "left-behind")


def _short_logs(scenario: ClusterScenario) -> bool:
    return any(queue.settings.retain_bytes is not None for queue in scenario.base.queues)


def _floods(scenario: ClusterScenario) -> bool:
    return scenario.base.flood


def _failover_drops() -> Sequence[Patch]:
    """A node that has taken an `async` partition over drops what could be received."""

    def update(self: Leader, led: LedPartition, known: KnownEntry) -> None:
        real(self, led, known)
        partition = self.state.parts.catalogue.partitions[led.partition_id]
        is_new = led.epoch > 1 and known.entry.serving == led.epoch and id(led) not in done
        if is_new and partition.settings.replication == "async":
            done[id(led)] = led
            planted_deletion.drop_ready(self.state.parts, partition, self.state.now_ms)

    done: dict[int, LedPartition] = {}
    real = Leader.update
    return [(Leader, "update", update)]


def _failed_copies_forget_nothing() -> Sequence[Patch]:
    """That a partition was dropped while a copy of it failed is remembered, and counts for the next one."""

    def copied(self: Segments, job: CopyJob, appended_position: int) -> None:
        was_dropped = job.error is not None and job.partition in self._dropped
        real(self, job, appended_position)
        if was_dropped:
            self._dropped.add(job.partition)

    real = Segments.copied
    return [(Segments, "copied", copied)]


def _loses_async(scenario: ClusterScenario) -> bool:
    faults, queues = scenario.faults, scenario.base.queues
    is_loose = any(queue.settings.replication == "async" for queue in queues)
    return is_loose and bool(faults.crashes_ms or faults.cuts_ms or faults.hunt)


def _ignores_windows() -> Sequence[Patch]:
    """A primary sends on however much of it a replica has not got on its disk yet."""
    return [
        (PeerStream, "has_room", property(lambda self: True)),
        # What may be under way beside a window, small: otherwise no run sends enough to pass the bound.
        (peer_stream, "WINDOW_BYTES", 1_000),
        (sender, "APPEND_BYTES", 1_000),
        (replica_log, "READ_BYTES", 1_000),
        (replica_log, "IMAGE_PART_BYTES", 1_000),
        (whole_state, "_WALK_BYTES", 1_000),
    ]


STORAGE_BUGS: dict[str, ClusterBug] = {
    "failed-copies-drop-the-next": ClusterBug(
        ("ledger", "I9", "I10", "log-cut"),
        "a partition that was dropped while a copy of it failed is removed when the next copy of it is done",
        _failed_copies_forget_nothing,
        fails_copies,
    ),
    "restart-forgets-whole-states": ClusterBug(
        ("ledger",),
        "after a restart a replica has not got the state that it was sent whole",
        planted_opening.whole_states_are_forgotten,
        _whole_states,
    ),
    "cut-one-too-many": ClusterBug(
        ("log-cut",),
        "a replica that cuts its log cuts one record that is committed",
        planted_cuts.cuts_one_too_many,
        _parts_logs,
    ),
    "cut-forgets-producers": ClusterBug(
        ("log-cut",),
        "a replica that cut its log has forgotten which batches are stored",
        planted_cuts.cuts_forget_producers,
        _parts_logs,
    ),
    "failover-drops-messages": ClusterBug(
        ("I1",),
        "a node that takes over an async partition drops what could be received",
        _failover_drops,
        _loses_async,
    ),
    "windows-are-ignored": ClusterBug(
        ("I13",),
        "a primary sends on however much of it a replica has not got on its disk yet",
        _ignores_windows,
        _floods,
    ),
    "logs-are-cut-early": ClusterBug(
        ("log-cut",),
        "a log is cut at half the bytes that it should keep",
        planted_ordering.logs_are_cut_early,
        _short_logs,
    ),
    "claims-are-left-out": ClusterBug(
        ("I3",),
        "partitions do not agree on whose a deduplication id is",
        planted_claims.claims_are_left_out,
        planted_claims.has_claims,
    ),
    "bars-are-left-out": ClusterBug(
        ("I3",),
        "a partition stores an id after it said that it has not got it",
        planted_claims.bars_are_left_out,
        planted_claims.has_claims,
    ),
    "bars-end-with-the-window": ClusterBug(
        ("I3",),
        "a send that was held up stores an id that was given to another partition",
        planted_claims.bars_end_with_the_window,
        planted_claims.has_short_windows,
    ),
    "one-idle-partition-is-enough": ClusterBug(
        ("idle",),
        "a queue goes of which one partition is not used",
        planted_idleness.one_idle_partition_is_enough,
        lambda scenario: scenario.has_visitor,
    ),
}

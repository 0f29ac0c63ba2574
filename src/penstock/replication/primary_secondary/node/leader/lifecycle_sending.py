"""Sends lifecycle rows of the partitions that this node leads to the log `penstock.lifecycle`, on whichever node it is led.

Only safe rows are reported: those whose records are on the disks of all replicas that may be elected. The node's process
takes the reports, sends them like any client of the cluster, and calls back when one is stored; then that is recorded. If
a primary fails in between, the next one has the same rows, and reports them again under the same numbers.

A partition of a deleted queue reports its last rows before it is dropped.
"""

from __future__ import annotations

import logging

from penstock.backend.lifecycle.reports import RETRY_MS, first_rows, rows_waiting
from penstock.cluster.layout.entries import PartitionEntry
from penstock.model import limits
from penstock.model.batch import encode_one
from penstock.model.errors import PenstockError
from penstock.model.records import LifecycleEnded, LifecycleReported
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.lifecycle_row import PartitionName, lifecycle_stream
from penstock.queue.partition import Partition
from penstock.replication.cluster_interface import LifecycleReport
from penstock.replication.primary_secondary.node.state import ClusterState

logger = logging.getLogger("penstock.backend")

_UNCOMMITTED_MS = 10
"""The interval of checks whether the records of waiting rows are safe."""
LAST_WORDS_MS = 10_000
"""A deleted partition waits for so long until its last rows are stored."""


class LifecycleSending:
    """One report at a time for each partition."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._since: dict[int, int] = {}
        """Partitions with rows that wait, and since when."""
        self._under_way: dict[int, LifecycleReport] = {}
        self._not_before_ms: dict[int, int] = {}
        self._last_words: dict[int, tuple[PartitionEntry, int]] = {}
        """Partitions of deleted queues, and until when they wait."""

    def take(self, now_ms: int) -> list[LifecycleReport]:
        """The rows to send now; the outcome of each must be reported."""
        parts, since = self._state.parts, self._since
        if parts.to_report:
            for partition_id in parts.to_report:
                since.setdefault(partition_id, now_ms)
            parts.to_report.clear()
        if not since and not self._last_words:
            return []
        reports = [
            self._due(partition_id, since_ms, now_ms) for partition_id, since_ms in list(since.items())
        ]
        reports += [self._last(partition_id, now_ms) for partition_id in self._last_words]
        taken = [report for report in reports if report is not None]
        for report in taken:
            self._under_way[report.partition] = report
        return taken

    def _due(self, partition_id: int, since_ms: int, now_ms: int) -> LifecycleReport | None:
        state = self._state
        partition, led = state.parts.catalogue.partitions.get(partition_id), state.led.get(partition_id)
        waiting = rows_waiting(partition)
        if partition is None or led is None or not waiting:  # only its primary writes that, so it comes back
            del self._since[partition_id]
            return None
        if self._is_early(partition_id, now_ms) or not state.sends_on(partition_id):
            return None
        if now_ms - since_ms < limits.LIFECYCLE_REPORT_MS and waiting < limits.LIFECYCLE_ROWS_PER_REPORT:
            return None
        known = state.layout.get(partition_id)
        report = None
        if known is not None:
            report = self._report(partition, known.entry, led.epoch, led.primary.everywhere())
        if report is None:
            self._not_before_ms[partition_id] = now_ms + _UNCOMMITTED_MS
        else:
            led.primary.rely(led.primary.everywhere())
        return report

    def _is_early(self, partition_id: int, now_ms: int) -> bool:
        return partition_id in self._under_way or now_ms < self._not_before_ms.get(partition_id, 0)

    def _report(
        self, partition: Partition, entry: PartitionEntry, epoch: int, through_index: int
    ) -> LifecycleReport | None:
        assert partition.lifecycle is not None
        first = partition.lifecycle.first
        rows = first_rows(self._state.parts, partition.lifecycle, through_index)
        if not rows:
            return None
        place = PartitionName(entry.queue, entry.queue_id, entry.ordinal, entry.partition)
        batch = encode_one(lifecycle_stream(place, first, rows))
        return LifecycleReport(entry.partition, epoch, first + len(rows) - 1, batch)

    # -- outcomes --------------------------------------------------------------------------------------------

    def stored(self, report: LifecycleReport, now_ms: int) -> None:
        """The log has the rows."""
        partition_id = report.partition
        if self._under_way.get(partition_id) is not report:
            return  # this node was deposed meanwhile
        del self._under_way[partition_id]
        self._since[partition_id] = now_ms
        partition, led = (
            self._state.parts.catalogue.partitions.get(partition_id),
            self._state.led.get(partition_id),
        )
        if partition is None or (report.epoch and (led is None or led.epoch != report.epoch)):
            return
        try:
            self._state.parts.write(partition, [PendingRecord(LifecycleReported(report.through, now_ms))])
        except PenstockError:  # no room in the journal: the same rows are reported again
            self._not_before_ms[partition_id] = now_ms + RETRY_MS

    def failed(self, report: LifecycleReport, now_ms: int) -> None:
        """The log may have the rows or not: they are sent again."""
        if self._under_way.get(report.partition) is report:
            del self._under_way[report.partition]
            self._not_before_ms[report.partition] = now_ms + RETRY_MS

    def deposed(self, partition_id: int) -> None:
        """This node does not lead the partition any more; its next primary reports what waits."""
        self._since.pop(partition_id, None)
        self._under_way.pop(partition_id, None)
        self._not_before_ms.pop(partition_id, None)

    def next_ms(self) -> int | None:
        """When there may be something to send."""
        if not self._since and not self._last_words:
            return None
        times = [
            max(since_ms + limits.LIFECYCLE_REPORT_MS, self._not_before_ms.get(partition_id, 0))
            for partition_id, since_ms in self._since.items()
            if partition_id not in self._under_way and self._state.sends_on(partition_id)
        ]
        times += [until_ms for _, until_ms in self._last_words.values()]
        times += [
            self._not_before_ms.get(partition_id, 0)
            for partition_id in self._last_words.keys() - self._under_way
        ]
        return min(times, default=None)

    # -- deleted queues --------------------------------------------------------------------------------------

    def may_drop(self, partition: Partition, entry: PartitionEntry, led: bool, now_ms: int) -> bool:
        """Whether a partition of a deleted queue has reported all its rows; `led`: this node led it until now.

        Raises if the journal has no room. Replicas that did not lead report nothing: the primary has the same rows.
        """
        lifecycle, partition_id = partition.lifecycle, partition.partition_id
        if lifecycle is None or not entry.retired or partition_id in self._state.parts.catalogue.damage:
            return True
        if led or (lifecycle.ended and lifecycle.waiting):  # the latter after a restart
            self._last_words.setdefault(partition_id, (entry, now_ms + LAST_WORDS_MS))
        if partition_id not in self._last_words:
            return True
        if lifecycle.following:
            self._state.parts.write(partition, [PendingRecord(LifecycleEnded(now_ms))])
        if lifecycle.waiting and now_ms < self._last_words[partition_id][1]:
            return False
        if lifecycle.waiting:
            rows = len(lifecycle.waiting)
            logger.warning(
                "lost %(rows)d lifecycle rows of the deleted queue %(queue)r: no node stored them",
                {"rows": rows, "queue": entry.queue},
            )
        del self._last_words[partition_id]
        self.deposed(partition_id)
        return True

    def _last(self, partition_id: int, now_ms: int) -> LifecycleReport | None:
        partition = self._state.parts.catalogue.partitions.get(partition_id)
        if partition is None or not rows_waiting(partition) or self._is_early(partition_id, now_ms):
            return None
        return self._report(partition, self._last_words[partition_id][0], 0, partition.index)

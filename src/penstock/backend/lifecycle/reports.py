"""Reports lifecycle rows to the log `penstock.lifecycle`, on a single server.

The rows of a queue and the log are in one journal, of which a crash keeps a prefix: a report comes after the records that
it is about, so it can never be on disk without them. After a crash between the report and the record of the report, the
same rows are written again, under the same numbers.
"""

from __future__ import annotations

import logging

from penstock.backend.admin.queue_making import make_queue
from penstock.backend.node.parts import NodeParts
from penstock.columnar.lifecycle import LIFECYCLE_QUEUE
from penstock.model import limits
from penstock.model.batch import Batch, encode_one
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.internal_queues import internal_log_settings
from penstock.model.records import LifecycleEnded, LifecycleReported
from penstock.queue.decisions import send as sending
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.lifecycle import Lifecycle
from penstock.queue.lifecycle_row import LifecycleRow, PartitionName, lifecycle_stream
from penstock.queue.partition import Partition

logger = logging.getLogger("penstock.backend")

RETRY_MS = 100
_BYTES_PER_ROW = 512
"""More than a row takes, but for its texts."""
_BYTES_PER_CHARACTER = 8


class LifecycleReports:
    """When the partitions are reported. Only for a single server."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._since: dict[int, int] = {}
        """Queues with rows that wait, and since when."""
        self._not_before_ms = 0

    def report_due(self, now_ms: int) -> None:
        """Reports what has waited for long enough, or is enough for a report."""
        parts, since = self._parts, self._since
        if parts.to_report:
            for partition_id in parts.to_report:
                since.setdefault(partition_id, now_ms)
            parts.to_report.clear()
        if not since or now_ms < self._not_before_ms:
            return
        if parts.congested():  # the rows can wait, and what waits for the disk is bounded
            self._not_before_ms = now_ms + RETRY_MS
            return
        for partition_id, since_ms in list(since.items()):
            partition = parts.catalogue.partitions.get(partition_id)
            waiting = rows_waiting(partition)
            if partition is None or not waiting or partition_id in parts.catalogue.damage:
                del since[partition_id]
                continue
            if now_ms - since_ms < limits.LIFECYCLE_REPORT_MS and waiting < limits.LIFECYCLE_ROWS_PER_REPORT:
                continue
            try:
                report(parts, partition, now_ms)
            except PenstockError:  # no room in the journal, or the log is damaged: the rows wait
                self._not_before_ms = now_ms + RETRY_MS
                return
            del since[partition_id]  # remaining rows were noted again by the report

    def next_ms(self) -> int | None:
        """When there is something to report."""
        if not self._since:
            return None
        oldest_ms = next(iter(self._since.values()))  # noted in the order of time
        return max(self._not_before_ms, oldest_ms + limits.LIFECYCLE_REPORT_MS)

    def report_all(self, now_ms: int) -> None:
        """Before the node is closed: nothing waits for company any more."""
        for partition in list(self._parts.catalogue.partitions.values()):
            try:
                while rows_waiting(partition) and partition.partition_id not in self._parts.catalogue.damage:
                    report(self._parts, partition, now_ms)
            except (
                PenstockError
            ):  # the rows are in the partition's records, and reported after the next start
                return


def rows_waiting(partition: Partition | None) -> int:
    """How many rows of a partition the log does not have."""
    return 0 if partition is None or partition.lifecycle is None else len(partition.lifecycle.waiting)


def report(parts: NodeParts, partition: Partition, now_ms: int) -> None:
    """Writes the rows that wait, up to a report full, to the log, and that it was done; raises where that cannot be."""
    lifecycle = partition.lifecycle
    if lifecycle is None or not lifecycle.waiting:
        return
    parts.logbook.check_room_for_send()
    target = parts.catalogue.named(LIFECYCLE_QUEUE)
    if target is None:
        target = make_queue(parts, LIFECYCLE_QUEUE, internal_log_settings(), now_ms)
    parts.catalogue.usable(target.partition_id)
    first, rows = lifecycle.first, first_rows(parts, lifecycle, partition.index)
    place = PartitionName(partition.name, partition.partition_id, 0, partition.partition_id)
    batch = Batch(encode_one(lifecycle_stream(place, first, rows)))
    parts.carry_out(target, sending.admit(target, batch, 0, 0, now_ms))
    parts.write(partition, [PendingRecord(LifecycleReported(first + len(rows) - 1, now_ms))])


def first_rows(parts: NodeParts, lifecycle: Lifecycle, through_index: int) -> list[LifecycleRow]:
    """As many of the first rows as make a report, of records up to an index."""
    room = parts.store.entry_bytes_max
    return lifecycle.rows(
        through_index,
        min(limits.LIFECYCLE_ROWS_PER_REPORT, max(1, room // _BYTES_PER_ROW)),
        min(limits.LIFECYCLE_REPORT_CHARACTERS, room // _BYTES_PER_CHARACTER),
    )


def end_lifecycle(parts: NodeParts, partition: Partition, now_ms: int) -> bool:
    """The queue is deleted and nothing is moving: reports what is deleted with it, one report at a time; True: that was all.

    Raises if the disk cannot keep up at the moment. If it is full, or the log damaged, the queue is removed without its
    rows, because that may free the space.
    """
    lifecycle = partition.lifecycle
    if lifecycle is None or not parts.model.makes_queues or partition.partition_id in parts.catalogue.damage:
        return True
    try:
        if lifecycle.following:
            parts.write(partition, [PendingRecord(LifecycleEnded(now_ms))])
        report(parts, partition, now_ms)
        return not lifecycle.waiting
    except PenstockError as error:
        if error.code is ErrorCode.OVERLOADED:
            raise
        rows = len(lifecycle.waiting)
        logger.warning(
            "lost %(rows)d lifecycle rows of the deleted queue %(queue)r: %(error)s",
            {"rows": rows, "queue": partition.name, "error": error.message},
        )
        return True

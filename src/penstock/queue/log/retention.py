"""Removes old batches of a retained log, by age and by bytes, and never what the settings promise to keep.

A message stays while it is younger than `retention_ms` and among the newest `retain_bytes`. A batch is removed when all of
it is beyond one of the two limits. Times are rounded to slots, as everywhere in retention: removal may be late, never
early.
"""

from __future__ import annotations

from penstock.model import limits
from penstock.model.records import LogCut
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition

_BATCHES_AT_ONCE = 100_000


def cut_due(partition: Partition) -> int | None:
    """The time of the next check for old batches."""
    log = partition.log
    if log is None:
        return None
    oldest_ms = log.oldest_ms()
    if oldest_ms is None:
        return None
    settings = partition.settings
    if settings.retain_bytes is not None and log.is_over(settings.retain_bytes):
        return _slot(partition.last_sent_ms)
    return _slot(oldest_ms + settings.retention_ms)


def cut(partition: Partition, now_ms: int) -> list[PendingRecord]:
    """Removes the batches that no setting promises to keep."""
    log, settings = partition.log, partition.settings
    if log is None or not len(log):
        return []
    written: list[PendingRecord] = []
    by_age = log.end_of_age(now_ms - settings.retention_ms, _BATCHES_AT_ONCE)
    if by_age > log.begin:
        written.append(PendingRecord(LogCut(by_age, "age", now_ms)))
    if settings.retain_bytes is not None:
        by_bytes = log.end_of_bytes(settings.retain_bytes, _BATCHES_AT_ONCE)
        if by_bytes > max(by_age, log.begin):
            written.append(PendingRecord(LogCut(by_bytes, "bytes", now_ms)))
    return written


def _slot(time_ms: int) -> int:
    return -(-time_ms // limits.RETENTION_SLOT_MS) * limits.RETENTION_SLOT_MS

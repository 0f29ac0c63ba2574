"""Checks whether a batch under a known number is the batch that was stored under it.

Without this check, messages could be acknowledged that are not stored. Only numbers are stored of a batch, so the check
compares the number of messages, and the deduplication ids as long as the window remembers them. A batch without ids that
has the same number of messages passes the check.
"""

from __future__ import annotations

from penstock.model.batch import DEDUPLICATION, Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import ELSEWHERE
from penstock.queue.decisions.left_out import LeftOut, places_of
from penstock.queue.partition import Partition
from penstock.queue.state.stored_batch import StoredBatch


def check_same(
    partition: Partition,
    stored: StoredBatch,
    batch: Batch,
    left_out: LeftOut,
    producer: int,
    number: int,
    sent_ms: int,
) -> None:
    """Raises where a batch cannot be the one that was stored. `sent_ms`: the time, which is never before that of a record."""
    were = stored.count + len(stored.duplicates)
    if were == batch.count and not any(one & ELSEWHERE for _, one in stored.duplicates):
        left_out = ()  # a node or a front end of an earlier version did not count what was left out
    else:
        check_count(stored, batch.count + len(left_out), producer, number)
    if not batch.columns & DEDUPLICATION:
        return
    is_over = sent_ms >= stored.sent_ms + partition.settings.deduplication_window_ms
    if is_over or stored.first < partition.window.known_from:
        return
    batch.check()
    originals = dict(stored.duplicates)
    fresh = iter(range(stored.first, stored.first + stored.count))
    numbers = [0 if place in originals else next(fresh) for place in range(were)]
    names = batch.names(DEDUPLICATION) or ()
    for place, name in zip(places_of(batch, left_out), names, strict=True):
        if name and numbers[place] and partition.window.original(name, sent_ms) != numbers[place]:
            raise _another(producer, number, f"message {place} of it had another deduplication id")


def check_count(stored: StoredBatch, count: int, producer: int, number: int) -> None:
    """Raises where a batch has another number of messages than the one that was stored."""
    were = stored.count + len(stored.duplicates)
    if were != count:
        raise _another(producer, number, f"it had {were} messages, and now has {count}")


def _another(producer: int, number: int, difference: str) -> PenstockError:
    return PenstockError(
        ErrorCode.BAD_REQUEST,
        f"producer {producer} sent other messages under number {number} before: {difference}. A number identifies one batch; "
        "use a new one for other messages",
    )

"""A row of the lifecycle log as a partition makes it, and many rows as the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from penstock.columnar.arrow import Cells, arrow_stream
from penstock.columnar.lifecycle import LIFECYCLE

_MICROSECONDS = 1_000


class LifecycleRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A row without its number, which follows from its place, and without the values that all rows of a partition share."""

    index: int
    """The index of the record that caused the row."""
    at_ms: int
    change: int
    first: int
    count: int
    lease: int | None = None
    until_ms: int | None = None
    reason: str | None = None
    consumer: str | None = None
    error: str | None = None
    group: str | None = None
    ordering: str | None = None
    bytes: int | None = None
    receives: int | None = None
    other_queue: str | None = None
    other_partition_id: int | None = None
    other_first: int | None = None
    census_first: int | None = None
    census_last: int | None = None
    stamps: str | None = None

    @property
    def text_characters(self) -> int:
        """How much its texts take, about."""
        if self.error is self.group is self.consumer is self.other_queue is None:
            return 0
        texts = (self.error, self.group, self.consumer, self.other_queue)
        return sum(len(text) for text in texts if text is not None)


class PartitionName(NamedTuple):
    """The values that are the same for all rows of a partition."""

    queue: str
    queue_id: int
    ordinal: int
    partition_id: int


def lifecycle_stream(place: PartitionName, first_number: int, rows: Sequence[LifecycleRow]) -> bytes:
    """The rows, numbered from the first one on, as one Arrow stream."""
    count = len(rows)
    columns: list[Cells] = [
        [row.at_ms * _MICROSECONDS for row in rows],
        [place.queue] * count,
        [place.queue_id] * count,
        [place.ordinal] * count,
        [place.partition_id] * count,
        range(first_number, first_number + count),
        [row.change for row in rows],
        [row.first for row in rows],
        [row.count for row in rows],
        [row.lease for row in rows],
        [None if row.until_ms is None else row.until_ms * _MICROSECONDS for row in rows],
        [row.reason for row in rows],
        [row.consumer for row in rows],
        [row.error for row in rows],
        [row.group for row in rows],
        [row.ordering for row in rows],
        [row.bytes for row in rows],
        [row.receives for row in rows],
        [row.other_queue for row in rows],
        [row.other_partition_id for row in rows],
        [row.other_first for row in rows],
        [row.census_first for row in rows],
        [row.census_last for row in rows],
        [row.stamps for row in rows],
    ]
    return arrow_stream(LIFECYCLE, columns)

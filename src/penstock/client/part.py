"""A part of a delivery: a run of messages as the server sent it, its columns read only when looked at."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from penstock.model.batch import ATTRIBUTES, DEDUPLICATION, GROUPS, Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.messages import DeliveredBatch


class Columns(NamedTuple):
    """The columns of a part, found once: offsets of bodies and attributes, and the names."""

    batch: Batch
    bodies: list[int]
    groups: list[bytes] | None
    deduplication_ids: list[bytes] | None
    attributes: list[int] | None


class Part:
    """Messages `[first, first + count)` of one batch."""

    __slots__ = ("_columns", "_data", "count", "first", "head", "queue")

    def __init__(self, queue: str, head: DeliveredBatch, data: memoryview) -> None:
        self.queue = queue
        self.head = head
        self.first = head.first
        self.count = head.count
        self._data = data
        self._columns: Columns | None = None

    @property
    def columns(self) -> Columns:
        """The parsed batch; parsed on first use."""
        if self._columns is None:
            self._columns = self._parse()
        return self._columns

    def _parse(self) -> Columns:
        batch = Batch(self._data)
        if batch.count != self.count:
            raise _damaged(f"{batch.count} messages where {self.count} were announced")
        start = batch.body_offset
        bodies = [start, *(start + offset for offset in accumulate(batch.sizes))]
        attributes: list[int] | None = None
        if batch.columns & ATTRIBUTES:
            offset, block = batch.offsets[ATTRIBUTES]
            sizes = batch.data[offset:block].cast("I")
            attributes = [block, *(block + end for end in accumulate(sizes))]
        return Columns(batch, bodies, batch.names(GROUPS), batch.names(DEDUPLICATION), attributes)

    def body(self, index: int) -> bytes:
        """The body of one message, copied out."""
        batch, offsets, *_ = self.columns
        return bytes(batch.data[offsets[index] : offsets[index + 1]])

    def bodies(self) -> list[bytes]:
        """All bodies, copied out; the quickest way to them."""
        return self.columns.batch.bodies() if self._columns is not None else Batch(self._data).bodies()

    def attributes(self, index: int) -> bytes:
        """The encoded attributes of one message; empty = none."""
        columns = self.columns
        if columns.attributes is None:
            return b""
        return bytes(columns.batch.data[columns.attributes[index] : columns.attributes[index + 1]])


def parts_of(queue: str, batches: Sequence[DeliveredBatch], body: memoryview) -> list[Part]:
    """Cuts the body of a delivery into its parts."""
    parts: list[Part] = []
    offset = 0
    for head in batches:
        end = offset + head.size
        if end > len(body):
            raise _damaged(f"{len(body)} bytes, fewer than announced")
        parts.append(Part(queue, head, body[offset:end]))
        offset = end
    if offset != len(body):
        raise _damaged(f"{len(body)} bytes, more than announced")
    return parts


def _damaged(what: str) -> PenstockError:
    return PenstockError(ErrorCode.INTERNAL, f"the server sent a delivery that contradicts itself: {what}")

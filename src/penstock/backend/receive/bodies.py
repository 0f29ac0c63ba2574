"""From runs of leased or peeked messages to the slices of stored batches with their bodies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.batch import STAMPS, Batch, Buffer
from penstock.model.origin import Origin
from penstock.model.records import Sent
from penstock.model.runs import Runs
from penstock.queue.decisions.receive import received, stored_runs
from penstock.queue.partition import Partition
from penstock.queue.state.table import MessageTable
from penstock.storage.disk import WouldBlockError
from penstock.storage.entry import OFFSET_MASK, POSITION_SHIFT
from penstock.storage.errors import DamagedEntryError
from penstock.storage.store import Store
from penstock.wire.messages import DeliveredBatch

_COLD_AT_ONCE = 64


_JOINED_BYTES = 4096
"""Slices smaller than this on average are copied into one buffer. A hundred of 130 bytes: 5 µs to frame, not 40."""


class ColdReadError(Exception):
    """The bodies are not in memory: read these positions in a helper thread and try again."""

    def __init__(self, positions: list[int]) -> None:
        super().__init__(f"{len(positions)} batches are not in memory")
        self.positions = positions


class StoredSlice(NamedTuple):
    """A run of messages of one stored batch, ready to be copied."""

    first: int
    messages: int
    sent: Sent
    batch: Batch

    def origin(self) -> Origin | None:
        """The origin of just these messages, if they moved here."""
        origin = self.sent.origin
        if origin is None or self.messages == self.sent.count:
            return origin
        start = self.first - self.sent.first
        return origin.part(range(start, start + self.messages))

    def stamps(self) -> tuple[int, int, int]:
        """Stamp, process and counter of the first of these messages; zeros where they have none."""
        start = self.first - self.sent.first
        stamp_us = self.sent.stamp_us
        if not stamp_us and (times := self.batch.integers(STAMPS)) is not None:
            stamp_us = times[start]
        if not self.sent.process:
            return stamp_us, 0, 0
        return stamp_us, self.sent.process, self.sent.counter + start

    def batch_alone(self) -> Batch:
        """The messages as a batch that does not hold on to the others."""
        if self.messages == self.sent.count:
            return self.batch
        return Batch(b"".join(self.buffers()))

    def size(self) -> int:
        """Bytes of the bodies."""
        start = self.first - self.sent.first
        return sum(self.batch.sizes[start : start + self.messages])

    def buffers(self) -> list[Buffer]:
        """The messages as a separate encoded batch."""
        start = self.first - self.sent.first
        return self.batch.slice(start, start + self.messages)


class BodyReader:
    """Reads stored batches, waiting for the disk only on request."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def hand_out(
        self, partition: Partition, runs: Runs, at_ms: int, *, block: bool = False
    ) -> tuple[list[DeliveredBatch], list[Buffer]]:
        """The heads and the bytes of messages for a consumer, who is the last to want them if all goes well.

        Raises `ColdReadError` rather than wait.
        """
        heads: list[DeliveredBatch] = []
        body: list[Buffer] = []
        cold: list[int] = []
        partition_id, table, read = partition.partition_id, partition.table, self._store.hand_out
        for position, first, messages in stored_runs(partition, runs):
            try:
                sent, batch = read(partition_id, position, first + messages, block=block)
            except WouldBlockError:
                cold.append(position)
            else:
                if first < sent.first or first + messages > sent.first + sent.count:
                    raise _another_batch(position)
                heads.append(_add(body, table, first, messages, sent, batch, at_ms))
        if cold:
            raise ColdReadError(cold)
        return heads, _joined_small(body)

    def each(self, partition: Partition, runs: Runs) -> Iterator[StoredSlice]:
        """Like `slices`, one after the other: the caller keeps the slices before a `ColdReadError`."""
        for run in runs:
            pieces = stored_runs(partition, (run,))
            for place, (position, first, messages) in enumerate(pieces):
                try:
                    sent, batch = self._store.read(partition.partition_id, position)
                except WouldBlockError:
                    following = pieces[place : place + _COLD_AT_ONCE]
                    raise ColdReadError([position for position, _, _ in following]) from None
                if first < sent.first or first + messages > sent.first + sent.count:
                    raise _another_batch(position)
                yield StoredSlice(first, messages, sent, batch)


def _another_batch(position: int) -> DamagedEntryError:
    """A whole batch, but not the one that was written there: the disk has put it at the wrong place."""
    number, offset = position >> POSITION_SHIFT, position & OFFSET_MASK
    return DamagedEntryError(f"file {number}", offset, "another batch is there")


def delivered(
    partition: Partition, slices: list[StoredSlice], at_ms: int
) -> tuple[list[DeliveredBatch], list[Buffer]]:
    """The heads of the slices and their bytes, for `Peeked`."""
    body: list[Buffer] = []
    heads = [_add(body, partition.table, *piece, at_ms) for piece in slices]
    return heads, _joined_small(body)


def _add(
    body: list[Buffer], table: MessageTable, first: int, messages: int, sent: Sent, batch: Batch, at_ms: int
) -> DeliveredBatch:
    """Adds the bytes of a slice to the body; returns its head."""
    start = first - sent.first
    buffers = batch.slice(start, start + messages)
    size = len(buffers[0]) if len(buffers) == 1 else len(buffers[0]) + len(buffers[1])
    body += buffers
    receives, received_ms = received(table, (first, messages), at_ms)
    origin = StoredSlice(first, messages, sent, batch).origin() if sent.origin is not None else None
    if sent.stamp_us or batch.columns & STAMPS:
        stamps = StoredSlice(first, messages, sent, batch).stamps()
        return DeliveredBatch(
            first, messages, sent.sent_ms, size, receives, received_ms, origin, None, *stamps
        )
    return DeliveredBatch(first, messages, sent.sent_ms, size, receives, received_ms, origin)


def _joined_small(body: list[Buffer]) -> list[Buffer]:
    """Many small buffers as one."""
    if len(body) > 1 and sum(map(len, body)) < _JOINED_BYTES * len(body):
        return [b"".join(body)]
    return body

"""From runs of leased or looked-at messages to the slices of stored batches that carry them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.model.batch import Batch, Buffer
from penstock.model.records import Origin, Sent
from penstock.model.runs import Runs
from penstock.queue.partition import Partition
from penstock.queue.receiving import received, stored_runs
from penstock.storage.disk import WouldBlockError
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
    """A run of messages of one stored batch, ready to be copied out."""

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
        sequences = [s for first, count in origin.runs for s in range(first, first + count)]
        mine = [(sequence, 1) for sequence in sequences[start : start + self.messages]]
        return Origin(
            origin.source_id,
            origin.source,
            origin.reason,
            _joined(mine),
            origin.sent_ms,
            origin.receive_counts[start : start + self.messages],
            origin.moved_ms,
        )

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
        """The messages as an encoded batch of their own."""
        start = self.first - self.sent.first
        return self.batch.slice(start, start + self.messages)


class BodyReader:
    """Reads stored batches, never waiting for the disk unless told to."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def slices(
        self, partition: Partition, runs: Runs, *, block: bool = False, handed_out: bool = False
    ) -> list[StoredSlice]:
        """What is stored of the runs, in their order; raises `ColdReadError` rather than wait.

        `handed_out`: they go to a consumer, who is the last to want them if all goes well.
        """
        found: list[StoredSlice] = []
        cold: list[int] = []
        read, hand_out = self._store.read, self._store.hand_out
        for position, first, messages in stored_runs(partition, runs):
            try:
                if handed_out:
                    sent, batch = hand_out(position, first + messages, block=block)
                else:
                    sent, batch = read(position, block=block)
            except WouldBlockError:
                cold.append(position)
                continue
            found.append(StoredSlice(first, messages, sent, batch))
        if cold:
            raise ColdReadError(cold)
        return found

    def each(self, partition: Partition, runs: Runs) -> Iterator[StoredSlice]:
        """Like `slices`, one after the other: who gets some before a `ColdReadError` can go on with those."""
        for run in runs:
            pieces = stored_runs(partition, (run,))
            for place, (position, first, messages) in enumerate(pieces):
                try:
                    sent, batch = self._store.read(position)
                except WouldBlockError:
                    following = pieces[place : place + _COLD_AT_ONCE]
                    raise ColdReadError([position for position, _, _ in following]) from None
                yield StoredSlice(first, messages, sent, batch)


def delivered(
    partition: Partition, slices: list[StoredSlice], at_ms: int
) -> tuple[list[DeliveredBatch], list[Buffer]]:
    """The heads of the slices and their bytes, for `Delivery` and `Peeked`."""
    heads: list[DeliveredBatch] = []
    body: list[Buffer] = []
    total = 0
    table = partition.table
    for piece in slices:
        first, messages, sent, batch = piece
        start = first - sent.first
        buffers = batch.slice(start, start + messages)
        size = len(buffers[0]) if len(buffers) == 1 else len(buffers[0]) + len(buffers[1])
        receives, received_ms = received(table, (first, messages), at_ms)
        origin = piece.origin() if sent.origin is not None else None
        heads.append(DeliveredBatch(first, messages, sent.sent_ms, size, receives, received_ms, origin))
        body += buffers
        total += size
    if len(body) > 1 and total < _JOINED_BYTES * len(body):
        body = [b"".join(body)]
    return heads, body


def _joined(runs: Runs) -> Runs:
    joined: Runs = []
    for first, count in runs:
        if joined and joined[-1][0] + joined[-1][1] == first:
            joined[-1] = (joined[-1][0], joined[-1][1] + count)
        else:
            joined.append((first, count))
    return joined

"""Messages read from a log: a slice as it was stored, and a view of each message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import msgspec

from penstock.client.consume.delivered_run import DeliveredRun, bodies_of, located, parts_of
from penstock.client.consume.message import MessageView
from penstock.model.batch import Batch
from penstock.model.partition_numbers import partition_of
from penstock.wire.log_messages import LoggedBatch, LogSlice
from penstock.wire.messages import DeliveredBatch


class LoggedMessage(MessageView, eq=False):
    """A message of a log: it can be read, any number of times, and is not settled."""

    @property
    def partition(self) -> int:
        """The partition of its queue that it is in; 0 on a single node."""
        return partition_of(self.sequence)


class LoggedMessages(Sequence[LoggedMessage]):
    """Consecutive messages of a log, without gaps in their numbers; a sequence of `LoggedMessage`, each made when it is
    accessed.

    The bytes are those that were stored: `parts` are the batches in which they were sent, or pieces of them, with their
    columns, and `bodies()` cuts all bodies at once, without an object for each message.
    """

    __slots__ = ("_batches", "_body", "_count", "_parts", "end", "first", "next", "queue_name")

    def __init__(self, queue_name: str, start: int, answer: LogSlice, body: memoryview) -> None:
        batches = answer.batches
        self.queue_name = queue_name
        self.first = batches[0].first if batches else start
        """The sequence number of the first message; not the one that was asked for where no message has that."""
        self.next = answer.next
        """Where to continue: the sequence number after the last message."""
        self.end = answer.end
        """The end of the log when this was read."""
        self._batches = batches
        self._body = body
        self._count = batches[0].count if len(batches) == 1 else sum(batch.count for batch in batches)
        self._parts: list[DeliveredRun] | None = None

    @property
    def partition(self) -> int:
        """The partition of the queue that they are of; 0 on a single node."""
        return partition_of(self.first)

    @property
    def size_bytes(self) -> int:
        """The size of the slice: bodies and columns."""
        return len(self._body)

    @property
    def batch_messages(self) -> int:
        """How many messages the first batch has, or as many of them as are in the slice."""
        return self._batches[0].count if self._batches else 0

    @property
    def sent_ms(self) -> int | None:
        """When the last of them was sent, in milliseconds since 1970; None where there are none."""
        return self._batches[-1].sent_ms if self._batches else None

    @property
    def first_sent_ms(self) -> int:
        """When the first of them was sent; 0 where there are none."""
        return self._batches[0].sent_ms if self._batches else 0

    def divided(self, until_ms: int) -> tuple[LoggedMessages, LoggedMessages | None]:
        """The batches up to the first that was sent later, one at least, and the others, if there are any."""
        batches = self._batches
        count = next((place for place, one in enumerate(batches) if place and one.sent_ms > until_ms), None)
        if count is None:
            return self, None
        border = batches[count].first
        size = sum(batch.size for batch in batches[:count])
        front = LogSlice(batches[:count], border, self.end)
        rest = LogSlice(batches[count:], self.next, self.end)
        return (
            LoggedMessages(self.queue_name, self.first, front, self._body[:size]),
            LoggedMessages(self.queue_name, border, rest, self._body[size:]),
        )

    def up_to(self, number: int) -> LoggedMessages:
        """Those before a number; none where all are behind it."""
        if number > self.first:
            return self.shortened(number - self.first)
        return LoggedMessages(self.queue_name, number, LogSlice([], number, self.end), self._body[:0])

    def shortened(self, messages: int) -> LoggedMessages:
        """The first so many of them, one at least."""
        if messages >= self._count:
            return self
        batches: list[LoggedBatch] = []
        offset, left = 0, messages
        for batch in self._batches:
            if batch.count > left:
                break
            batches.append(batch)
            offset += batch.size
            left -= batch.count
        body = self._body[:offset]
        if left:
            batch = self._batches[len(batches)]
            cut = b"".join(Batch(self._body[offset : offset + batch.size]).slice(0, left))
            batches.append(msgspec.structs.replace(batch, count=left, size=len(cut)))
            body = memoryview(bytes(body) + cut)
        return LoggedMessages(
            self.queue_name, self.first, LogSlice(batches, self.first + messages, self.end), body
        )

    @property
    def parts(self) -> list[DeliveredRun]:
        """The stored batches they are in."""
        if self._parts is None:
            heads = [_delivered(batch) for batch in self._batches]
            self._parts = parts_of(self.queue_name, heads, self._body)
        return self._parts

    def bodies(self) -> list[bytes]:
        """All bodies, in order: the quickest way to them."""
        return bodies_of(self.parts)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[LoggedMessage]:
        for part in self.parts:
            for index in range(part.count):
                yield LoggedMessage(part, index)

    @overload
    def __getitem__(self, index: int) -> LoggedMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[LoggedMessage]: ...
    def __getitem__(self, index: int | slice) -> LoggedMessage | list[LoggedMessage]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(self._count))]
        return LoggedMessage(*located(self.parts, index))

    def __repr__(self) -> str:
        return f"<messages [{self.first}, {self.next}) of the log {self.queue_name!r}>"


def _delivered(batch: LoggedBatch) -> DeliveredBatch:
    """The head for message views, without a delivery."""
    return DeliveredBatch(
        batch.first,
        batch.count,
        batch.sent_ms,
        batch.size,
        0,
        0,
        stamp_us=batch.stamp_us,
        process=batch.process,
        counter=batch.counter,
    )

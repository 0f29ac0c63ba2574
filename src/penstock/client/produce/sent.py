"""The server's answer about stored messages, kept in runs; an object is made only on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, overload

from penstock.client.duration import moment, moment_us
from penstock.model.runs import count_of
from penstock.wire.messages import SendResult


class SentMessage(NamedTuple):
    """A message that is stored."""

    sequence: int
    """Its number in the queue; of a duplicate, the original's."""
    duplicate: bool
    """Whether a message with its deduplication id was there already, so that this one was not stored again."""
    sent_ms: int
    """When the server took it, in milliseconds since 1970."""
    stamp_us: int = 0
    """The server's stamp, in microseconds since 1970, on a queue whose messages it stamps; else 0."""

    @property
    def sent_at(self) -> datetime:
        """When the server took it."""
        return moment(self.sent_ms)

    @property
    def stamped_at(self) -> datetime | None:
        """The server's stamp, on a queue whose messages it stamps."""
        return moment_us(self.stamp_us) if self.stamp_us else None


class SentMessages(Sequence[SentMessage]):
    """One `SentMessage` for each message of a batch, in order, made when it is accessed."""

    __slots__ = ("_duplicates", "_length", "_result")

    def __init__(self, result: SendResult | None) -> None:
        self._result = result or SendResult([], [], 0)
        self._length = count_of(self._result.runs)
        self._duplicates = frozenset(self._result.duplicates)

    @property
    def sequences(self) -> list[int]:
        """The sequence numbers, in the order of the batch."""
        return [sequence for first, count in self._result.runs for sequence in range(first, first + count)]

    @property
    def duplicates(self) -> list[int]:
        """Indexes of the messages that were there already."""
        return list(self._result.duplicates)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[SentMessage]:
        sent_ms, stamp_us = self._result.sent_ms, self._result.stamp_us
        for index, sequence in enumerate(self.sequences):
            yield SentMessage(sequence, index in self._duplicates, sent_ms, stamp_us)

    @overload
    def __getitem__(self, index: int) -> SentMessage: ...
    @overload
    def __getitem__(self, index: slice) -> list[SentMessage]: ...
    def __getitem__(self, index: int | slice) -> SentMessage | list[SentMessage]:
        if isinstance(index, slice):
            return list(self)[index]
        if index < 0:
            index += self._length
        before = index
        if before >= 0:
            for first, count in self._result.runs:
                if before < count:
                    result = self._result
                    return SentMessage(
                        first + before, index in self._duplicates, result.sent_ms, result.stamp_us
                    )
                before -= count
        raise IndexError("no such message in the batch")

    def __repr__(self) -> str:
        return f"<{self._length} sent messages, runs {self._result.runs}>"

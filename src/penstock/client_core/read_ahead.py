"""How far a reader of a log reads ahead: several reads in progress at once, handed out in order.

The server answers a read with as much as fits, so the beginning of the next one is known only with the answer. To have
several in progress all the same, the log is requested in ranges: as many messages as should fit, according to the last
answer. If they did not fit, the rest of the range is requested before the next range is handed out. At the end of the log,
one read without an end waits for new messages.

Numbers may have gaps, of millions, after a failover that may have lost messages. A read that begins in a gap is answered
with the messages after it, so the gap is not read range by range: later requested ranges are dropped, and requested again
from there.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from penstock.model import limits

WAIT_MS = 20 * limits.SECOND_MS
"""How long one read waits at the end of the log before it is repeated."""


class ReadAnswer(NamedTuple):
    """What a read was answered with."""

    first: int
    """The number of the first message; if there is none, the start of the read."""
    next: int
    """Where to continue."""
    end: int
    """The end of the log."""
    messages: int
    size_bytes: int
    batch_messages: int
    """How many messages the first batch has."""


class RangeRead:
    """One range of the log; it stays in line until it is handed out."""

    __slots__ = ("left", "start", "stop", "waits")

    def __init__(self, start: int, stop: int | None, left: int | None) -> None:
        self.start = start
        self.stop = stop
        """None: as far as one answer reaches."""
        self.left = left
        """So many messages are wanted from `start` on; None: as many as there are."""
        self.waits = False
        """Whether it was requested at the end of the log: then the answer may be empty."""


class Question(NamedTuple):
    """A range to request."""

    read: RangeRead
    max_messages: int
    max_bytes: int
    wait_ms: int


class Dropped(NamedTuple):
    """A requested range is not needed any more."""

    read: RangeRead


class Arrived(NamedTuple):
    """A range has its answer, which waits for its turn."""

    read: RangeRead
    up_to: int | None
    """Only messages before this number are wanted of it; None: all."""


class Contradiction(NamedTuple):
    """The answer does not match the question."""

    read: RangeRead


Effect = Question | Dropped | Arrived | Contradiction


class ReadingAhead:
    """Reads of a log from `start` on: to the number `stop`, about so many messages (`limit`), or without end."""

    def __init__(
        self,
        start: int,
        end: int,
        *,
        stop: int | None = None,
        limit: int | None = None,
        slice_bytes: int,
        in_flight: int,
    ) -> None:
        """`end`: the end of the log, as far as is known; `in_flight` reads may be in progress at once."""
        self.position = start
        """The first message that was not handed out yet."""
        self.given = 0
        """How many messages were handed out."""
        self._stop = stop
        self._wanted_to = None if limit is None else start + limit
        """Before which number as many messages are as are wanted, as far as gaps are known."""
        self._slice_bytes = slice_bytes
        self._in_flight = in_flight
        self._end = end
        self._planned = start
        """Everything before it was asked for."""
        self._range_messages = 0
        """How many messages should make a slice; 0: not known before the first answer."""
        self._reads: deque[RangeRead] = deque()
        self._endless: RangeRead | None = None
        """The read in progress whose end is unknown."""
        self._closed = False

    @property
    def first(self) -> RangeRead | None:
        """The range that is handed out next; None: nothing more is read."""
        return self._reads[0] if self._reads else None

    def hand_out(self, following: int, messages: int) -> None:
        """The answer of the first read leaves: so many messages, up to the number `following`."""
        self._reads.popleft()
        if messages:
            self.position = following
            self.given += messages

    def close(self) -> list[RangeRead]:
        """Asks for nothing more; returns what is dropped."""
        self._closed = True
        dropped, self._reads, self._endless = list(self._reads), deque(), None
        return dropped

    # -- planning --------------------------------------------------------------------------------------------

    def plan(self) -> list[Effect]:
        """The ranges to request now."""
        effects: list[Effect] = []
        stop = self._last()
        while not self._closed and self._endless is None and len(self._reads) < self._in_flight:
            if stop is not None and self._planned >= stop:
                break
            if self._planned < self._end and self._range_messages:
                until = min(self._planned + self._range_messages, self._end)
                until = until if stop is None else min(until, stop)
                read = self._read(self._planned, until)
                self._planned = until
            else:
                read = self._endless = self._read(self._planned, None)
            self._reads.append(read)
            effects.append(self._question(read))
        return effects

    def _last(self) -> int | None:
        """Before which number reading ends."""
        return min((one for one in (self._stop, self._wanted_to) if one is not None), default=None)

    def _read(self, start: int, stop: int | None) -> RangeRead:
        return RangeRead(start, stop, None if self._wanted_to is None else self._wanted_to - start)

    def _question(self, read: RangeRead) -> Question:
        size = self._slice_bytes
        if read.stop is None:
            last = self._last()
            most = limits.LOG_READ_MESSAGES if last is None else last - read.start
            wait_ms = 0 if read.start < self._end else WAIT_MS
        else:
            most, wait_ms = read.stop - read.start, 0
            size *= 2  # messages of a range may be larger than those before
        read.waits = wait_ms > 0
        return Question(read, min(most, limits.LOG_READ_MESSAGES), min(size, limits.LOG_READ_BYTES), wait_ms)

    def arrived(self, read: RangeRead, found: ReadAnswer) -> list[Effect]:
        """A read was answered: what becomes of the answer, and what is asked for next."""
        if self._closed or read not in self._reads:
            return []
        self._end = max(self._end, found.end)
        is_empty = found.next <= read.start
        if is_empty and read.waits:
            return [self._question(read)]  # nothing came in time: it is repeated
        leaps = found.first > read.start or not found.messages
        if (
            is_empty
            or found.first < read.start
            or (found.messages and found.messages != found.next - found.first)
            or (not leaps and read.stop is not None and found.next > read.stop)
        ):
            return [Contradiction(read)]
        if found.messages:
            self._learn(found)
        effects: list[Effect] = []
        up_to: int | None = None
        if leaps:
            while (last := self._reads[-1]) is not read:
                self._reads.pop()
                self._forget(last)
                effects.append(Dropped(last))
            up_to = self._leap(read, found)
        elif read is self._endless:
            self._endless = None
            self._planned = found.next
        elif read.stop is not None and found.next < read.stop:
            rest = self._read(found.next, read.stop)
            read.stop = found.next
            self._reads.insert(self._reads.index(read) + 1, rest)
            effects.append(self._question(rest))
        return [*effects, Arrived(read, up_to), *self.plan()]

    def _forget(self, read: RangeRead) -> None:
        if read is self._endless:
            self._endless = None

    def _leap(self, read: RangeRead, found: ReadAnswer) -> int | None:
        """No message has the numbers that were asked for, up to those that came: reading goes on behind these.

        Returns the number before which messages of the answer are needed; None: all are.
        """
        self._forget(read)
        behind = found.first if found.messages else found.next
        if read.left is not None:
            self._wanted_to = behind + read.left
        last = self._last()
        self._planned = read.stop = found.next
        if last is None or last >= found.next:
            return None
        self._planned = last
        return last

    def _learn(self, found: ReadAnswer) -> None:
        """How many messages make a slice; whole batches, where all are of one size, since cutting one costs a copy."""
        messages = max(1, found.messages * self._slice_bytes // max(1, found.size_bytes))
        if found.batch_messages < messages:
            messages -= messages % found.batch_messages
        self._range_messages = min(messages, limits.LOG_READ_MESSAGES)

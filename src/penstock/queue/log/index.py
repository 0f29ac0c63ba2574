"""The index of a retained log: position, contents and time of each stored batch.

The columns take 32 bytes for each batch and nothing for each message. A batch ends where the next one begins, or at a gap
in the numbers (`model/number_gaps.py`). The log is cut only at its front, batch by batch. The cut entries stay in the
columns until copying the rest is worthwhile. So columns only grow at their end, except that the positions of copied
batches change. A capture keeps the columns and the positions that it found.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator
from typing import NamedTuple

from penstock.model.number_gaps import NumberGaps
from penstock.queue.state.chunk import FILE_SHIFT

_COMPACT_AT_LEAST = 4_096

LogColumns = tuple[bytes, bytes, bytes, bytes, bytes]
"""Firsts, positions, stored bytes, message bytes, times."""


class LoggedRun(NamedTuple):
    """A stored batch of the log."""

    first: int
    messages: int
    position: int
    stored_bytes: int
    """Of the encoded batch, which is what a reader is sent."""
    sent_ms: int


class LogIndex:
    """The batches of a log, oldest first."""

    def __init__(self, gaps: NumberGaps | None = None) -> None:
        self.next = 1
        """The end of the log: the number of the next message."""
        self.gaps = gaps if gaps is not None else NumberGaps()
        """Numbers that no message has: those of the partition."""
        self.bytes = 0
        """Of all messages in the log: bodies and attributes."""
        self._firsts = array("Q")
        self._positions = array("Q")
        self._stored = array("I")
        self._sizes = array("I")
        self._sent_ms = array("Q")
        self._start = 0
        """The place of the oldest batch in the columns."""
        self._base = 0
        """The number of batches that left the columns: place + base never changes for a batch."""
        self.files: dict[int, int] = {}
        """Batches per file."""
        self._spans: dict[int, tuple[int, int]] = {}
        """All batches of a file are among these numbers, mostly alone."""
        self.capture: LogCapture | None = None
        self.emptied: list[int] = []
        """Files in which no batch of the log lives any more; the owner of the files takes them from here."""

    def __len__(self) -> int:
        return len(self._firsts) - self._start

    @property
    def begin(self) -> int:
        """The number of the oldest message; the end of the log if there is none."""
        return self._firsts[self._start] if self._start < len(self._firsts) else self.next

    @property
    def messages(self) -> int:
        """How many there are to read."""
        return self.messages_from(self.begin)

    @property
    def readable_from(self) -> int:
        """From which number on the log can be read without missing anything: numbers left out before its beginning count too."""
        return self.gaps.before(self.begin) if self.gaps else self.begin

    def messages_from(self, sequence: int) -> int:
        """How many there are from a number on."""
        return self.gaps.messages(sequence, self.next)

    # -- changing --------------------------------------------------------------------------------------------

    def append(self, count: int, position: int, stored_bytes: int, size: int, sent_ms: int) -> None:
        """Adds a batch of so many messages, of `size` bytes in all, at `next`; times never fall."""
        number = self._base + len(self._firsts)
        self._firsts.append(self.next)
        self._positions.append(position)
        self._stored.append(stored_bytes)
        self._sizes.append(size)
        self._sent_ms.append(sent_ms)
        self._enter_file(position >> FILE_SHIFT, number)
        self.next += count
        self.bytes += size

    def cut(self, end: int) -> int:
        """Batches that lie before `end` with all of their messages are gone; returns how many messages were."""
        firsts, start = self._firsts, self._start
        if start == len(firsts):
            return 0
        end = self.gaps.after(end)
        stop = len(firsts) if end >= self.next else bisect_right(firsts, end, start + 1) - 1
        begin = self.begin
        if stop == len(firsts):  # all of it, however much that is
            self.emptied += self.files
            self.files, self._spans, self.bytes = {}, {}, 0
        else:
            for place in range(start, stop):
                self._leave_file(self._positions[place] >> FILE_SHIFT)
            self.bytes -= sum(self._sizes[start:stop])
        self._start = stop
        if stop >= _COMPACT_AT_LEAST and 2 * stop > len(firsts):
            self._compact()
        return self.gaps.messages(begin, self.begin)

    def _compact(self) -> None:
        start = self._start
        self._firsts, self._positions = self._firsts[start:], self._positions[start:]
        self._stored, self._sizes = self._stored[start:], self._sizes[start:]
        self._sent_ms = self._sent_ms[start:]
        self._base += self._start
        self._start = 0

    def relocate(self, number: int, old: int, new: int) -> None:
        """Changes the position of a batch if it is still the old one."""
        place = number - self._base
        if not self._start <= place < len(self._positions) or self._positions[place] != old:
            return
        if self.capture is not None:
            self.capture.moved.setdefault(number, old)
        self._positions[place] = new
        self._enter_file(new >> FILE_SHIFT, number)
        self._leave_file(old >> FILE_SHIFT)

    def number_of(self, first: int) -> int | None:
        """The number of the batch that begins with that message."""
        place = bisect_left(self._firsts, first, self._start)
        return self._base + place if place < len(self._firsts) and self._firsts[place] == first else None

    def position_of(self, number: int) -> int | None:
        """The position of a batch; None if it is gone."""
        place = number - self._base
        return self._positions[place] if self._start <= place < len(self._positions) else None

    # -- files -----------------------------------------------------------------------------------------------

    def places_in(self, files: Collection[int]) -> Iterator[tuple[int, int, int]]:
        """(position, number, -1) of all batches in the files, file by file. The log may change meanwhile."""
        for file in sorted(files):
            for number in range(*self._spans.get(file, (0, 0))):
                position = self.position_of(number)
                if (
                    position is not None and position >> FILE_SHIFT == file
                ):  # others may lie among this file's
                    yield position, number, -1

    def _enter_file(self, file: int, number: int) -> None:
        if file in self.files:
            self.files[file] += 1
            low, high = self._spans[file]
            self._spans[file] = (min(low, number), max(high, number + 1))
        else:
            self.files[file] = 1
            self._spans[file] = (number, number + 1)

    def _leave_file(self, file: int) -> None:
        self.files[file] -= 1
        if not self.files[file]:
            del self.files[file], self._spans[file]
            self.emptied.append(file)

    # -- looking ---------------------------------------------------------------------------------------------

    def batches(self, start: int, max_messages: int, max_bytes: int, max_batches: int) -> list[LoggedRun]:
        """The batch with message `start` and the following ones within the bounds; at least one.

        If `start` is in a gap, they begin after it. They end before the next gap, so the result contains none.
        """
        firsts = self._firsts
        border, end = self.next, len(firsts)
        if self.gaps:
            start = self.gaps.after(start)
            border = self.gaps.next_start(start, border)
            end = bisect_left(firsts, border, self._start)
        place = bisect_right(firsts, start, self._start) - 1
        if place < self._start or start >= self.next:
            return []
        found: list[LoggedRun] = []
        stop = min(end, place + max_batches)
        messages = max_messages + start - firsts[place]
        while place < stop and messages > 0:
            stored = self._stored[place]
            if stored > max_bytes and found:
                break
            first = firsts[place]
            position, sent_ms = self._positions[place], self._sent_ms[place]
            place += 1
            count = (firsts[place] if place < end else border) - first
            found.append(LoggedRun(first, count, position, stored, sent_ms))
            messages -= count
            max_bytes -= stored
        return found

    def sent_ms(self, sequence: int) -> int | None:
        """When the message was sent, or where the number is left out the next one; None where it is not in the log."""
        sequence = self.gaps.after(sequence)
        place = bisect_right(self._firsts, sequence, self._start) - 1
        return self._sent_ms[place] if self._start <= place and sequence < self.next else None

    def oldest_ms(self) -> int | None:
        """When the oldest message was sent."""
        return self._sent_ms[self._start] if self._start < len(self._sent_ms) else None

    def first_since(self, time_ms: int) -> int:
        """The first message sent at or after that time; the end of the log if there is none."""
        return self._first_at(bisect_left(self._sent_ms, time_ms, self._start))

    def end_of_age(self, cutoff_ms: int, most: int) -> int:
        """Before which message everything was sent at or before the cutoff, looking at so many batches."""
        stop = min(self._start + most, len(self._firsts))
        return self._first_at(bisect_right(self._sent_ms, cutoff_ms, self._start, stop))

    def end_of_bytes(self, keep_bytes: int, most: int) -> int:
        """Before which message all batches lie that have no part in the newest `keep_bytes`."""
        place, left = self._start, self.bytes
        stop = min(self._start + most, len(self._firsts))
        while place < stop and left - self._sizes[place] >= keep_bytes:
            left -= self._sizes[place]
            place += 1
        return self._first_at(place)

    def is_over(self, keep_bytes: int) -> bool:
        """Whether the oldest batch has no part in the newest `keep_bytes`."""
        return self._start < len(self._sizes) and self.bytes - self._sizes[self._start] >= keep_bytes

    def _first_at(self, place: int) -> int:
        return self._firsts[place] if place < len(self._firsts) else self.next

    def memory_bytes(self) -> int:
        """The memory that the columns use."""
        return 32 * len(self._firsts)

    # -- the snapshot ----------------------------------------------------------------------------------------

    def begin_capture(self) -> LogCapture:
        """Captures the index as it is now, until `capture` is None again."""
        columns = (self._firsts, self._positions, self._stored, self._sizes, self._sent_ms)
        self.capture = LogCapture(columns, self._start, len(self._firsts), self._base)
        return self.capture

    def load(self, columns: LogColumns) -> None:
        """Some batches from the snapshot, behind those that are there."""
        number = len(self._firsts)
        own = (self._firsts, self._positions, self._stored, self._sizes, self._sent_ms)
        for column, data in zip(own, columns, strict=True):
            column.frombytes(data)
        if len({len(column) for column in own}) != 1:
            raise ValueError("the log has columns of different lengths")
        self.bytes += sum(self._sizes[number:])
        for place in range(number, len(self._positions)):
            self._enter_file(self._positions[place] >> FILE_SHIFT, place)


class LogCapture:
    """The index of a log as it was at one moment."""

    __slots__ = ("_base", "_columns", "_start", "_stop", "moved")

    def __init__(self, columns: tuple[array[int], ...], start: int, stop: int, base: int) -> None:
        self._columns = columns
        self._start = start
        self._stop = stop
        self._base = base
        self.moved: dict[int, int] = {}
        """The old positions of batches that were copied since, by number."""

    def parts(self, batches: int) -> Iterator[LogColumns]:
        """The columns, so many batches at a time."""
        for start in range(self._start, self._stop, batches):
            stop = min(start + batches, self._stop)
            firsts, positions, stored, sizes, sent_ms = (column[start:stop] for column in self._columns)
            for place in range(start, stop) if self.moved else ():
                if (old := self.moved.get(self._base + place)) is not None:
                    positions[place - start] = old
            yield (
                *(firsts.tobytes(), positions.tobytes(), stored.tobytes()),
                *(sizes.tobytes(), sent_ms.tobytes()),
            )

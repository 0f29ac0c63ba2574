"""Gaps in the sequence numbers of a partition: ranges of numbers that no message has and none ever will.

A partition of a cluster has one for each failover that may have lost messages: the lost numbers are never used again, so
the next primary skips them (`cluster/layout/sequence_numbers.py`). All other numbers are consecutive. Code that counts
messages by their numbers, or reads from a number on, must use this class.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from penstock.model.runs import Runs

Gap = tuple[int, int]
"""The first number that is left out, and the first that is not."""


class NumberGaps:
    """Gaps in rising order, none touching the next."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, gaps: Iterable[Gap] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in gaps:
            self.add(start, end)

    def __len__(self) -> int:
        return len(self._starts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumberGaps) and self.pairs() == other.pairs()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def pairs(self) -> list[Gap]:
        """For the wire and the snapshot."""
        return list(zip(self._starts, self._ends, strict=True))

    def add(self, start: int, end: int) -> None:
        """Numbers [start, end) are left out; they lie behind all gaps that are known."""
        if not 0 < start < end or (self._ends and start < self._ends[-1]):
            raise ValueError(f"a gap from {start} to {end} after those that end at {self._ends[-1:]}")
        if self._ends and start == self._ends[-1]:
            self._ends[-1] = end
        else:
            self._starts.append(start)
            self._ends.append(end)

    def forget(self, before: int, keep: int) -> None:
        """Drops the oldest gaps that end before a number, as long as there are more than so many."""
        surplus = min(len(self._starts) - keep, bisect_left(self._ends, before))
        if surplus > 0:
            del self._starts[:surplus], self._ends[:surplus]

    # -- looking ---------------------------------------------------------------------------------------------

    def after(self, number: int) -> int:
        """The first number from this one on that is not left out."""
        place = bisect_right(self._starts, number) - 1
        return self._ends[place] if place >= 0 and number < self._ends[place] else number

    def around(self, number: int) -> int:
        """The beginning of the gap that contains a number, including numbers of the gap before it; the number itself if it is
        in none.
        """
        place = bisect_left(self._starts, number) - 1
        return self._starts[place] if place >= 0 and number < self._ends[place] else number

    def before(self, number: int) -> int:
        """The beginning of the gap that ends at this number; the number itself if there is none."""
        place = bisect_left(self._ends, number)
        return self._starts[place] if place < len(self._ends) and self._ends[place] == number else number

    def next_start(self, number: int, default: int) -> int:
        """The beginning of the next gap after a number; the default if there is none."""
        place = bisect_right(self._starts, number)
        return self._starts[place] if place < len(self._starts) else default

    def last_start(self, following: int) -> int:
        """Where the numbers continued after the last gap; `following` if messages came since."""
        return self._starts[-1] if self._ends and self._ends[-1] == following else following

    def messages(self, start: int, end: int) -> int:
        """How many numbers from `start` up to, and without, `end` are not left out."""
        count = max(0, end - start)
        if count and self._starts:
            place = bisect_right(self._ends, start)
            while place < len(self._starts) and self._starts[place] < end:
                count -= min(end, self._ends[place]) - max(start, self._starts[place])
                place += 1
        return count

    def runs(self, start: int, end: int) -> Runs:
        """The same numbers as runs."""
        found: Runs = []
        while start < end:
            start = self.after(start)
            border = min(end, self.next_start(start, end))
            if start < border:
                found.append((start, border - start))
            start = max(start, border)
        return found

    def back(self, start: int, end: int, messages: int) -> int:
        """From where on there are so many messages before `end`; `start` where there are not as many."""
        for first, count in reversed(self.runs(start, end)):
            if messages <= count:
                return first + count - messages
            messages -= count
        return min(start, end)

    def forth(self, start: int, end: int, messages: int) -> int:
        """Before which number there are so many messages from `start` on; `end` where there are not more."""
        for first, count in self.runs(start, end):
            if messages < count:
                return first + messages if messages else start
            messages -= count
            start = first + count
        return end


NO_GAPS = NumberGaps()
"""Of a log that never lost anything. It is never added to."""

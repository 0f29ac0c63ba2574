"""When messages were sent, to a slot: what retention goes by."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from penstock.model import limits
from penstock.queue.state.timers import Alive

_SWEEP_AT_LEAST = 512
"""Marks between which nothing lives are swept out when there are more marks than this."""
_MARKS_AT_ONCE = 16
"""So many marks are looked at again for each one that is added."""
_FORGET_AT_LEAST = 1_000
"""Marks that are no longer needed are dropped when there are more than this."""


class SentTimes:
    """Rising times and the first sequence number of each.

    Columns only ever grow at their end; what is given up goes with the whole column. So a capture keeps the column. To copy one
    with a million marks takes 1 ms.
    """

    def __init__(self) -> None:
        self._times = array("Q")
        self._firsts = array("Q")
        self._start = 0
        self._passed_ms = -1
        """Marks up to this time were looked at when they were due, and nothing was left to expire."""
        self.swept = 0
        """Marks from this message on are looked at next, to see whether they are still needed."""

    def add(self, sent_ms: int, first: int) -> bool:
        """A batch was sent; times never fall. Whether it is the first of its slot."""
        slot = -(-sent_ms // limits.RETENTION_SLOT_MS) * limits.RETENTION_SLOT_MS
        if not self._times or self._times[-1] < slot:
            self._times.append(slot)
            self._firsts.append(first)
            return True
        return False

    def expired_before(self, cutoff_ms: int, next_sequence: int) -> int:
        """The sequence number before which everything was sent at or before the cutoff."""
        index = bisect_right(self._times, cutoff_ms, lo=self._start)
        if index == self._start:
            return 0
        return self._firsts[index] if index < len(self._firsts) else next_sequence

    def pass_over(self, cutoff_ms: int) -> None:
        """Nothing sent at or before the cutoff is left to expire."""
        self._passed_ms = cutoff_ms

    def look_again(self) -> None:
        """Something old may be there again."""
        self._passed_ms = -1

    def next_ms(self) -> int | None:
        """The first time that was not passed over."""
        index = bisect_right(self._times, self._passed_ms, lo=self._start)
        return self._times[index] if index < len(self._times) else None

    def forget_before(self, sequence: int) -> None:
        """Marks whose messages are all before `sequence` are no longer needed."""
        self._start = max(self._start, bisect_right(self._firsts, sequence, lo=self._start) - 1)
        if self._start > _FORGET_AT_LEAST and self._start * 2 > len(self._firsts):
            self._times = self._times[self._start :]
            self._firsts = self._firsts[self._start :]
            self._start = 0

    def sweep(self, alive: Alive) -> None:
        """Forgets marks between which nothing lives, a few at a time, once there are many: one old message keeps one mark."""
        firsts, start = self._firsts, self._start
        last = len(firsts) - 1  # the mark to which more may be sent
        if last + 1 - start < _SWEEP_AT_LEAST:
            return
        low = max(start, bisect_left(firsts, self.swept, lo=start))
        if low >= last:
            low = start
        high = min(last, low + _MARKS_AT_ONCE)
        kept = [
            place for place in range(low, high) if alive((firsts[place], firsts[place + 1] - firsts[place]))
        ]
        self.swept = firsts[high]
        if len(kept) < high - low:
            self._times = self._without(self._times, low, high, kept)
            self._firsts = self._without(firsts, low, high, kept)
            self._start = 0

    def _without(self, column: array[int], low: int, high: int, kept: list[int]) -> array[int]:
        part = array("Q", [column[place] for place in kept])
        return column[self._start : low] + part + column[high:]

    def sent_ms(self, sequence: int) -> int | None:
        """When the message was sent, to a slot."""
        index = bisect_right(self._firsts, sequence, lo=self._start)
        return self._times[index - 1] if index > self._start else None

    def columns(self) -> tuple[array[int], array[int], int]:
        """Times, first sequence numbers, and the place in both from which on they count."""
        return self._times, self._firsts, self._start

    def load(self, times: bytes, firsts: bytes) -> None:
        """Some marks from the snapshot, behind those that are there."""
        self._times.frombytes(times)
        self._firsts.frombytes(firsts)
        if len(self._times) != len(self._firsts):
            raise ValueError("the times of sending have columns of different lengths")

"""Timers over runs of messages, in slots: a slot is one entry however many messages end in it.

Times are rounded up to the slot, so nothing fires early, and at most a slot late.
"""

from __future__ import annotations

from bisect import bisect_right
from heapq import heapify, heappop, heappush

from penstock.model import limits
from penstock.model.runs import Run, Runs, normalized


class SlotTimers:
    """Runs by the slot in which they are due. A run may be stale when it fires; the caller looks at states."""

    def __init__(self) -> None:
        self._slots: dict[int, Runs] = {}
        self._heap: list[int] = []

    def add(self, due_ms: int, run: Run) -> None:
        """The messages of the run are due at `due_ms`, rounded up."""
        slot = -(-due_ms // limits.TIMER_SLOT_MS) * limits.TIMER_SLOT_MS
        runs = self._slots.get(slot)
        if runs is None:
            self._slots[slot] = [run]
            heappush(self._heap, slot)
        elif runs[-1][0] + runs[-1][1] == run[0]:
            runs[-1] = (runs[-1][0], runs[-1][1] + run[1])
        else:
            runs.append(run)

    def next_ms(self) -> int | None:
        """When the next slot is due."""
        return self._heap[0] if self._heap else None

    def take_due(self, now_ms: int) -> Runs:
        """Takes out what is due."""
        found: Runs = []
        while self._heap and self._heap[0] <= now_ms:
            found += self._slots.pop(heappop(self._heap))
        return normalized(found)

    def clear(self) -> None:
        """Forgets everything."""
        self._slots.clear()
        self._heap.clear()

    def dump(self) -> list[tuple[int, Runs]]:
        """For the snapshot."""
        return sorted(self._slots.items())

    def load(self, dumped: list[tuple[int, Runs]]) -> None:
        """From the snapshot."""
        self._slots = dict(dumped)
        self._heap = list(self._slots)
        heapify(self._heap)


class SentTimes:
    """When messages were sent, to a slot: rising times and the first sequence number of each."""

    def __init__(self) -> None:
        self._marks: list[tuple[int, int]] = []
        self._start = 0

    def add(self, sent_ms: int, first: int) -> None:
        """A batch was sent; times never fall."""
        slot = -(-sent_ms // limits.RETENTION_SLOT_MS) * limits.RETENTION_SLOT_MS
        if len(self._marks) == self._start or self._marks[-1][0] < slot:
            self._marks.append((slot, first))

    def expired_before(self, cutoff_ms: int, next_sequence: int) -> int:
        """The sequence number before which everything was sent at or before the cutoff."""
        marks, index = self._marks, self._start
        while index < len(marks) and marks[index][0] <= cutoff_ms:
            index += 1
        if index == self._start:
            return 0
        return marks[index][1] if index < len(marks) else next_sequence

    def forget_before(self, sequence: int) -> None:
        """Marks whose messages are all before `sequence` are no longer needed."""
        marks = self._marks
        while self._start + 1 < len(marks) and marks[self._start + 1][1] <= sequence:
            self._start += 1
        if self._start > 1_000 and self._start * 2 > len(marks):
            del marks[: self._start]
            self._start = 0

    def clear(self) -> None:
        """Nothing is left."""
        self._marks.clear()
        self._start = 0

    def sent_ms(self, sequence: int) -> int | None:
        """When the message was sent, to a slot."""
        index = bisect_right(self._marks, sequence, lo=self._start, key=lambda mark: mark[1])
        return self._marks[index - 1][0] if index > self._start else None

    def oldest_ms(self) -> int | None:
        """The time of the oldest mark kept."""
        return self._marks[self._start][0] if self._start < len(self._marks) else None

    def dump(self) -> list[tuple[int, int]]:
        """For the snapshot."""
        return self._marks[self._start :]

    def load(self, dumped: list[tuple[int, int]]) -> None:
        """From the snapshot."""
        self._marks = dumped
        self._start = 0

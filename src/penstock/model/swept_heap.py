"""A heap of entries that may be outdated long before their turn. Outdated ones are swept out in small steps."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Generic, TypeVar

Entry = TypeVar("Entry", bound=Any)

_SWEEP_AT_LEAST = 4_096
"""Entries that are over are swept out when there are more entries than this, and twice what the last sweep left."""
_ENTRIES_AT_ONCE = 4
"""The number of entries that a sweep checks with each added entry."""


class SweptHeap(Generic[Entry]):
    """Entries by their order. `is_live` says of each whether it is still valid; the same one may be there several times."""

    __slots__ = ("_before", "_heap", "_is_live", "_sweep_at")

    def __init__(self, is_live: Callable[[Entry], bool]) -> None:
        self._is_live = is_live
        self._heap: list[Entry] = []
        self._before: list[Entry] = []
        """The part being swept: from its end, valid entries go to the other heap. A heap without its last entries is a heap."""
        self._sweep_at = _SWEEP_AT_LEAST

    def __len__(self) -> int:
        return len(self._heap) + len(self._before)

    def push(self, entry: Entry) -> None:
        """Adds an entry."""
        heappush(self._heap, entry)
        before = self._before
        if before:
            for _ in range(min(_ENTRIES_AT_ONCE, len(before))):
                known = before.pop()
                if self._is_live(known):
                    heappush(self._heap, known)
            if not before:
                self._sweep_at = max(_SWEEP_AT_LEAST, 2 * len(self._heap))
        elif len(self._heap) >= self._sweep_at:
            self._before, self._heap = self._heap, before

    def load(self, entry: Entry) -> None:
        """Adds an entry that counts, without sweeping."""
        heappush(self._heap, entry)
        self._sweep_at = max(self._sweep_at, 2 * len(self._heap))

    def first(self) -> Entry | None:
        """The first entry that counts."""
        for heap in (self._heap, self._before):
            while heap and not self._is_live(heap[0]):
                heappop(heap)
        if self._before and not (self._heap and self._heap[0] <= self._before[0]):
            return self._before[0]
        return self._heap[0] if self._heap else None

    def pop(self, first: Entry) -> None:
        """Removes the entry that `first` returned."""
        heappop(self._heap if self._heap and self._heap[0] == first else self._before)

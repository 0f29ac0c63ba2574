"""Late messages of a sorted queue that are still here, by batch, found by their sequence numbers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from penstock.model import limits
from penstock.model.aged_map import AgedMap
from penstock.model.origin import Lateness
from penstock.model.runs import Runs


class LateBatch(NamedTuple):
    """The late messages of one batch that are still here, and their lateness."""

    runs: Runs
    lateness: Lateness


class LateBatches(AgedMap[int, LateBatch]):
    """All of them, by the first sequence number of the batch, rising."""

    __slots__ = ("_firsts", "_span")

    def __init__(self) -> None:
        super().__init__()
        self._span = limits.BATCH_MESSAGES
        """No batch is longer: a message is in a batch that begins in its own stretch of so many numbers, or in the one before."""
        self._firsts: dict[int, list[int]] = {}
        """The first numbers of batches, by stretch, rising."""

    def put(self, key: int, value: LateBatch) -> None:
        """A batch that comes behind all others."""
        super().put(key, value)
        self._firsts.setdefault(key // self._span, []).append(key)

    def pop(self, key: int) -> LateBatch | None:
        """Removes a batch of which nothing is here any more."""
        batch = super().pop(key)
        if batch is not None:
            firsts = self._firsts[key // self._span]
            del firsts[bisect_left(firsts, key)]
            if not firsts:
                del self._firsts[key // self._span]
        return batch

    def holding(self, runs: Runs) -> list[tuple[int, LateBatch]]:
        """The batches that may hold some messages, sorted and disjoint, by rising numbers."""
        found: dict[int, LateBatch] = {}
        for first, count in runs:
            for number in self._beginning(first, first + count):
                if number not in found and (batch := self.get(number)) is not None:
                    found[number] = batch
        return list(found.items())

    def _beginning(self, first: int, end: int) -> list[int]:
        """The batches that begin before `end`, and not before the one that may hold `first`."""
        low, high = first // self._span, (end - 1) // self._span
        numbers: list[int] = []
        for stretch in (low, low - 1):
            before = self._firsts.get(stretch, [])
            place = bisect_right(before, first)
            if place:
                numbers.append(before[place - 1])
                break
        stretches = range(low, high + 1)
        if len(stretches) > len(self._firsts):
            stretches = sorted(stretch for stretch in self._firsts if low <= stretch <= high)  # type: ignore[assignment]
        for stretch in stretches:
            firsts = self._firsts.get(stretch, [])
            numbers += firsts[bisect_right(firsts, first) : bisect_left(firsts, end)]
        return numbers

"""A lease: the messages that one receive leased and that are not settled, and the end of each.

A lease may have thousands of runs with different ends, and be settled in thousands of requests. So a small change is made
in place: a search and the move of a piece of memory. Only a large change goes through all runs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import repeat

from penstock.model.runs import Run, Runs, difference, intersection, normalized

Part = tuple[int, Runs]
"""(until, runs): the messages of a lease that end together."""

_FEW = 32
"""All runs are visited if there are no more than this, or if more than one in so many changes."""
_BEHIND_ALL = 1 << 64

Piece = tuple[int, int, int]
"""First message, messages, until when."""


class Lease:
    """The runs of a lease, sorted and disjoint. Adjacent runs with the same end are one, so that equal leases have equal
    forms.
    """

    __slots__ = ("_ends", "_runs", "_runs_by_end", "at_ms", "is_own", "until_ms")

    def __init__(self, at_ms: int, runs: Runs, until_ms: int) -> None:
        self.at_ms = at_ms
        self.until_ms = until_ms
        """When all of it ends, unless there are several ends."""
        self._runs = runs
        self.is_own = False
        """Whether the lists of runs and ends belong to this lease alone, so that they may be changed."""
        self._ends: list[int] | None = None
        """The end of each run, where there are several ends."""
        self._runs_by_end: Counter[int] | None = None

    @classmethod
    def of_parts(cls, at_ms: int, parts: Iterable[Part]) -> Lease:
        """A lease from a snapshot."""
        lease = cls(at_ms, [], 0)
        lease._set(sorted((first, count, until_ms) for until_ms, runs in parts for first, count in runs))
        return lease

    def __bool__(self) -> bool:
        return bool(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    # -- looking ---------------------------------------------------------------------------------------------

    def runs(self) -> Runs:
        """Everything still out under this lease."""
        if self._ends is not None:
            return normalized(self._runs)
        self.is_own = False
        return self._runs

    def is_all(self, runs: Runs) -> bool:
        """Whether these are exactly the messages of the lease; may say no where its ends differ."""
        return self._ends is None and runs == self._runs

    def held(self, runs: Runs) -> Runs:
        """Those of some messages that are still out under this lease."""
        found = intersection(runs, self._runs)
        return found if self._ends is None else normalized(found)

    def ends_at(self, until_ms: int) -> bool:
        """Whether some of it ends exactly then."""
        if self._runs_by_end is None:
            return self.until_ms == until_ms
        return until_ms in self._runs_by_end

    def ended(self, now_ms: int) -> Runs:
        """The messages whose lease has ended by now."""
        if self._ends is None:
            return self.runs() if self.until_ms <= now_ms else []
        return normalized(
            run for run, until_ms in zip(self._runs, self._ends, strict=True) if until_ms <= now_ms
        )

    def ends(self) -> list[int]:
        """All ends that there are."""
        return [self.until_ms] if self._runs_by_end is None else sorted(self._runs_by_end)

    @property
    def parts(self) -> list[Part]:
        """Its runs by their ends."""
        return parts_of(self.until_ms, self._runs, self._ends)

    # -- changing --------------------------------------------------------------------------------------------

    def remove(self, runs: Runs) -> None:
        """Takes messages out, those of them that it holds."""
        if not self._changes_little(runs):
            if self._ends is None:
                self._runs, self.is_own = difference(self._runs, runs), True
            else:
                self._set(self._pieces_without(runs))
            return
        self._make_own()
        for run in runs:
            self._cut(run)
        self._join_ends()

    def extend(self, runs: Runs, until_ms: int) -> None:
        """Messages end at this time, whether or not it holds them already."""
        if self.is_all(runs):
            self.until_ms = until_ms
            return
        if not self._changes_little(runs):
            self._set(sorted([*self._pieces_without(runs), *((*run, until_ms) for run in runs)]))
            return
        self._make_own()
        if self._ends is None and until_ms != self.until_ms:
            self._ends = [self.until_ms] * len(self._runs)
            self._runs_by_end = Counter({self.until_ms: len(self._runs)})
        for run in runs:
            self._cut(run)
            self._put(run, until_ms)
        self._join_ends()

    def _changes_little(self, runs: Runs) -> bool:
        return len(self._runs) > _FEW * max(1, len(runs))

    def _make_own(self) -> None:
        if not self.is_own:
            self._runs, self.is_own = [*self._runs], True
            if self._ends is not None:
                self._ends = [*self._ends]

    def _cut(self, run: Run) -> None:
        first, end = run[0], run[0] + run[1]
        held = self._runs
        low = bisect_right(held, (first, _BEHIND_ALL))
        if low and sum(held[low - 1]) > first:
            low -= 1
        high = bisect_left(held, (end, 0), lo=low)
        if low == high:
            return
        left: Runs = []
        ends: list[int] = []
        if held[low][0] < first:
            left.append((held[low][0], first - held[low][0]))
            ends.append(self._end_of(low))
        if sum(held[high - 1]) > end:
            left.append((end, sum(held[high - 1]) - end))
            ends.append(self._end_of(high - 1))
        self._replace(low, high, left, ends)

    def _put(self, run: Run, until_ms: int) -> None:
        """Puts messages in that it does not hold."""
        first, count = run
        held = self._runs
        low = high = bisect_left(held, run)
        if low and sum(held[low - 1]) == first and self._end_of(low - 1) == until_ms:
            low -= 1
            first, count = held[low][0], held[low][1] + count
        if high < len(held) and held[high][0] == first + count and self._end_of(high) == until_ms:
            count += held[high][1]
            high += 1
        self._replace(low, high, [(first, count)], [until_ms])

    def _end_of(self, place: int) -> int:
        return self.until_ms if self._ends is None else self._ends[place]

    def _replace(self, low: int, high: int, runs: Runs, ends: list[int]) -> None:
        self._runs[low:high] = runs
        if self._ends is None or self._runs_by_end is None:
            return
        for until_ms in self._ends[low:high]:
            left = self._runs_by_end[until_ms] - 1
            if left:
                self._runs_by_end[until_ms] = left
            else:
                del self._runs_by_end[until_ms]
        self._ends[low:high] = ends
        self._runs_by_end.update(ends)

    def _join_ends(self) -> None:
        """If all ends have become equal, keeps the end once."""
        if self._runs_by_end is not None and len(self._runs_by_end) <= 1:
            self.until_ms = next(iter(self._runs_by_end), self.until_ms)
            self._ends = self._runs_by_end = None

    def _pieces_without(self, runs: Runs) -> list[Piece]:
        pieces: list[Piece] = []
        place = 0
        ends = repeat(self.until_ms) if self._ends is None else self._ends
        for (first, count), until_ms in zip(self._runs, ends, strict=False):
            end = first + count
            while place < len(runs) and sum(runs[place]) <= first:
                place += 1
            near = place
            while near < len(runs) and runs[near][0] < end:
                if runs[near][0] > first:
                    pieces.append((first, runs[near][0] - first, until_ms))
                first = max(first, sum(runs[near]))
                near += 1
            if first < end:
                pieces.append((first, end - first, until_ms))
        return pieces

    def _set(self, pieces: Iterable[Piece]) -> None:
        """Replaces the contents by these runs, in order."""
        runs: Runs = []
        ends: list[int] = []
        for first, count, until_ms in pieces:
            if runs and sum(runs[-1]) == first and ends[-1] == until_ms:
                runs[-1] = (runs[-1][0], runs[-1][1] + count)
            else:
                runs.append((first, count))
                ends.append(until_ms)
        self._runs, self.is_own = runs, True
        self._ends, self._runs_by_end = ends, Counter(ends)
        self._join_ends()


LeaseImage = tuple[int, int, int, Runs, list[int] | None]
"""Its number, when it was given out, its end, its runs, and the end of each where there are several. None of the lists changes."""


def images_of(page: dict[int, Lease]) -> list[LeaseImage]:
    """Leases as they are now, by their numbers. There may be thousands: nothing is called for each."""
    for lease in page.values():
        lease.is_own = False
    return [
        (number, lease.at_ms, lease.until_ms, lease._runs, lease._ends)
        for number, lease in sorted(page.items())
    ]


def parts_of(until_ms: int, runs: Runs, ends: list[int] | None) -> list[Part]:
    """The runs of a lease by their ends."""
    if ends is None:
        return [(until_ms, runs)]
    parts: dict[int, Runs] = {}
    for run, end_ms in zip(runs, ends, strict=True):
        parts.setdefault(end_ms, []).append(run)
    return sorted(parts.items())

"""A set of messages that may have a million runs: small changes and lookups do not visit the rest.

The runs are in blocks. A block is never changed, but replaced, so a copy of the list of blocks is a copy of the set.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from penstock.model.runs import Run, Runs, difference, intersection, normalized

_BLOCK_RUNS = 512
"""A block has twice as many runs at most."""


class RunSet:
    """Runs, sorted and disjoint; adjacent ones are joined."""

    __slots__ = ("_blocks", "_firsts")

    def __init__(self, runs: Runs | None = None) -> None:
        self._blocks: list[Runs] = []
        """None is empty."""
        self._firsts: list[int] = []
        """The first message of each block."""
        if runs:
            self._put(0, 0, runs)

    def __len__(self) -> int:
        """How many runs there are."""
        return sum(map(len, self._blocks))

    def __bool__(self) -> bool:
        return bool(self._blocks)

    def __iter__(self) -> Iterator[Run]:
        """All runs as they are now, also if the set changes meanwhile."""
        for block in self.blocks():
            yield from block

    def __eq__(self, other: object) -> bool:
        return [*self] == [*other] if isinstance(other, Iterable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def blocks(self) -> list[Runs]:
        """The runs as they are now, block by block. The list is the caller's, the blocks are not to be changed."""
        return self._blocks[:]

    def copy(self) -> RunSet:
        """Another set with the same runs."""
        other = RunSet()
        other._blocks, other._firsts = self._blocks[:], self._firsts[:]
        return other

    def first(self, messages: int) -> Runs:
        """The first messages, up to so many."""
        found: Runs = []
        for first, count in self:
            if messages <= 0:
                break
            found.append((first, min(count, messages)))
            messages -= count
        return found

    def among(self, runs: Runs) -> Runs:
        """Those of some messages, sorted and disjoint, that are in the set."""
        return [run for place, part in self._near(runs) for run in intersection(part, self._blocks[place])]

    def has_any(self, first: int, end: int) -> bool:
        """Whether a message from `first` to before `end` is in the set."""
        place = bisect_left(self._firsts, end) - 1
        if place < 0:
            return False
        block = self._blocks[place]
        return sum(block[bisect_left(block, (end, 0)) - 1]) > first

    def add(self, runs: Runs) -> None:
        """Puts messages in, sorted and disjoint; some of them may be there."""
        at = 0
        while at < len(runs):
            place = max(0, bisect_right(self._firsts, runs[at][0]) - 1)
            following = place + 1
            until = len(runs)
            if following < len(self._firsts):  # the part that begins before the next block
                until = max(at + 1, bisect_left(runs, (self._firsts[following], 0), lo=at))
            part = runs[at:until]
            end = sum(part[-1])
            while following < len(self._firsts) and self._firsts[following] <= end:  # which it touches
                end = max(end, sum(self._blocks[following][-1]))
                following += 1
            before = [run for block in self._blocks[place:following] for run in block]
            self._put(place, following, _with(before, part))
            at = until

    def remove(self, runs: Runs) -> None:
        """Takes messages out, sorted and disjoint, those of them that are there."""
        for place, part in reversed(self._near(runs)):
            self._put(place, place + 1, difference(self._blocks[place], part))

    def append(self, runs: Runs) -> None:
        """Puts messages in that come behind all others."""
        if runs and self._blocks and sum(self._blocks[-1][-1]) >= runs[0][0]:
            self.add(runs)
        elif runs:
            self._put(len(self._blocks), len(self._blocks), runs)

    def _near(self, runs: Runs) -> list[tuple[int, Runs]]:
        """The blocks that may share messages with some, each with those of them."""
        found: list[tuple[int, Runs]] = []
        place = at = 0
        while at < len(runs):
            place = max(place, bisect_right(self._firsts, runs[at][0]) - 1)
            if place >= len(self._blocks):
                break
            if sum(runs[at]) <= self._firsts[place]:
                at += 1
                continue
            end = sum(self._blocks[place][-1])
            until = bisect_left(runs, (end, 0), lo=at)
            if until > at:
                found.append((place, runs[at:until]))
                at = until - 1 if sum(runs[until - 1]) > end else until
            place += 1
        return found

    def _put(self, low: int, high: int, runs: Runs) -> None:
        """Puts runs in the place of some blocks."""
        if len(runs) <= 2 * _BLOCK_RUNS:
            blocks = [runs] if runs else []
        else:
            blocks = [runs[start : start + _BLOCK_RUNS] for start in range(0, len(runs), _BLOCK_RUNS)]
        self._blocks[low:high] = blocks
        self._firsts[low:high] = [block[0][0] for block in blocks]


def _with(runs: Runs, more: Runs) -> Runs:
    if len(more) > 1 or not runs:
        return normalized([*runs, *more]) if runs else more[:]
    first, end = more[0][0], sum(more[0])
    low = bisect_left(runs, (first, 0))
    if low and sum(runs[low - 1]) >= first:
        low -= 1
        first = runs[low][0]
    high = bisect_left(runs, (end + 1, 0), lo=low)
    if high > low:
        end = max(end, sum(runs[high - 1]))
    return [*runs[:low], (first, end - first), *runs[high:]]

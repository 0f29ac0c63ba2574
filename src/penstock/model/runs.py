"""Runs: sorted, disjoint ranges of sequence numbers, the algebra of the engine.

A run is `(first, count)`. Everything that happens to messages happens to runs of them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

Run = tuple[int, int]
Runs = list[Run]


def count_of(runs: Iterable[Run]) -> int:
    """How many messages the runs hold."""
    if type(runs) is list and len(runs) == 1:  # the usual case, in a third of the time
        count: int = runs[0][1]
        return count
    return sum(some for _, some in runs)


def runs_of(sequences: Iterable[int]) -> Runs:
    """Joins single sequence numbers, given in rising order, into runs."""
    runs: Runs = []
    first = end = -1
    for sequence in sequences:
        if sequence == end:
            end += 1
            continue
        if end > first:
            runs.append((first, end - first))
        first, end = sequence, sequence + 1
    if end > first:
        runs.append((first, end - first))
    return runs


def runs_in_order(sequences: Iterable[int]) -> Runs:
    """Joins neighbours that follow each other, and keeps the order given."""
    runs: Runs = []
    for sequence in sequences:
        if runs and runs[-1][0] + runs[-1][1] == sequence:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((sequence, 1))
    return runs


def pieces_of(runs: Runs, most: int) -> Iterator[Runs]:
    """The runs in their order, at most so many of them at a time."""
    for start in range(0, len(runs), most):
        yield runs[start : start + most]


def normalized(runs: Iterable[Run]) -> Runs:
    """Sorts and merges runs that touch or overlap."""
    merged: Runs = []
    for first, count in sorted(runs):
        if count <= 0:
            continue
        if merged and first <= merged[-1][0] + merged[-1][1]:
            start, length = merged[-1]
            merged[-1] = (start, max(start + length, first + count) - start)
        else:
            merged.append((first, count))
    return merged


def intersection(left: Runs, right: Runs) -> Runs:
    """The common part; both sorted and disjoint."""
    if len(right) > _LONG and left:  # a small part of a large list: only its neighbourhood is examined
        right = _near(right, left)
    if len(left) > _LONG and right:
        left = _near(left, right)
    shared: Runs = []
    i = j = 0
    while i < len(left) and j < len(right):
        left_first, left_count = left[i]
        right_first, right_count = right[j]
        first = max(left_first, right_first)
        end = min(left_first + left_count, right_first + right_count)
        if first < end:
            shared.append((first, end - first))
        if left_first + left_count < right_first + right_count:
            i += 1
        else:
            j += 1
    return shared


_LONG = 64


def _near(long: Runs, runs: Runs) -> Runs:
    low = max(0, bisect_left(long, (runs[0][0], 0)) - 1)
    high = bisect_left(long, (runs[-1][0] + runs[-1][1], 0), lo=low)
    return long[low:high]


def difference(left: Runs, right: Runs) -> Runs:
    """`left` without `right`; both sorted and disjoint."""
    if len(left) > _LONG and right:  # a small part of a large list: only its neighbourhood is examined
        low = max(0, bisect_left(left, (right[0][0], 0)) - 1)
        high = bisect_left(left, (right[-1][0] + right[-1][1], 0), lo=low)
        return left[:low] + _difference(left[low:high], right) + left[high:]
    return _difference(left, right)


def _difference(left: Runs, right: Runs) -> Runs:
    rest: Runs = []
    j = 0
    for run_first, count in left:
        first, end = run_first, run_first + count
        while j < len(right) and right[j][0] + right[j][1] <= first:
            j += 1
        k = j
        while k < len(right) and right[k][0] < end:
            cut_first, cut_count = right[k]
            if cut_first > first:
                rest.append((first, cut_first - first))
            first = max(first, cut_first + cut_count)
            k += 1
        if first < end:
            rest.append((first, end - first))
    return rest

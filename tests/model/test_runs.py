"""The algebra of runs does what sets do."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as some

from penstock.model.runs import (
    Run,
    Runs,
    count_of,
    difference,
    intersection,
    normalized,
    runs_in_order,
    runs_of,
)

any_runs = some.lists(some.tuples(some.integers(0, 60), some.integers(0, 12)), max_size=8)


def as_set(runs: list[Run]) -> set[int]:
    return {sequence for first, count in runs for sequence in range(first, first + count)}


def is_normal(runs: Runs) -> bool:
    """Sorted, not empty, and with a gap between each and the next."""
    return all(count > 0 for _, count in runs) and all(
        first + count < following for (first, count), (following, _) in itertools.pairwise(runs)
    )


@given(any_runs)
def test_normalized_keeps_the_messages_and_leaves_gaps(runs: Runs) -> None:
    normal = normalized(runs)
    assert is_normal(normal)
    assert as_set(normal) == as_set(runs)
    assert count_of(normal) == len(as_set(runs))
    assert normalized(normal) == normal


@given(any_runs, any_runs)
def test_intersection_and_difference_are_those_of_sets(one: Runs, other: Runs) -> None:
    left, right = normalized(one), normalized(other)
    both, rest = intersection(left, right), difference(left, right)
    assert as_set(both) == as_set(left) & as_set(right)
    assert as_set(rest) == as_set(left) - as_set(right)
    assert is_normal(normalized(both))
    assert count_of(both) + count_of(rest) == count_of(left)


@given(any_runs)
def test_a_little_out_of_much_is_the_difference_too(other: Runs) -> None:
    left, right = [(first, 2) for first in range(0, 600, 3)], normalized(other)
    rest = difference(left, right)
    assert as_set(rest) == as_set(left) - as_set(right)
    assert rest == sorted(rest)


@given(any_runs, any_runs)
def test_what_is_cut_out_stays_sorted_and_disjoint(one: Runs, other: Runs) -> None:
    left, right = normalized(one), normalized(other)
    for runs in (intersection(left, right), difference(left, right)):
        assert runs == sorted(runs)
        assert count_of(runs) == len(as_set(runs))


@given(some.sets(some.integers(0, 80)))
def test_runs_of_joins_neighbours(sequences: set[int]) -> None:
    runs = runs_of(sorted(sequences))
    assert is_normal(runs)
    assert as_set(runs) == sequences


@given(some.lists(some.integers(0, 20)))
def test_runs_in_order_keeps_the_order(sequences: list[int]) -> None:
    runs = runs_in_order(sequences)
    assert [s for first, count in runs for s in range(first, first + count)] == sequences
    assert all(a + n != b for (a, n), (b, _) in itertools.pairwise(runs)), "neighbours were not joined"


def test_nothing_is_nothing() -> None:
    assert runs_of([]) == runs_in_order([]) == normalized([]) == intersection([], [(1, 2)]) == []
    assert difference([], [(1, 2)]) == []
    assert difference([(1, 2)], []) == [(1, 2)]

"""Walks through a queue of several partitions: every number that was there at the beginning, and none for ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from penstock.model.partition_numbers import going_on, number_in_partition, number_of, partition_of


@given(some.lists(some.integers(0, 20), min_size=1, max_size=5), some.integers(1, 7), some.integers(0, 50))
def test_a_walk_sees_all_that_was_there_when_it_began(sizes: list[int], step: int, more: int) -> None:
    end = 1 + sum(sizes)  # as the description of a queue says it
    there = list(sizes)
    seen: list[int] = []
    place: int | None = 0
    for _ in range(10_000):
        if place is None:
            break
        ordinal, number = partition_of(place), max(1, number_in_partition(place))
        taken = range(number, min(number + step, there[ordinal] + 1))
        seen += [number_of(ordinal, one) for one in taken]
        there[ordinal] += more  # what is moved comes back, and gets higher numbers
        following = number + len(taken)
        place = number_of(ordinal, following)
        if following > there[ordinal]:
            place = number_of(ordinal + 1, 0) if ordinal + 1 < len(sizes) else None
        place = going_on(place, end, len(sizes))
    assert place is None
    assert len(seen) == len(set(seen))
    for ordinal, size in enumerate(sizes):
        assert {number_of(ordinal, one) for one in range(1, size + 1)} <= set(seen)

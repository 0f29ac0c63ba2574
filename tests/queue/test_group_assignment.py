"""Partitions are shared out evenly, by the same rule at each of them, and few change hands."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given
from hypothesis import strategies as some

from penstock.queue.log.group_assignment import PAIRS_AT_MOST, assign, reader_of

MEMBERS = some.lists(some.text(min_size=1, max_size=12), min_size=1, max_size=12, unique=True)


def test_the_first_member_has_the_only_partition_and_keeps_it() -> None:
    assert reader_of([], 0, 1) == ""
    assert reader_of(["b", "a"], 0, 1) == "b"
    assert reader_of(["b", "a", "c"], 0, 1) == "b"
    assert reader_of([], 2, 3) == ""


@given(some.integers(2, 40), MEMBERS, some.randoms())
def test_shares_are_complete_and_even_in_whatever_order_members_came(
    partitions: int, members: list[str], dice: random.Random
) -> None:
    readers = assign(partitions, members)
    assert len(readers) == partitions
    assert set(readers) <= set(members)
    sizes = [readers.count(member) for member in members]
    assert max(sizes) - min(sizes) <= 1
    shuffled = list(members)
    dice.shuffle(shuffled)
    assert [reader_of(shuffled, ordinal, partitions) for ordinal in range(partitions)] == readers


def test_a_member_that_joins_takes_its_share_and_little_else_moves() -> None:
    moved = wanted = 0
    for seed in range(40):
        members = [f"reader-{seed}-{number}" for number in range(1 + seed % 7)]
        before = assign(24, members)
        after = assign(24, [*members, f"new-{seed}"])
        moved += sum(one != other for one, other in zip(before, after, strict=True))
        wanted += Counter(after)[f"new-{seed}"]
    assert wanted <= moved < 2 * wanted


def test_very_many_are_shared_out_in_blocks() -> None:
    members = [f"reader-{number}" for number in range(100)]
    readers = assign(PAIRS_AT_MOST // 100 + 1, members)
    sizes = Counter(readers)
    assert len(sizes) == 100
    assert max(sizes.values()) - min(sizes.values()) <= 1

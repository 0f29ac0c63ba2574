"""Gaps in numbers do what a plain set of the numbers between them would."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model.number_gaps import NO_GAPS, NumberGaps

WIDE = 1 << 36
stretches = some.lists(some.tuples(some.integers(0, 5), some.integers(1, 6)), max_size=5)
"""How many messages come before each gap, and how wide it is."""


def built(given_stretches: list[tuple[int, int]]) -> tuple[NumberGaps, set[int]]:
    """The gaps, and all numbers that are left out."""
    gaps, left_out, following = NumberGaps(), set[int](), 1
    for messages, width in given_stretches:
        following += messages
        gaps.add(following, following + width)
        left_out.update(range(following, following + width))
        following += width
    return gaps, left_out


@given(stretches, some.integers(1, 70), some.integers(0, 70), some.integers(0, 12))
def test_they_do_what_a_set_of_numbers_would(
    given_stretches: list[tuple[int, int]], start: int, length: int, messages: int
) -> None:
    gaps, left_out = built(given_stretches)
    end = start + length
    present = [number for number in range(start, end) if number not in left_out]
    assert gaps.messages(start, end) == len(present)
    assert [
        number for first, count in gaps.runs(start, end) for number in range(first, first + count)
    ] == present
    assert gaps.after(start) == next(n for n in range(start, 200) if n not in left_out)
    assert gaps.next_start(start, 999) == min(
        (n for n in left_out if n > start and n - 1 not in left_out), default=999
    )
    edge = start
    while edge - 1 in left_out:
        edge -= 1
    assert gaps.before(start) == (edge if start not in left_out else start)
    assert gaps.around(start) == (edge if start in left_out else start)
    back = gaps.back(start, end, messages)
    assert gaps.messages(back, end) == min(messages, len(present))
    assert back == start or back not in left_out or not messages
    forth = gaps.forth(start, end, messages)
    assert start <= forth <= end
    assert gaps.messages(start, forth) == min(messages, len(present))
    assert NumberGaps(gaps.pairs()) == gaps


@given(stretches, some.integers(1, 70), some.integers(0, 4))
def test_the_oldest_are_forgotten_and_never_those_that_matter(
    given_stretches: list[tuple[int, int]], before: int, keep: int
) -> None:
    gaps, _ = built(given_stretches)
    all_of_them = gaps.pairs()
    gaps.forget(before, keep)
    left = gaps.pairs()
    assert left == all_of_them[len(all_of_them) - len(left) :]
    assert [gap for gap in all_of_them if gap[1] >= before] == [gap for gap in left if gap[1] >= before]
    assert len(left) <= max(keep, sum(gap[1] >= before for gap in all_of_them))


def test_a_gap_of_billions_is_one_entry_and_takes_no_time() -> None:
    gaps = NumberGaps([(1_001, WIDE)])
    assert gaps.messages(1, WIDE + 10) == 1_010
    assert gaps.runs(1, WIDE + 10) == [(1, 1_000), (WIDE, 10)]
    assert gaps.back(1, WIDE + 10, 12) == 999
    assert gaps.forth(1, WIDE + 10, 1_005) == WIDE + 5
    assert gaps.last_start(WIDE) == 1_001
    assert gaps.last_start(WIDE + 1) == WIDE + 1
    gaps.add(WIDE, 2 * WIDE)
    assert gaps.pairs() == [(1_001, 2 * WIDE)], "nothing was sent between, so it is one gap"


@pytest.mark.parametrize("gap", [(5, 8), (9, 9), (12, 11), (0, 20)])
def test_gaps_come_in_order(gap: tuple[int, int]) -> None:
    gaps = NumberGaps([(6, 10)])
    with pytest.raises(ValueError, match="a gap from"):
        gaps.add(*gap)
    assert not NO_GAPS

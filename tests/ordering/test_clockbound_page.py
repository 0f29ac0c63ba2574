"""Which reads of ClockBound's page are believed; `tests/runtime/clocks` reads files of it."""

from __future__ import annotations

import pytest

from penstock.ordering.clockbound_page import LAYOUT, MAGIC, READS_AT_MOST, PageError, PageReads


def page(generation: int, bound_ns: int = 40_000) -> bytes:
    """A page of that generation."""
    return LAYOUT.pack(*MAGIC, LAYOUT.size, 2, generation, 100, 0, 200, 0, bound_ns, 0, 15_000, 1, 0)


def test_a_page_is_believed_when_two_reads_are_alike() -> None:
    reads = PageReads()
    assert reads.take(page(2, 1)) is None
    assert reads.take(page(2, 2)) is None
    assert reads.take(page(2, 2)) == page(2, 2)


def test_a_page_that_is_being_written_is_read_again() -> None:
    reads = PageReads()
    assert [reads.take(page(3)) for _ in range(3)] == [None] * 3
    assert reads.take(page(4)) is None
    assert reads.take(page(4)) == page(4)


@pytest.mark.parametrize("generation", [0, 3])
def test_a_page_that_stays_unfinished_is_given_up(generation: int) -> None:
    reads = PageReads()
    for _ in range(READS_AT_MOST - 1):
        assert reads.take(page(generation)) is None
    with pytest.raises(PageError, match="in the middle of an update"):
        reads.take(page(generation))


def test_a_page_that_is_too_short_is_whole() -> None:
    reads = PageReads()
    assert reads.take(b"short") is None
    assert reads.take(b"short") == b"short"

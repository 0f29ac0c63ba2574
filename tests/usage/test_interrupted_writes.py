"""A process may be killed between any two steps of a write: the next one finds all of it, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

import pytest

from penstock.usage.spool import HEADER_BYTES, LEAST_BYTES, NO_ROOM, Spool
from penstock.usage.spool_files import RingInMemory


class Killed(BaseException):
    """Here it ends."""


def killed_after(steps: int, call: Callable[[], object]) -> bool:
    """Runs something in `spool.py` for so many lines; whether it was killed."""
    left = steps

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith("usage/spool.py"):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                raise Killed
        return trace

    sys.settrace(trace)
    try:
        call()
    except Killed:
        return True
    finally:
        sys.settrace(None)
    return False


def left_behind(spool: Spool) -> Spool:
    """What the next process finds."""
    file = RingInMemory(LEAST_BYTES)
    file.memory[:] = spool._memory
    found = Spool.adopt(file)
    assert found is not None
    return found


def ring(entries: int, size: int) -> Spool:
    """A ring that some entries are in, and room for at least one more."""
    spool = Spool.begin(RingInMemory(LEAST_BYTES), "front", 7)
    for number in range(1, entries + 1):
        while (end := spool.append(number, bytes([number % 256]) * size)) == NO_ROOM:
            spool.release(next(iter(spool.entries())).end)
        assert end == spool.head
    while spool.head - spool.tail > LEAST_BYTES // 2:
        spool.release(next(iter(spool.entries())).end)
    return spool


def state(spool: Spool) -> list[tuple[int, bytes]]:
    return [(entry.number, entry.data) for entry in spool.entries()]


@pytest.mark.parametrize("entries", [1, 7, 200])
def test_after_a_power_cut_nothing_of_the_lap_before_comes_again(entries: int) -> None:
    """The page with the header may be on the disk, and those with the entries that it tells of not yet."""
    file = RingInMemory(LEAST_BYTES)
    spool = Spool.begin(file, "front", 7)
    number = 0
    while spool.head < LEAST_BYTES:  # entries of one size begin at the same places in every lap
        number += 1
        assert spool.append(number, bytes([number % 256]) * 100) != NO_ROOM
        spool.release(spool.head)
    begin = spool.head
    on_disk = bytes(file.memory)
    for _ in range(entries):
        number += 1
        assert spool.append(number, b"n" * 100) != NO_ROOM
    after = RingInMemory(LEAST_BYTES)
    after.memory[:] = on_disk
    after.memory[:HEADER_BYTES] = file.memory[:HEADER_BYTES]
    found = Spool.adopt(after)
    assert found is not None
    assert (found.tail, found.head) == (begin, spool.head)
    assert state(found) == []
    assert found.is_damaged


@pytest.mark.parametrize("flipped", range(0, 116, 5))
def test_a_flipped_bit_is_no_row(flipped: int) -> None:
    file = RingInMemory(LEAST_BYTES)
    spool = Spool.begin(file, "front", 7)
    spool.append(1, b"a" * 100)
    second = spool.head
    spool.append(2, b"b" * 100)
    file.memory[HEADER_BYTES + second + flipped] ^= 4
    found = left_behind(spool)
    assert state(found) == [(1, b"a" * 100)]
    assert found.is_damaged


@pytest.mark.parametrize(("entries", "size"), [(0, 10), (3, 500), (5, 12_280), (40, 4_000)])
def test_an_entry_is_there_or_not(entries: int, size: int) -> None:
    seen: set[bool] = set()
    for steps in range(100):
        spool = ring(entries, size)
        before = state(spool)
        new = (entries + 1, b"n" * size)
        killed = killed_after(steps, partial(spool.append, *new))
        after = state(left_behind(spool))
        assert after in (before, [*before, new])
        assert killed or after == [*before, new]
        seen.add(after == before)
        if not killed:
            assert seen == {True, False}
            return
    pytest.fail("it never came to its end")


def test_room_is_free_or_not() -> None:
    for steps in range(20):
        spool = ring(3, 500)
        before = state(spool)
        end = next(iter(spool.entries())).end
        killed = killed_after(steps, partial(spool.release, end))
        after = state(left_behind(spool))
        assert after in (before, before[1:])
        if not killed:
            assert after == before[1:]
            return
    pytest.fail("it never came to its end")

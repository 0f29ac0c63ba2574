"""A step of a capture, of building a state, and of freeing one does no more however large the state is. Nor does a purge.

What is counted is calls of functions, pieces of memory and bytes of pages, not time: a turn of the node has a bounded number of steps.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.model import limits
from penstock.model.batch import encode
from penstock.model.records import Deleted, Leased, Purged, Released, Sent
from penstock.model.settings import QueueSettings
from penstock.queue.decisions.budget import Budget
from penstock.queue.partition import Partition
from penstock.queue.snapshot.building import Builder
from penstock.queue.snapshot.capture import Capture
from penstock.queue.snapshot.taking_apart import ROWS_AT_ONCE, is_large, taken_apart
from penstock.queue.state.chunk import CHUNK_MESSAGES
from tests.queue import large_states
from tests.queue.rig import START_MS, Rig

MESSAGES = 100_000
PAGE_BYTES_MAX = 256 * 1024
BATCH = 1_000
ROWS = 6_000
"""Of one part of a state: several pages, and several steps."""
BYTES_AT_ONCE = 1024 * 1024
"""So much memory may be freed in a step."""
BLOCKS_PER_ROW = 8
"""So many pieces of memory make up the largest row: a lease with its parts and its runs."""


@contextmanager
def calls() -> Iterator[list[int]]:
    """Counts the functions that are called within."""
    counted = [0]

    def count(frame: object, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            counted[0] += 1

    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(None)
        if collects:
            gc.enable()


def timers(messages: int) -> Partition:
    rig = Rig()
    for start in range(0, messages, BATCH):
        delays = [1_000 + (start + place) * 7_919 % 3_000_000 for place in range(BATCH)]
        ttls = [4_000_000 + (start + place) * 104_729 % 5_000_000 for place in range(BATCH)]
        rig.send(encode([b"x"] * BATCH, delays_ms=delays, ttls_ms=ttls))
    return rig.partition


def ids_and_groups(messages: int) -> Partition:
    rig = Rig(QueueSettings(ordering="fifo"))
    for start in range(0, messages, BATCH):
        numbers = range(start, start + BATCH)
        ids, groups = (
            [b"%d" % number for number in numbers],
            [b"g%d" % (number % 5_000) for number in numbers],
        )
        rig.send(encode([b"x"] * BATCH, groups=groups, deduplication_ids=ids))
    return rig.partition


def scattered(messages: int) -> Partition:
    """Every other message is gone; of the others every other one is out."""
    partition = Partition(1, "orders", QueueSettings(), START_MS)
    batch = encode([b"x"] * BATCH)
    for number in range(messages // BATCH):
        first, lease = partition.table.next, partition.leases.next
        partition.apply(Sent(first, BATCH, START_MS, 0, 0, 0, 0), batch, (1 << 32) + 8 * number)
        partition.apply(Leased(lease, [(first, BATCH)], START_MS, START_MS + 10**7))
        partition.apply(Deleted(lease, [(first + place, 1) for place in range(0, BATCH, 2)], START_MS))
        back = [(first + place, 1) for place in range(1, BATCH, 4)]
        partition.apply(Released(lease, back, "released", START_MS, START_MS))
    return partition


def producers(messages: int) -> Partition:
    rig = Rig(QueueSettings(consumption="log"))
    for number in range(messages // 4):
        rig.send(encode([b"x"]), START_MS, producer=1 + number * 7_919, number=number)
    return rig.partition


def work(partition: Partition) -> tuple[int, int, int, int]:
    """The most calls of the beginning, of a step, and of building a page; and the bytes of the largest page."""
    with calls() as counted:
        capture = Capture(partition)
    begin, step = counted[0], 0
    while not capture.is_done:
        with calls() as counted:
            capture.step(1)
        step = max(step, counted[0])
    builder, build = Builder(), 0
    for page in capture.buffers:
        builder.feed(page)
        done = False
        while not done:
            with calls() as counted:
                done = builder.build(1)
            build = max(build, counted[0])
    assert builder.finish().table.messages == partition.table.messages
    return begin, step, build, max(map(len, capture.buffers))


@pytest.mark.parametrize("make", [timers, ids_and_groups, scattered, producers])
def test_no_step_does_more_than_a_page_is_worth(make: Callable[[int], Partition]) -> None:
    begin, step, build, page = work(make(MESSAGES))
    assert begin <= 200, "it begins with the work of many pages"
    assert step <= 4 * limits.PAGE_ROWS
    assert build <= 12 * CHUNK_MESSAGES
    assert page <= PAGE_BYTES_MAX


@contextmanager
def blocks() -> Iterator[list[int]]:
    """Counts the pieces of memory that are there afterwards and were not before, or the other way round."""
    counted = [0]
    gc.disable()
    before = sys.getallocatedblocks()
    try:
        yield counted
    finally:
        counted[0] = abs(sys.getallocatedblocks() - before)
        gc.enable()


@pytest.mark.parametrize("name", large_states.MAKERS)
def test_no_part_of_a_state_is_captured_or_built_at_once(name: str) -> None:
    partition = large_states.MAKERS[name](ROWS)
    begin, step, build, page = work(partition)
    few = name == "readers"  # of which a queue has 10,000 at most: they are copied when it begins
    assert begin <= (ROWS + 200 if few else 200)
    assert step <= 4 * limits.PAGE_ROWS
    assert build <= 12 * CHUNK_MESSAGES
    assert page <= PAGE_BYTES_MAX
    if few:
        return
    if name not in COPIED:
        with held() as bytes_held:
            capture = Capture(partition)
        assert bytes_held[0] <= BEGINNING_BYTES, "it begins with a copy of a table"
        capture.close()
    with blocks() as counted:
        capture = Capture(partition)
    assert counted[0] <= limits.PAGE_ROWS, "it begins with rows of many pages"
    while not capture.is_done:
        with blocks() as counted:
            capture.step(1)
        assert counted[0] <= BLOCKS_PER_ROW * limits.PAGE_ROWS


COPIED = (
    *("producers", "duplicates", "origins", "moves", "clock_window", "late_heads", "free_groups"),
    *("lifecycle", "timers", "distant_timers"),
)
"""Copied when a capture begins: packed columns, runs, and what waits in the window of a `clock` queue, one pointer a row; rows of
lifecycles and pages of timers, of which there are never more than some thousand."""
BEGINNING_BYTES = 16 * 1024


@contextmanager
def held() -> Iterator[list[int]]:
    """Counts the bytes that are held afterwards and were not before."""
    counted = [0]
    tracemalloc.start()
    try:
        yield counted
        counted[0] = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def free_in_steps(roots: list[object]) -> None:
    """Takes a state apart."""
    steps = taken_apart(roots)
    ended = False
    while not ended:
        with blocks() as counted:
            ended = next(steps, steps) is steps
        assert counted[0] <= 2 * BLOCKS_PER_ROW * ROWS_AT_ONCE, "too much is freed in one step"


@pytest.mark.parametrize("name", large_states.MAKERS)
def test_no_part_of_a_state_is_freed_at_once(name: str) -> None:
    partition = large_states.MAKERS[name](ROWS)
    free_in_steps([partition])
    assert not is_large([partition])
    with blocks() as counted:
        del partition
    assert counted[0] <= BLOCKS_PER_ROW * ROWS_AT_ONCE


EXCEPTIONS = ("lifecycle", "moves")
"""Rows of lifecycles are made for what is purged. Of the chunks of what is on its way the rest is purged message by message."""


@pytest.mark.parametrize("name", [name for name in large_states.MAKERS if name not in EXCEPTIONS])
def test_a_purge_frees_nothing_and_goes_through_the_last_chunk_alone(name: str) -> None:
    partition = large_states.MAKERS[name](ROWS)
    purged = Purged(partition.table.next, START_MS)
    with blocks() as counted, calls() as called:
        partition.apply(purged)
    assert called[0] <= 3 * CHUNK_MESSAGES
    assert counted[0] <= 500
    free_in_steps(partition.discarded)


def test_large_columns_are_not_freed_at_once() -> None:
    """A chunk is one row of its table, and up to 100 kB of memory."""
    tracemalloc.start()
    try:
        partition = large_states.plain(MESSAGES * 6)
        steps, before, ended = taken_apart([partition]), tracemalloc.get_traced_memory()[0], False
        while not ended:
            ended = next(steps, steps) is steps
            left = tracemalloc.get_traced_memory()[0]
            assert before - left <= BYTES_AT_ONCE
            before = left
    finally:
        tracemalloc.stop()


def test_what_goes_on_after_a_purge_is_not_taken_apart() -> None:
    """Tables that are given up know the messages of the partition, which are its own again."""
    for make in (large_states.strict_groups, large_states.fair_groups, large_states.late_heads):
        partition = make(ROWS)
        partition.apply(Purged(partition.table.next, START_MS))
        given_up, partition.discarded = partition.discarded, []
        batch = encode([b"x"] * BATCH, groups=[b"%d" % number for number in range(BATCH)])
        first = partition.table.next
        partition.apply(Sent(first, BATCH, START_MS, 0, 0, 0, 0), batch, 1 << 50)
        for _ in taken_apart(given_up):
            pass
        assert partition.table.messages == BATCH
        assert len(partition.groups) == BATCH
        assert sum(count for _, count in partition.order.choose(Budget(BATCH, 1 << 30))) == BATCH

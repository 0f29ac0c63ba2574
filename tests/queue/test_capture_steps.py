"""A step of a capture, and of building a state, does no more however large the state is.

What is counted is calls of functions and bytes of pages, not time: a turn of the node has a bounded number of steps.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.model import limits
from penstock.model.batch import encode
from penstock.model.records import Deleted, Leased, Released, Sent
from penstock.model.settings import QueueSettings
from penstock.queue.building import Builder
from penstock.queue.capture import Capture
from penstock.queue.chunk import CHUNK_MESSAGES
from penstock.queue.partition import Partition
from tests.queue.rig import START_MS, Rig

MESSAGES = 100_000
PAGE_BYTES_MAX = 256 * 1024
BATCH = 1_000


@contextmanager
def calls() -> Iterator[list[int]]:
    """Counts the functions that are called within."""
    counted = [0]

    def count(frame: object, event: str, argument: object) -> None:
        if event in ("call", "c_call"):
            counted[0] += 1

    gc.disable()
    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(None)
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

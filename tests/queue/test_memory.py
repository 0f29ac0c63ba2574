"""What is over leaves nothing behind, whatever ended it and whether or not anybody receives."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import pytest

from penstock.model import limits
from penstock.model.batch import Batch, encode
from penstock.model.settings import QueueSettings
from penstock.queue.partition import Partition
from penstock.queue.state.producers import ProducerTable
from tests.queue.rig import START_MS, Rig


def footprint(root: Partition | ProducerTable) -> int:
    """Bytes of everything reachable from a partition or a part of one, code and classes left out."""
    seen: set[int] = set()
    return sum(sys.getsizeof(thing) for thing in _reachable(root, seen))


def _reachable(root: object, seen: set[int]) -> Iterator[object]:
    waiting = [root]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        yield thing
        waiting += gc.get_referents(thing)


PLAIN = encode([b"x"] * 50)
FAIR = encode([b"x"] * 50, groups=[b"%d" % (i % 5) for i in range(50)])
CASES = {
    "dropped": (QueueSettings(max_messages=100, overflow="drop-oldest"), PLAIN),
    "dropped, fair": (QueueSettings(max_messages=100, overflow="drop-oldest"), FAIR),
    "dropped, fifo": (QueueSettings(ordering="fifo", max_messages=100, overflow="drop-oldest"), FAIR),
    "expired": (QueueSettings(default_ttl_ms=20), PLAIN),
    "expired, fair": (QueueSettings(default_ttl_ms=20), FAIR),
    "expired, fifo": (QueueSettings(ordering="fifo", default_ttl_ms=20), FAIR),
    "retained": (QueueSettings(retention_ms=1_000), FAIR),
    "delayed and expired": (QueueSettings(delay_ms=50, default_ttl_ms=20), PLAIN),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_queue_that_nobody_receives_from_does_not_grow(case: tuple[QueueSettings, Batch]) -> None:
    settings, batch = case
    rig = Rig(settings)
    sizes = []
    for turn in range(1_200):
        now_ms = START_MS + 10 * turn
        rig.send(batch, now_ms)
        rig.log.clear()
        rig.stored.clear()
        rig.emptied.clear()
        if turn % 5 == 0:
            rig.upkeep(now_ms)
        if turn in (600, 1_199):
            sizes.append(footprint(rig.partition))
    assert sizes[1] < sizes[0] * 1.5 + 20_000


@pytest.mark.parametrize("ordering", ["best-effort", "fifo"])
def test_a_queue_whose_messages_are_deleted_at_once_does_not_grow(ordering: str) -> None:
    """With a time to live and a visibility timeout of days, and one message that stays for ever."""
    days = 3 * 24 * 3_600_000
    rig = Rig(
        QueueSettings(
            ordering="fifo" if ordering == "fifo" else "best-effort",
            default_ttl_ms=days,
            visibility_timeout_ms=days,
        )
    )
    rig.send(encode([b"old"], groups=[b"old"], delays_ms=[days]))
    sizes = []
    for turn in range(6_000):
        now_ms = START_MS + 100 * turn
        rig.send(encode([b"x"], groups=[b"g%d" % (turn % 3)]), now_ms)
        granted = rig.receive(1, now_ms)
        assert granted is not None
        rig.delete(granted.lease, granted.runs, now_ms)
        rig.log.clear()
        rig.stored.clear()
        rig.emptied.clear()
        if turn in (3_000, 5_999):
            sizes.append(footprint(rig.partition))
    assert sizes[1] < sizes[0] * 1.5 + 20_000


@pytest.mark.parametrize("special", [False, True], ids=["plain", "with stamps and duplicates"])
def test_as_many_producers_as_there_may_be_take_16_megabytes(special: bool) -> None:
    table = ProducerTable()
    scattered = [(producer * 0x9E3779B97F4A7C15) % 2**63 for producer in range(1, 100_001)]
    for number in (1, 2):
        for producer in scattered:
            duplicates = [(0, 1)] if special and producer % 3 == 0 else None
            table.add(producer, number, number, 1, START_MS, duplicates, int(special))
    assert len(table) == limits.PRODUCERS_PER_QUEUE
    assert table.batches == limits.PRODUCER_BATCHES_PER_QUEUE
    assert footprint(table) <= 16_000_000


def test_a_thousand_producers_with_a_thousand_batches_each_take_less() -> None:
    table = ProducerTable()
    for number in range(1, 1_025):
        for producer in range(1, 1_001):
            table.add(producer, number, number, 1, START_MS)
    assert footprint(table) <= 8_000_000

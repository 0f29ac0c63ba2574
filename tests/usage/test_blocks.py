"""Rows of requests that were answered together: they are kept as one block, and come out as if each had come alone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from penstock.model.batch import encode_one
from penstock.model.internal_queues import MESSAGE_BYTES
from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.usage.collector import BATCH_EVENTS, BLOCK_EVENTS, UsageTotals
from penstock.usage.event import Row
from penstock.usage.spool import LEAST_BYTES, Spool
from tests.usage.test_usage import ARN, collector, drained, event, latencies


def rows(first: int, count: int, user: str = "ada") -> list[Row]:
    return [event(number, user=user).row() for number in range(first, first + count)]


def test_blocks_and_single_events_come_out_in_order_with_a_number_each(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    sizes = [1, 64, 3, BLOCK_EVENTS, 200, BLOCK_EVENTS + 1, 90, 2 * BATCH_EVENTS]
    total = 0
    for size in sizes:
        usage.record_all(rows(total, size))
        usage.record(event(total + size))
        total += size + 1
    assert usage.totals() == UsageTotals(total, 0, 0, total)
    batches = drained(usage)
    assert latencies(batches) == list(range(total))
    assert [number for batch in batches for number in batch.numbers] == list(range(1, total + 1))
    assert all(len(batch.rows) <= BATCH_EVENTS for batch in batches)
    assert usage.totals() == UsageTotals(total, total, 0, 0)
    usage.close()
    assert list(tmp_path.iterdir()) == []


def test_whoever_hands_on_hears_of_it_once_there_is_a_batch(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    heard: list[int] = []
    usage.many = lambda: heard.append(usage.totals().waiting)
    for place in range(10):
        usage.record_all(rows(100 * place, 100))
    assert heard == [600]
    enough = [usage.has_many]
    drained(usage)
    assert [*enough, usage.has_many] == [True, False]
    usage.close()


def test_blocks_that_find_no_room_are_counted_row_by_row(tmp_path: Path) -> None:
    usage = collector(tmp_path, spool_bytes=LEAST_BYTES)
    for place in range(20):
        usage.record_all(rows(100 * place, 100))
    dropped = usage.totals().dropped
    assert dropped >= 1_000
    kept = 2_000 - dropped
    assert latencies(drained(usage)) == list(range(kept))
    usage.record_all(rows(2_000, 2))
    (after,) = drained(usage)
    assert after.numbers == [2_001, 2_002], "the gap shows how many are missing"
    usage.close()


def test_long_names_in_a_block_make_no_batch_that_the_log_refuses(tmp_path: Path) -> None:
    usage = collector(tmp_path, spool_bytes=16 << 20)
    long = msgspec.structs.replace(event(7), queue=ARN + "\N{FIRE}" * 20_000)
    usage.record_all([long.row()] * BATCH_EVENTS)
    (batch,) = drained(usage)
    assert len(batch.rows) == BATCH_EVENTS
    assert len(encode_one(batch.stream())) <= MESSAGE_BYTES
    assert all(one.queue.startswith(ARN) for one in batch.events)
    usage.close()


def test_text_that_is_no_unicode_spoils_none_of_its_block(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    usage.record_all([*rows(0, 3), event(3, user="a\udc80b").row(), *rows(4, 3)])
    (batch,) = drained(usage)
    assert [one.user for one in batch.events] == ["ada"] * 3 + ["a?b"] + ["ada"] * 3
    assert batch.numbers == list(range(1, 8))
    usage.close()


def test_the_next_process_hands_on_blocks_as_they_were_on_their_way(tmp_path: Path) -> None:
    first = collector(tmp_path, spool_bytes=16 << 20)
    first.record_all(rows(0, 200))
    first.record_all(rows(200, 200))
    underway = first.next_batch()
    assert underway is not None
    first.record_all(rows(400, 50))
    first.close()
    second = collector(tmp_path, seed=50)
    batches = drained(second)
    assert [(batch.front_end, batch.batch, len(batch.rows)) for batch in batches] == [
        (underway.front_end, underway.batch, 400),
        (underway.front_end, underway.batch + 1, 50),
    ]
    assert latencies(batches) == list(range(450))
    second.close()


@pytest.mark.parametrize("damage", [False, True])
def test_a_spool_with_an_event_an_entry_is_read_too(tmp_path: Path, damage: bool) -> None:
    left = Spool.begin(SpoolDirectory(tmp_path).make("old", LEAST_BYTES), "old/1", 77)
    for number in (1, 2, 4):
        data = msgspec.msgpack.encode(event(number))
        left.append(number, data[:-3] if damage and number == 2 else data)
    left.close()
    usage = collector(tmp_path)
    batches = drained(usage)
    (batch,) = batches
    whole = [1, 4] if damage else [1, 2, 4]
    assert (batch.numbers, latencies([batch])) == (whole, whole)
    usage.close()
    assert list(tmp_path.iterdir()) == []

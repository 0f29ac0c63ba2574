"""Usage: every event is handed on once or counted as dropped, whatever happens to its process and its disk."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyarrow import ipc

from penstock.columnar.usage import USAGE
from penstock.model.batch import encode_one
from penstock.model.internal_queues import MESSAGE_BYTES
from penstock.runtime.disk.spool_directory import SUFFIX, SpoolDirectory
from penstock.usage.batch import UsageBatch
from penstock.usage.collector import BATCH_EVENTS, UsageCollector, UsageTotals
from penstock.usage.event import UsageEvent
from penstock.usage.spool import LEAST_BYTES

NOON_MS = 1_767_268_800_000
ARN = "arn:aws:sqs:us-east-1:000000000000:orders"


def event(number: int = 0, user: str = "ada", action: str = "SendMessage") -> UsageEvent:
    return UsageEvent(
        NOON_MS,
        "000000000000",
        user,
        "127.0.0.1",
        action,
        ARN,
        1,
        1000,
        24,
        "ok",
        200,
        number,
        f"id-{number}",
    )


def collector(directory: Path, seed: int = 1, spool_bytes: int = 1 << 20) -> UsageCollector:
    return UsageCollector(
        SpoolDirectory(directory),
        "127.0.0.1:9324",
        token=bytes(range(seed, seed + 16)),
        spool_bytes=spool_bytes,
    )


def drained(usage: UsageCollector) -> list[UsageBatch]:
    """Takes everything, as if the log took it."""
    batches = []
    while (batch := usage.next_batch()) is not None:
        batches.append(batch)
        usage.reported(batch)
    return batches


def latencies(batches: list[UsageBatch]) -> list[int]:
    return [event.latency_us for batch in batches for event in batch.events]


def test_every_event_is_handed_on_once_and_in_order(tmp_path: Path) -> None:
    usage = collector(tmp_path / "deep" / "usage")
    for number in range(3 * BATCH_EVENTS + 7):
        usage.record(event(number))
    batches = drained(usage)
    assert latencies(batches) == list(range(3 * BATCH_EVENTS + 7))
    assert [batch.batch for batch in batches] == [1, 2, 3, 4]
    assert usage.totals() == UsageTotals(3 * BATCH_EVENTS + 7, 3 * BATCH_EVENTS + 7, 0, 0)
    usage.close()
    assert list((tmp_path / "deep" / "usage").iterdir()) == []


def test_what_clients_call_a_queue_makes_no_batch_that_the_log_refuses(tmp_path: Path) -> None:
    usage = collector(tmp_path, spool_bytes=16 << 20)
    for number in range(BATCH_EVENTS):
        name = "\N{FIRE}" * 20_000  # GetQueueUrl takes what a request has room for
        usage.record(msgspec.structs.replace(event(number), queue=f"{ARN}{name}"))
    usage.record(event(BATCH_EVENTS))
    first, second = drained(usage)
    assert len(first.events) == BATCH_EVENTS
    assert len(encode_one(first.stream())) <= MESSAGE_BYTES
    assert all(one.queue.startswith(ARN) for one in first.events)
    assert second.events == [event(BATCH_EVENTS)]
    usage.close()


def test_rows_are_what_the_table_of_usage_says(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    usage.record(event(5, user="zoë"))
    (batch,) = drained(usage)
    usage.close()
    found = ipc.open_stream(batch.stream()).read_all()
    assert tuple(found.column_names) == USAGE.names
    (row,) = found.to_pylist()
    assert row.pop("time").timestamp() * 1000 == NOON_MS
    assert row == {
        "front_end": "127.0.0.1:9324/01020304",
        "number": 1,
        "account": "000000000000",
        "user": "zoë",
        "address": "127.0.0.1",
        "action": "SendMessage",
        "queue": ARN,
        "messages": 1,
        "bytes_in": 1000,
        "bytes_out": 24,
        "outcome": "ok",
        "status": 200,
        "latency_us": 5,
        "request_id": "id-5",
    }


def test_a_batch_that_was_not_reported_is_the_same_when_it_comes_again(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    usage.record(event(0))
    first = usage.next_batch()
    usage.record(event(1))
    again = usage.next_batch()
    assert first is not None
    assert again is not None
    assert (again.batch, again.numbers, again.producer) == (first.batch, first.numbers, first.producer)
    usage.reported(again)
    following = usage.next_batch()
    assert following is not None
    assert (following.batch, following.numbers) == (2, [2])
    usage.close()


def test_what_finds_no_room_is_counted_and_its_number_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    usage = collector(tmp_path, spool_bytes=LEAST_BYTES)
    with caplog.at_level(logging.WARNING):
        for number in range(2_000):
            usage.record(event(number))
    totals = usage.totals()
    assert totals.dropped > 1_000
    assert totals.recorded == 2_000
    assert len([record for record in caplog.records if "usage is not recorded" in record.message]) == 1
    batches = drained(usage)
    kept = 2_000 - totals.dropped
    assert latencies(batches) == list(range(kept))
    usage.record(event(2_000))
    (after,) = drained(usage)
    assert after.numbers == [2_001], "the gap shows how many are missing"
    assert f"{totals.dropped} requests are missing" in caplog.text
    usage.close()


def test_the_ring_goes_round_many_times(tmp_path: Path) -> None:
    usage = collector(tmp_path, spool_bytes=LEAST_BYTES)
    found: list[int] = []
    for number in range(5_000):
        usage.record(event(number, user="u" * (number % 60)))
        if number % 90 == 89:
            found += latencies(drained(usage))
    found += latencies(drained(usage))
    assert found == list(range(5_000))
    assert usage.totals().dropped == 0
    usage.close()


def test_text_that_is_no_unicode_is_recorded_readably(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    usage.record(event(user="a\udc80b"))
    (batch,) = drained(usage)
    assert batch.events[0].user == "a?b"
    assert ipc.open_stream(batch.stream()).read_all().num_rows == 1
    usage.close()


def test_a_disk_that_takes_no_spool_stops_nobody(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "usage").write_text("a file where the directory should be")
    usage = collector(tmp_path / "usage")
    assert "cannot store usage" in caplog.text
    usage.record(event(1))
    assert latencies(drained(usage)) == [1]
    usage.close()


def test_files_that_are_no_spools_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / f"short{SUFFIX}").write_bytes(b"x")
    (tmp_path / f"other{SUFFIX}").write_bytes(b"y" * LEAST_BYTES)
    usage = collector(tmp_path)
    assert usage.next_batch() is None
    usage.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"other{SUFFIX}", f"short{SUFFIX}"]


# --- a process that is killed -------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from tests.usage.test_usage import collector, event
usage = collector(Path(sys.argv[1]), spool_bytes=1 << 16)
for number in range(300):
    usage.record(event(number))
    if number == 99:
        batch = usage.next_batch()
        usage.reported(batch)
    if number == 199:
        usage.next_batch()  # on its way when the process ends
print(batch.front_end, batch.producer, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_has_recorded_is_handed_on_by_the_next(tmp_path: Path) -> None:
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    front_end, producer = killed.stdout.split()
    usage = collector(tmp_path, seed=100)
    usage.record(event(1_000))
    batches = drained(usage)
    assert [(batch.front_end, batch.batch, len(batch.events)) for batch in batches] == [
        (front_end, 2, 100),  # what was on its way, under the same number
        (front_end, 3, 100),
        ("127.0.0.1:9324/64656667", 1, 1),
    ]
    assert [batch.producer for batch in batches[:2]] == [int(producer)] * 2
    assert latencies(batches) == [*range(100, 300), 1_000]
    assert [number for batch in batches[:2] for number in batch.numbers] == list(range(101, 301))
    usage.close()
    assert list(tmp_path.iterdir()) == []


def test_the_spool_of_a_living_process_is_its_own(tmp_path: Path) -> None:
    first = collector(tmp_path)
    first.record(event(1))
    # Locks belong to processes' open files, so that one in the same process shows as well as any.
    second = collector(tmp_path, seed=50)
    assert second.next_batch() is None
    second.close()
    assert latencies(drained(first)) == [1]
    first.close()


def test_what_was_not_reported_at_the_end_stays(tmp_path: Path) -> None:
    first = collector(tmp_path)
    first.record(event(1))
    first.close()
    assert first.totals().waiting == 1
    second = collector(tmp_path, seed=50)
    assert latencies(drained(second)) == [1]
    second.close()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "bad", [{"latency_us": 2**63}, {"status": 2**31}, {"bytes_in": 2**70}, {"messages": "three"}]
)
@pytest.mark.parametrize("in_block", [False, True])
def test_a_row_that_cannot_be_converted_is_left_out_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, bad: dict[str, Any], in_block: bool
) -> None:
    usage = collector(tmp_path)
    events = [event(1), msgspec.structs.replace(event(2), **bad), event(3)]
    if in_block:
        usage.record_all([one.row() for one in events])
    else:
        for one in events:
            usage.record(one)
    batch = usage.next_batch()
    assert batch is not None
    for _ in range(2):  # the log did not take it the first time
        table = ipc.open_stream(usage.stream(batch)).read_all()
        assert table["number"].to_pylist() == [1, 3]
        assert table["latency_us"].to_pylist() == [1, 3]
    usage.reported(batch)
    assert usage.next_batch() is None
    assert usage.totals() == UsageTotals(3, 2, 1, 0)
    assert caplog.text.count("cannot be converted") == 1
    usage.record(event(4))
    (batch,) = drained(usage)
    assert batch.numbers == [4]
    usage.close()


def test_a_batch_of_nothing_but_rows_that_cannot_be_converted_does_not_stop_the_next(tmp_path: Path) -> None:
    usage = collector(tmp_path)
    usage.record(msgspec.structs.replace(event(1), status=2**31))
    batch = usage.next_batch()
    assert batch is not None
    assert ipc.open_stream(usage.stream(batch)).read_all().num_rows == 0
    usage.reported(batch)
    assert usage.totals() == UsageTotals(1, 0, 1, 0)
    usage.close()

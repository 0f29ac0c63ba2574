"""The rows of the tests that kill: sent all the while, some of them twice, and added up on both ends."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
from pyarrow import ipc

import penstock
from penstock.columnar.usage import USAGE
from tests.pipeline.duck import answer
from tests.pipeline.rows import stream_of, usage_row

ROWS_A_MESSAGE = 40
_READS = 20
_ROLLED = ("usage_parts", "usage_minutes", "usage_hours", "usage_days")


@dataclass
class Sums:
    """What can be said of many rows in few numbers: how many, and checksums of their columns."""

    rows: int = 0
    numbers: int = 0
    bytes: int = 0
    latency_us: int = 0
    paired: int = 0
    """Every number times its latency: sums alone would not notice that two rows had changed values."""

    def add(self, row: dict[str, Any]) -> None:
        """One more row."""
        self.rows += 1
        self.numbers += row["number"]
        self.bytes += row["bytes_in"]
        self.latency_us += row["latency_us"]
        self.paired += row["number"] * row["latency_us"]


class Writer:
    """Sends rows in a thread of its own, some of them again, until it is stopped."""

    def __init__(self, queue: penstock.BlockingQueue, seed: int) -> None:
        self.sums = Sums()
        """Of what was sent and acknowledged, once."""
        self._queue = queue
        self._dice = random.Random(seed)
        self._stopped = threading.Event()
        self._number = 0
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    def stop(self) -> None:
        """Sends no more."""
        self._stopped.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            self._send_all()
        except BaseException as failure:
            self._failure = failure

    def _send_all(self) -> None:
        again = b""
        while not self._stopped.wait(0.05):
            rows = [self._row() for _ in range(ROWS_A_MESSAGE)]
            body = stream_of(USAGE, rows)
            self._queue.send(body)
            for row in rows:
                self.sums.add(row)
            if again and self._dice.random() < 0.1:
                self._queue.send(again)
            again = body

    def _row(self) -> dict[str, Any]:
        self._number += 1
        dice = self._dice
        return usage_row(
            self._number,
            time=datetime(2026, 11, 16, tzinfo=UTC) + timedelta(seconds=dice.randrange(172_800)),
            user=dice.choice(["ada", "bob", "eve"]),
            bytes_in=dice.randrange(1000),
            latency_us=dice.randrange(1_000_000),
        )


def log_sums(queue: penstock.BlockingQueue) -> Sums:
    """What the log itself holds, every row once, read without Spark."""
    sums, seen = Sums(), set[int]()
    for message in queue.log().messages():
        columns = ipc.open_stream(bytes(message.body)).read_all().select(["number", "bytes_in", "latency_us"])
        for row in columns.to_pylist():
            if row["number"] not in seen:
                seen.add(row["number"])
                sums.add(row)
    return sums


def check_no_row_twice(job: str, warehouse: Path) -> int:
    """Whatever was killed: what readers see now is no row twice. Returns how many rows they see."""
    table = "audit" if job == "audit" else "usage_parts"
    if not list((warehouse / table).rglob("*.parquet")):
        return 0
    if job != "audit":
        return _one(warehouse, table, "sum(requests)")[0]
    rows, different = _one(warehouse, table, "count(*), count(distinct number)")
    assert rows == different, "a row stands twice in the audit trail"
    return rows


def check_sums(job: str, warehouse: Path, expected: Sums) -> None:
    """The tables add up to the log, and so do those that were rolled up."""
    if job == "audit":
        sums = "count(*), sum(number), sum(bytes_in), sum(latency_us), sum(number::hugeint * latency_us)"
        found = Sums(*_one(warehouse, "audit", sums))
        assert found == expected, f"the audit trail has {found} and the log {expected}"
        check_no_row_twice(job, warehouse)
        return
    for table in _ROLLED:
        added_up = _one(warehouse, table, "sum(requests), sum(bytes_in), sum(latency_us_sum)")
        assert added_up == (expected.rows, expected.bytes, expected.latency_us), table


def _one(warehouse: Path, table: str, what: str) -> tuple[int, ...]:
    """A job that runs may compact a table between the moment a query is planned and the one it opens a file."""
    query = f"select {what} from read_parquet('{warehouse}/{table}/**/*.parquet', hive_partitioning=true)"
    for left in reversed(range(_READS)):
        try:
            (row,) = answer(query)
        except duckdb.IOException:
            if not left:
                raise
            continue
        return tuple(int(value or 0) for value in row)
    raise AssertionError("unreachable")

"""Kills the driver of a job that follows a log, with signal 9 and at moments that nobody chose, and counts afterwards.

`make pipeline-kills` does it for long; a short run is among the tests. Rows come in all the while, some of them twice.
What has to come out in the end is every row of the log, once.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import msgspec

import penstock
from penstock.columnar.usage import USAGE
from tests.pipeline.conftest import serving
from tests.pipeline.rows import stream_of, usage_row

ROWS_A_MESSAGE = 40
START_SECONDS = 600.0
"""Spark may take minutes to start on a busy machine."""
TABLES = {"usage": "usage_parts", "audit": "audit"}


@dataclass
class Sums:
    """What can be said of many rows in few numbers: how many, and checksums of their columns."""

    rows: int = 0
    numbers: int = 0
    bytes: int = 0
    latency_us: int = 0

    def add(self, row: dict[str, Any]) -> None:
        """One more row."""
        self.rows += 1
        self.numbers += row["number"]
        self.bytes += row["bytes_in"]
        self.latency_us += row["latency_us"]


class Writer:
    """Sends rows in a thread of its own, some of them again, until it is stopped."""

    def __init__(self, queue: penstock.BlockingQueue, seed: int) -> None:
        self.sums = Sums()
        self._queue = queue
        self._dice = random.Random(seed)
        self._stopped = threading.Event()
        self._number = 0
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    def stop(self) -> None:
        """Sends no more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        again = b""
        while not self._stopped.wait(0.05):
            rows = [self._row() for _ in range(ROWS_A_MESSAGE)]
            body = stream_of(USAGE, rows)
            for row in rows:
                self.sums.add(row)
            self._queue.send(body)
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


class Driver:
    """One run of a job in a process of its own, with its Java in the same group."""

    def __init__(self, job: str, endpoint: str, queue: str, warehouse: Path, *, follow: bool) -> None:
        command = [sys.executable, "-m", "tests.pipeline.driver", "pipeline", "run", job, "--json"]
        command += ["--endpoint", endpoint, "--queue", queue, "--warehouse", str(warehouse)]
        command += ["--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2"]
        command += ["--follow", "--interval", "100ms", "--roll-interval", "1s"] if follow else ["--once"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)

    def batch(self) -> bool:
        """Waits for the next batch; False: the run has ended."""
        assert self.process.stdout is not None
        return any(b'"batch"' in line for line in iter(self.process.stdout.readline, b""))

    def kill(self, who: str) -> None:
        """`both`: Python and Java at once; `python`, `java`: the other one is left to notice."""
        if who == "java":
            for child in _children(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        elif who == "python":
            self.process.kill()
            self.process.wait()
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


def run_kills(
    job: str, kills: int, seed: int, directory: Path, say: Callable[[str], None] = lambda text: None
) -> Sums:
    """Kills so many times, lets the job finish, and compares; returns what the log had."""
    dice = random.Random(seed)
    warehouse = directory / "warehouse"
    with serving(directory / "broker") as url, penstock.connect_blocking(url, timeout=120) as client:
        queue = client.create_queue("rows", consumption="log")
        writer = Writer(queue, seed)
        try:
            for number in range(kills):
                driver = Driver(job, url, "rows", warehouse, follow=True)
                who = dice.choice(["both", "python", "java"])
                for _ in range(dice.randrange(1, 4)):
                    if not driver.batch():
                        raise AssertionError(f"the driver ended by itself with {driver.process.wait()}")
                with suppress(subprocess.TimeoutExpired):  # the moment is anywhere in the second that follows
                    driver.process.wait(dice.random() * 1.5)
                driver.kill(who)
                check_no_row_twice(job, warehouse)
                say(f"kill {number + 1} of {kills}: {who}")
        finally:
            writer.stop()
        last = Driver(job, url, "rows", warehouse, follow=False)
        output, _ = last.process.communicate(timeout=START_SECONDS)
        assert last.process.returncode == 0, "the last run failed"
        done = msgspec.json.decode(output.splitlines()[-1])
        assert done["missing_rows"] == 0
    check_sums(job, warehouse, writer.sums)
    return writer.sums


def check_no_row_twice(job: str, warehouse: Path) -> None:
    """Whatever was killed: what readers see now is no row twice."""
    if job == "audit" and list((warehouse / "audit").rglob("*.parquet")):
        rows, different = _one(warehouse, "audit", "count(*), count(distinct number)")
        assert rows == different, "a row stands twice in the audit trail"


def check_sums(job: str, warehouse: Path, expected: Sums) -> None:
    """The tables add up to the log, and so do those that were rolled up."""
    if job == "audit":
        found = _one(warehouse, "audit", "count(*), sum(number), sum(bytes_in), sum(latency_us)")
        assert found == (expected.rows, expected.numbers, expected.bytes, expected.latency_us)
        check_no_row_twice(job, warehouse)
        return
    for table in ("usage_parts", "usage_minutes", "usage_hours", "usage_days"):
        found = _one(warehouse, table, "sum(requests), sum(bytes_in), sum(latency_us_sum)")
        assert found == (expected.rows, expected.bytes, expected.latency_us), table


def _one(warehouse: Path, table: str, what: str) -> tuple[int, ...]:
    query = f"select {what} from read_parquet('{warehouse}/{table}/**/*.parquet', hive_partitioning=true)"
    row = duckdb.execute(query).fetchone()
    assert row is not None
    return tuple(int(value) for value in row)


def main() -> None:
    """The long run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=24, help="how many in all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    jobs = list(TABLES)
    for place, job in enumerate(jobs):
        share = options.kills // len(jobs) + (place < options.kills % len(jobs))
        with tempfile.TemporaryDirectory(prefix="penstock-kills-") as directory:
            sums = run_kills(
                job, share, options.seed + place, Path(directory), lambda text: print(text, flush=True)
            )
        print(f"{job}: {share} kills, {sums.rows:,} rows, every one of them once: {sums}", flush=True)


if __name__ == "__main__":
    main()

"""A job that follows a log, in a process of its own, and when rows are in its table for everybody to read."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.parquet as pq

from benchmarks import process_tree
from benchmarks.processes import BenchError, Child
from benchmarks.spark.session import CORES, DRIVER_MEMORY
from benchmarks.stage import Server, Stage

INTERVAL = "2s"
_LOOK_SECONDS = 0.02


class Following:
    """`penstock pipeline run audit --follow`."""

    def __init__(self, child: Child, table: Path) -> None:
        self._child = child
        self._table = table
        self._files: set[str] = set()
        self.seen: dict[int, float] = {}
        """When the row of a number was first in the table, by the clock of `time.monotonic`."""

    def hold(self) -> None:
        """Lets it and its Spark stand still."""
        process_tree.send_signal(self._child.process_id, signal.SIGSTOP)

    def go_on(self) -> None:
        """Lets them go on."""
        process_tree.send_signal(self._child.process_id, signal.SIGCONT)

    def cpu_seconds(self) -> Mapping[str, float]:
        """Used so far: by the driver's Python, by Java, and by all Python workers together."""
        first = self._child.process_id
        used = {"driver": process_tree.cpu_seconds(first), "java": 0.0, "workers": 0.0}
        for process in process_tree.descendants(first):
            kind = "java" if process_tree.program(process) == "java" else "workers"
            used[kind] += process_tree.cpu_seconds(process)
        return used

    def niceness(self) -> int:
        """Its priority: a job that follows gives way, unless the whole run does already."""
        return os.getpriority(os.PRIO_PROCESS, self._child.process_id)

    def memory(self) -> Mapping[str, int]:
        """The most bytes held: by the driver's Python, by Java, and by all Python workers together."""
        first = self._child.process_id
        peaks = {"driver": process_tree.peak_bytes(first), "java": 0, "workers": 0}
        for process in process_tree.descendants(first):
            kind = "java" if process_tree.program(process) == "java" else "workers"
            peaks[kind] += process_tree.peak_bytes(process)
        return peaks

    def look(self) -> None:
        """Notes the rows that are in the table now."""
        for path in _parquet_files(self._table):
            if path not in self._files:
                with suppress(OSError):  # it was compacted away meanwhile, and is in another one
                    numbers = pq.ParquetFile(path).read(columns=["number"]).column(0).to_pylist()
                    now = time.monotonic()
                    self._files.add(path)
                    for number in numbers:
                        self.seen.setdefault(number, now)

    def wait_for(self, numbers: range, timeout_seconds: float) -> None:
        """Looks until the rows are all there."""
        deadline = time.monotonic() + timeout_seconds
        self.look()
        while not self.seen.keys() >= set(numbers):
            if time.monotonic() > deadline:
                missing = len(set(numbers) - self.seen.keys())
                raise BenchError(
                    f"{missing} of {len(numbers)} rows were not in the table after {timeout_seconds:.0f} s"
                )
            time.sleep(_LOOK_SECONDS)
            self.look()


@contextmanager
def following(stage: Stage, server: Server, queue: str) -> Iterator[Following]:
    """The job over a warehouse of its own, ended afterwards."""
    warehouse = stage.directory / "warehouse"
    command = [sys.executable, "-m", "penstock.cli.main", "pipeline", "run", "audit", "--follow"]
    command += [
        "--endpoint",
        server.url.removeprefix("penstock://"),
        "--queue",
        queue,
        "--interval",
        INTERVAL,
    ]
    command += ["--warehouse", str(warehouse), "--master", f"local[{CORES}]"]
    command += ["--conf", f"spark.driver.memory={DRIVER_MEMORY}"]
    with Child(command, log=stage.directory / "pipeline.log") as child:
        run = Following(child, warehouse / "audit")
        try:
            yield run
        finally:
            run.go_on()  # what stands still cannot end


def _parquet_files(table: Path) -> Iterator[str]:
    for place, directories, names in os.walk(table):
        directories[:] = [name for name in directories if not name.startswith((".", "_"))]
        for name in names:
            if name.endswith(".parquet") and not name.startswith((".", "_")):
                yield f"{place}/{name}"

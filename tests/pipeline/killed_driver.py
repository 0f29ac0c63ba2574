"""A run of a job in processes of its own, which the tests that kill kill: its driver, its executors, their Python."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import msgspec

from tests.pipeline.quick_spark import SESSION_OPTIONS
from tests.pipeline.standalone import Daemon, SparkCluster

START_SECONDS = 600.0
"""Spark may take minutes to start on a busy machine; whatever takes longer than this stands still."""
REPOSITORY = Path(__file__).parents[2]
_EXECUTOR = b"CoarseGrainedExecutorBackend"
_PYTHON = b"pyspark.daemon"


class Copy(NamedTuple):
    """A log that a driver copies into another besides, until it stands still: `copying_driver.py`."""

    source: str
    sink: str
    checkpoint: Path


class Driver:
    """`penstock pipeline run` in a group of processes of its own, with its Java."""

    def __init__(
        self,
        job: str,
        endpoint: str,
        queue: str,
        warehouse: Path,
        *,
        follow: bool = True,
        cluster: SparkCluster | None = None,
        copy: Copy | None = None,
    ) -> None:
        """Without a `cluster` Spark runs in the driver's own Java."""
        program = ["driver"] if copy is None else ["copying_driver", endpoint, *map(str, copy)]
        command = [sys.executable, "-m", f"tests.pipeline.{program[0]}", *program[1:]]
        command += ["pipeline", "run", job, "--json"]
        command += ["--endpoint", endpoint, "--queue", queue, "--warehouse", str(warehouse)]
        command += ["--follow", "--interval", "100ms", "--roll-interval", "1s"] if follow else ["--once"]
        if cluster is None:
            command += ["--master", "local[2]"]
            for name, value in SESSION_OPTIONS.items():
                command += ["--conf", f"{name}={value}"]
        else:
            command += cluster.driver_options()
        self.cluster = cluster
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            cwd=REPOSITORY,
            env=None if cluster is None else cluster.driver_environment(),
        )

    def go_on(self) -> None:
        """With the job, after the copy."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def batches(self, count: int) -> int:
        """Waits for so many more batches; returns how many rows the run has written by then."""
        assert self.process.stdout is not None
        rows = 0
        with self._bounded():
            for line in iter(self.process.stdout.readline, b""):
                told = msgspec.json.decode(line)
                if told.get("event") != "batch":
                    continue
                rows = int(told["rows"])
                count -= 1
                if not count:
                    return rows
        raise AssertionError(f"the run ended by itself, or stood still: {self.process.wait()}")

    def finish(self) -> int:
        """Waits for the end of a run that does not follow; returns how many rows it says are missing."""
        with self._bounded():
            output, _ = self.process.communicate()
        assert self.process.returncode == 0, f"the run failed: {output.decode()}"
        return int(msgspec.json.decode(output.splitlines()[-1])["missing_rows"])

    def kill(self, who: str = "both") -> None:
        """With signal 9. `both`: Python and Java at once; `python`, `java`: the other one is left to notice."""
        if who == "java":
            for child in _children(self.process.pid):
                _kill(child)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(20)
        elif who == "python":
            self.process.kill()
            self.process.wait()
        self._kill_group()
        self.process.wait()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()

    def _kill_group(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    @contextmanager
    def _bounded(self) -> Iterator[None]:
        """What stands still is ended, and so found out."""
        timer = Timer(START_SECONDS, self._kill_group)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


def executors_of(workers: Iterable[Daemon]) -> list[int]:
    """The Java of every executor that runs."""
    return _found(workers, _EXECUTOR)


def pythons_of(workers: Iterable[Daemon]) -> list[int]:
    """The Python of the executors: those that read, and the one of each that begins them."""
    return _found(workers, _PYTHON)


def kill_one(processes: list[int], turn: int) -> bool:
    """One of them, with signal 9; False: there was none, or it had just ended."""
    return bool(processes) and _kill(processes[turn % len(processes)])


def _kill(process: int) -> bool:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _children(process: int) -> list[int]:
    text = Path(f"/proc/{process}/task/{process}/children").read_text()
    return [int(word) for word in text.split()]


def _found(workers: Iterable[Daemon], word: bytes) -> list[int]:
    """Processes of the workers' sessions whose command line has the word, in the order of their ids."""
    sessions = {worker.process_id for worker in workers}
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (directory / "stat").read_text().rpartition(")")[2].split()
            state, session = fields[0], int(fields[3])
            if session in sessions and state != "Z" and word in (directory / "cmdline").read_bytes():
                found.append(int(directory.name))
    return sorted(found)

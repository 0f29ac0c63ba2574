"""The processes of a run, seen from the one that asks: the server and the load processes, each ended by its id."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from benchmarks.tasks import Answer, Outcome, Ready, Task, TaskFailed

_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
_STOP_SECONDS = 20.0
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class BenchError(Exception):
    """A section could not be measured; the message says why."""


class Child:
    """A child process and what the kernel says about it."""

    def __init__(self, command: Sequence[str], *, log: Path | None = None, **variables: str) -> None:
        self._log = log.open("wb") if log is not None else None
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **variables},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.stdin = self._process.stdin
        self.stdout = self._process.stdout
        self._buffer = b""

    @property
    def process_id(self) -> int:
        """The id by which it is ended."""
        return self._process.pid

    def line(self, timeout_seconds: float) -> bytes:
        """The next line it prints; raises `BenchError` when none comes."""
        deadline = time.monotonic() + timeout_seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise BenchError(f"process {self.process_id} said nothing for {timeout_seconds:.0f} s")
                data = os.read(self.stdout.fileno(), 65536)
                if not data:
                    raise BenchError(f"process {self.process_id} ended with code {self._process.wait()}")
                self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far, user and system."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND

    def resident_bytes(self) -> int:
        """Memory it holds that is really there."""
        return int(Path(f"/proc/{self.process_id}/statm").read_text().split()[1]) * _PAGE_BYTES

    def stop(self) -> None:
        """Asks it to end; ends it by force when it does not."""
        self.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.stdout.close()
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class LoadProcess(Child):
    """Carries out tasks, one at a time."""

    def __init__(self) -> None:
        super().__init__([sys.executable, "-m", "benchmarks.load"])

    def start(self, task: Task) -> None:
        """Hands a task over."""
        self.stdin.write(msgspec.json.encode(task) + b"\n")
        self.stdin.flush()

    def ready(self, timeout_seconds: float = 30.0) -> None:
        """Waits until the process stands by, for tasks that say so."""
        answer = self._answer(timeout_seconds)
        if not isinstance(answer, Ready):
            raise BenchError(f"a load process answered {type(answer).__name__} where it should stand by")

    def go_on(self) -> None:
        """Lets a task that stands by carry on."""
        self.stdin.write(b"\n")
        self.stdin.flush()

    def finish(self, timeout_seconds: float = 120.0) -> Outcome:
        """The outcome of the task under way."""
        answer = self._answer(timeout_seconds)
        if not isinstance(answer, Outcome):
            raise BenchError("a load process stands by where it should have finished")
        return answer

    def run(self, task: Task, timeout_seconds: float = 120.0) -> Outcome:
        """Carries a task out and waits for it."""
        self.start(task)
        return self.finish(timeout_seconds)

    def _answer(self, timeout_seconds: float) -> Outcome | Ready:
        answer = _answers.decode(self.line(timeout_seconds))
        if isinstance(answer, TaskFailed):
            raise BenchError(answer.reason)
        return answer

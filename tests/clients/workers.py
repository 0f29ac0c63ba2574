"""Worker processes of task libraries, and the channel on which their tasks tell what they did."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients.environments import PROGRAMS

STOP_SECONDS = 60


class Reports:
    """Events from other processes, one datagram each, in the order of arrival."""

    def __init__(self, file: Path) -> None:
        self.path = str(file)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.path)

    def until(self, enough: Callable[[list[Any]], bool], seconds: float) -> list[Any]:
        """All events from now until there are enough of them; fails when the time is up."""
        seen: list[Any] = []
        end = time.monotonic() + seconds
        while not enough(seen):
            left = end - time.monotonic()
            assert left > 0, f"not enough events in {seconds} s: {seen[-20:]} ({len(seen)})"
            self._socket.settimeout(left)
            try:
                seen.append(json.loads(self._socket.recv(65_536)))
            except TimeoutError:
                continue
        return seen

    def close(self) -> None:
        """Nobody listens any more."""
        self._socket.close()


class Worker:
    """A worker with all its child processes."""

    def __init__(self, command: list[str], variables: dict[str, str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            # A session of its own, so that a kill takes the children too.
            self._process = subprocess.Popen(
                command, cwd=PROGRAMS, env=variables, stdout=output, stderr=output, start_new_session=True
            )

    def kill(self) -> None:
        """Ends it, and all its children, as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Asks it to stop, and insists when it does not."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        try:
            self.kill()
        except ProcessLookupError:
            pass  # neither it nor a child is left


@contextmanager
def working(command: list[str], variables: dict[str, str], log: Path) -> Iterator[Worker]:
    """A worker that is gone afterwards; what it logged is shown when the test fails."""
    worker = Worker(command, variables, log)
    try:
        yield worker
    except BaseException:
        print(log.read_text()[-20_000:])
        raise
    finally:
        worker.stop()

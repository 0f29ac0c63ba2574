"""The stage a section plays on: a fresh server, the load processes, and what both have used so far."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

import penstock
from benchmarks.options import BenchOptions
from benchmarks.processes import BenchError, Child, LoadProcess
from benchmarks.profile import profiled
from penstock.model.errors import PenstockError

_START_SECONDS = 30.0
_LOG_LINES = 20


class _Announcement(msgspec.Struct, frozen=True):
    """The part that matters of the line which `penstock serve --json` prints once it listens."""

    url: str
    sqs_url: str | None = None


class AccessKey(msgspec.Struct, frozen=True):
    """Of a user: where a server has one, nobody else is let in, over the native protocol neither."""

    key_id: str
    secret: str


class Stage:
    """Everything a section needs; `progress` is called with a sentence as it goes on."""

    def __init__(
        self,
        options: BenchOptions,
        directory: Path,
        loads: list[LoadProcess],
        progress: Callable[[str], None],
    ) -> None:
        self.options = options
        self.directory = directory
        self.loads = loads
        self.progress = progress
        self.profiles: list[Path] = []
        """What profiled servers have left."""
        self._servers = 0

    @contextmanager
    def server(
        self,
        *,
        sqs: bool = False,
        prepare: Callable[[Path], AccessKey] | None = None,
        home: Path | None = None,
        **variables: str,
    ) -> Iterator[Server]:
        """A server of its own over an empty directory, ended and cleared away afterwards.

        `prepare` is given the data directory before the server starts, and returns the key of a user whom it has made
        there. `variables` are the server's environment's. With `home` it is over that
        directory, which stays as it is left, for the next one.
        """
        self._servers += 1
        keep = home is not None
        home = home or self.directory / f"server-{self._servers}"
        home.mkdir(exist_ok=keep)
        profile = self.directory / f"server-{self._servers}.profile" if self.options.profile else None
        if profile is not None:
            self.profiles.append(profile)
        command = [sys.executable, *profiled(profile), "-m", "penstock.cli.main", "serve"]
        command += ["--data", str(home / "data"), "--listen", "127.0.0.1:0"]
        command += ["--durability", self.options.durability, "--log-level", "warning", "--json"]
        command += ["--sqs-listen", "127.0.0.1:0" if sqs else "off", "--monitoring-listen", "off"]
        with ExitStack() as stack:
            if not keep:
                stack.callback(shutil.rmtree, home, ignore_errors=True)
            key = prepare(home / "data") if prepare is not None else None
            child = stack.enter_context(Child(command, log=home / "log", **variables))
            announced = _announcement_of(child, home / "log")
            client = stack.enter_context(
                penstock.connect_blocking(
                    announced.url,
                    access_key=key.key_id if key is not None else None,
                    secret_key=key.secret if key is not None else None,
                )
            )
            try:
                yield Server(child, announced.url, client, announced.sqs_url, key)
            except (BenchError, PenstockError) as error:
                raise BenchError(f"{error}{_said(home / 'log')}") from error


def _announcement_of(child: Child, log: Path) -> _Announcement:
    """Where the server says it listens."""
    try:
        return msgspec.json.decode(child.line(_START_SECONDS), type=_Announcement)
    except (BenchError, msgspec.DecodeError) as error:
        raise BenchError(f"the server did not start: {error}{_said(log)}") from None


def _said(log: Path) -> str:
    """The last that the server complained about, if it did."""
    lines = log.read_text(errors="replace").splitlines()
    return "\n".join(("", "the server said:", *lines[-_LOG_LINES:])) if lines else ""


class Measured(Protocol):
    """What the kernel says about whoever serves."""

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        ...

    def resident_bytes(self) -> int:
        """Memory that is really there."""
        ...


class Server:
    """A running server."""

    def __init__(
        self,
        child: Measured,
        url: str,
        client: penstock.BlockingClient,
        sqs_url: str | None = None,
        key: AccessKey | None = None,
    ) -> None:
        self.url = url
        self.sqs_url = sqs_url
        self.key = key
        """Of its user, if it has one."""
        self.client = client
        self._child = child

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        return self._child.cpu_seconds()

    def resident_bytes(self) -> int:
        """Memory that is really there."""
        return self._child.resident_bytes()

    def statistics(self, queue: str) -> penstock.QueueStatistics:
        """The queue's counts as of now."""
        return self.client.queue(queue).describe().statistics

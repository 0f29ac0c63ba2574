"""A real server for the commands to talk to, on a thread of its own, and a way to run commands."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import uvloop
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.runtime.embedded import running_server
from tests.runtime.harness import small_config

_numbers = itertools.count(1)


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    output: str
    errors: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The output of a command run with `--json`."""
        return [json.loads(line) for line in self.output.splitlines()]


Penstock = Callable[..., Outcome]


@pytest.fixture(scope="session")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The url of a server that runs for all tests of this folder."""
    directory = tmp_path_factory.mktemp("server")
    urls: list[str] = []
    running, finished = threading.Event(), threading.Event()

    async def serve(directory: Path) -> None:
        async with running_server(directory, small_config()) as server:
            urls.append(server.url)
            running.set()
            await asyncio.get_running_loop().run_in_executor(None, finished.wait)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve(directory))
        finally:
            running.set()

    thread = threading.Thread(target=run, name="server")
    thread.start()
    running.wait()
    yield urls[0]
    finished.set()
    thread.join()


@pytest.fixture
def penstock(server_url: str, monkeypatch: pytest.MonkeyPatch) -> Penstock:
    """Runs a command against the server: `penstock("queue", "list")`."""
    monkeypatch.setenv("PENSTOCK_URL", server_url)
    # typer wraps help and usage errors to the width of the terminal.
    monkeypatch.setenv("COLUMNS", "200")
    runner = CliRunner()

    def run(*arguments: str, stdin: str | bytes | None = None) -> Outcome:
        result = runner.invoke(app, list(arguments), input=stdin)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def queue(penstock: Penstock) -> str:
    """The name of a new queue."""
    name = f"queue-{next(_numbers)}"
    assert penstock("queue", "create", name).code == 0
    return name

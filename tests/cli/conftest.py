"""A real server for the commands to talk to, on a thread of its own, and a way to run commands."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from tests.runtime.threaded_server import Running, threaded_server

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
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that runs for all tests of this folder."""
    with threaded_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="session")
def server_url(running: Running) -> str:
    """Where it is."""
    return running.server.url


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

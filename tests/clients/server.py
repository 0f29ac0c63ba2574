"""A real `penstock serve` process with the SQS interface on, for clients that nobody here wrote."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

START_SECONDS = 300
STOP_SECONDS = 60
SMALL_FILES = {
    "PENSTOCK_STORAGE_JOURNAL_FILE_SIZE": "32MiB",
    "PENSTOCK_STORAGE_CHECKPOINT_SIZE": "32MiB",
}


class Endpoint(NamedTuple):
    """Where SQS clients connect, and with which credentials."""

    url: str
    access_key: str = "test"
    secret: str = "test"
    region: str = "us-east-1"

    def boto_options(self) -> dict[str, Any]:
        """What boto3 and botocore want to know of it."""
        return {
            "endpoint_url": self.url,
            "region_name": self.region,
            "aws_access_key_id": self.access_key,
            "aws_secret_access_key": self.secret,
        }


def without_settings() -> dict[str, str]:
    """The environment without what it may say to Penstock."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}


def administer(directory: Path, *arguments: str) -> Any:
    """Runs a command of Penstock on the data directory; returns what it printed as JSON."""
    command = [
        sys.executable,
        "-m",
        "penstock.cli.main",
        *arguments,
        "--json",
        "--data",
        str(directory / "data"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, env=without_settings())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def create_user(directory: Path, name: str, *options: str) -> tuple[str, str]:
    """Makes a user, so that from now on signatures count; returns its key and secret."""
    key = administer(directory, "user", "create", name, *options)["access_key"]
    return key["key_id"], key["secret"]


@contextmanager
def served(directory: Path, **settings: str) -> Iterator[str]:
    """Where SQS clients connect, while the server runs; afterwards it must stop as it should."""
    everywhere = ["--listen", "127.0.0.1:0", "--sqs-listen", "127.0.0.1:0", "--monitoring-listen", "off"]
    with running(directory, "serve", *everywhere, settings=settings) as facts:
        yield str(facts["sqs_url"])


@contextmanager
def served_apart(directory: Path) -> Iterator[tuple[str, str]]:
    """Where SQS clients connect to two front ends in processes of their own, before one server."""
    with (
        running(
            directory, "serve", "--listen", "127.0.0.1:0", "--sqs-listen", "off", "--monitoring-listen", "off"
        ) as server,
        running(directory, "frontend", *_before(server)) as one,
        running(directory, "frontend", *_before(server)) as other,
    ):
        yield str(one["sqs_url"]), str(other["sqs_url"])


def _before(server: dict[str, Any]) -> list[str]:
    return ["--backend", f"127.0.0.1:{server['port']}", "--sqs-listen", "127.0.0.1:0"]


@contextmanager
def running(
    directory: Path, role: str, *options: str, exit_code: int = 0, settings: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """What a process of Penstock says once it listens; it runs until the block ends, and must end with the code."""
    command = [sys.executable, "-m", "penstock.cli.main", role, "--json", "--data", str(directory / "data")]
    with tempfile.TemporaryFile(dir=directory) as log:
        process = subprocess.Popen(
            [*command, *options],
            stdout=subprocess.PIPE,
            stderr=log,
            env=without_settings() | SMALL_FILES | dict(settings or {}),
        )
        try:
            yield _ready(process, log)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                code = process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
            finally:
                assert process.stdout is not None
                process.stdout.close()
        assert code == exit_code, _text(log)


def _ready(process: subprocess.Popen[bytes], log: IO[bytes]) -> dict[str, Any]:
    """What the process says once it listens."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if readable else b""
    assert line, f"it did not start: {_text(log)}"
    facts: dict[str, Any] = json.loads(line)
    return facts


def _text(log: IO[bytes]) -> str:
    log.seek(0)
    return log.read().decode(errors="replace")

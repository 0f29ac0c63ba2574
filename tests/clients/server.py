"""A real `penstock serve` process with the SQS interface on, for clients that nobody here wrote."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

START_SECONDS = 60
STOP_SECONDS = 30
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


def create_root(directory: Path) -> tuple[str, str]:
    """Makes a user that may do everything, so that from now on signatures count; returns its key and secret."""
    command = [sys.executable, "-m", "penstock.cli.main", "user", "create", "admin", "--root", "--json"]
    command += ["--data", str(directory / "data")]
    made = subprocess.run(command, capture_output=True, check=True, env=without_settings())
    key = json.loads(made.stdout)["access_key"]
    return key["key_id"], key["secret"]


@contextmanager
def served(directory: Path, **settings: str) -> Iterator[str]:
    """Where SQS clients connect, while the server runs; afterwards it must stop as it should."""
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "penstock.cli.main", "serve", "--json"),
                *("--listen", "127.0.0.1:0", "--sqs-listen", "127.0.0.1:0"),
                *("--data", str(directory / "data")),
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            env=without_settings() | SMALL_FILES | settings,
        )
        try:
            yield str(_ready(process, directory)["sqs_url"])
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
    assert code == 0, (directory / "server.log").read_text()


def _ready(process: subprocess.Popen[bytes], directory: Path) -> dict[str, Any]:
    """What the server says once it listens."""
    assert process.stdout is not None
    readable, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    line = process.stdout.readline() if readable else b""
    assert line, f"the server did not start: {(directory / 'server.log').read_text()}"
    facts: dict[str, Any] = json.loads(line)
    return facts

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
from typing import Any

START_SECONDS = 60
STOP_SECONDS = 30
SMALL_FILES = {
    "PENSTOCK_STORAGE_JOURNAL_FILE_SIZE": "32MiB",
    "PENSTOCK_STORAGE_CHECKPOINT_SIZE": "32MiB",
}


@contextmanager
def served(directory: Path, *options: str) -> Iterator[str]:
    """Where SQS clients connect, while the server runs; afterwards it must stop as it should."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    with (directory / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "penstock.cli.main", "serve", "--json"),
                *("--listen", "127.0.0.1:0", "--sqs-listen", "127.0.0.1:0"),
                *("--data", str(directory / "data")),
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment | SMALL_FILES,
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

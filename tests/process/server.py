"""A `penstock serve` process that can be killed and started again on the same directory and port."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from tests.ports import free_port

START_SECONDS = 300
SMALL_FILES = {
    "PENSTOCK_STORAGE_JOURNAL_FILE_SIZE": "32MiB",
    "PENSTOCK_STORAGE_CHECKPOINT_SIZE": "32MiB",
}
"""So that checkpoints happen between kills, and a start does not fill more of the disk than it must."""


class ServerProcess:
    """The server of one data directory, through all its lives."""

    def __init__(self, directory: Path, *options: str) -> None:
        self.port = free_port()
        self.lives = 0
        self._directory = directory
        self._options = options
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        """Where clients connect, in every life."""
        return f"penstock://127.0.0.1:{self.port}"

    async def start(self) -> dict[str, object]:
        """Starts it and returns what it says once it listens."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        environment |= SMALL_FILES
        listen, data = f"127.0.0.1:{self.port}", str(self._directory)
        self._process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "penstock.cli.main",
                "serve",
                "--json",
                "--listen",
                listen,
                "--sqs-listen",
                "127.0.0.1:0",
                "--monitoring-listen",
                "off",
                "--data",
                data,
            ),
            *self._options,
            stdout=asyncio.subprocess.PIPE,
            env=environment,
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            line = await self._process.stdout.readline()
        assert line, "the server did not start"
        self.lives += 1
        ready: dict[str, object] = json.loads(line)
        return ready

    async def kill(self) -> None:
        """Ends it as a power cut would end the process: no last words."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        await self._process.wait()

    async def stop(self) -> int:
        """Asks it to stop; returns the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return await self._process.wait()

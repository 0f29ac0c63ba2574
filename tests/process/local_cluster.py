"""`penstock cluster up` as a person runs it, and the commands of another terminal."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

from penstock.model.internal_queues import INTERNAL_PREFIX
from tests.process.programs import PENSTOCK, environment, penstock

START_SECONDS = 300
STOP_SECONDS = 120


class ClusterUp:
    """The foreground process; must end well."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self._log = (data.parent / f"{data.name}-up.log").open("ab")
        self._process = subprocess.Popen(
            [*PENSTOCK, "cluster", "up", "--data", str(data), "--json", *options],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment(),
        )
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.facts = self.event("ready", START_SECONDS)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._events.put(json.loads(line))
        self._events.put({"event": "ended"})

    def event(self, kind: str, seconds: float = 60) -> dict[str, Any]:
        """The next event of a kind; others before it are passed over."""
        while True:
            found = self._events.get(timeout=seconds)
            if found["event"] == kind:
                return found
            assert found["event"] != "ended", f"it ended: {self.log()}"

    def log(self) -> str:
        """What it complained about."""
        return Path(self._log.name).read_text()

    def command(self, *arguments: str) -> dict[str, Any]:
        """`penstock cluster ...` in another terminal."""
        return penstock("cluster", *arguments, "--data", str(self.data))

    def status(self) -> dict[str, Any]:
        """What `penstock cluster status` shows."""
        return self.command("status")

    def partition(self) -> dict[str, Any]:
        """The partition of the only queue that a client has made; Penstock has made others for itself."""
        rows: list[dict[str, Any]] = self.status()["partitions"]
        (row,) = [row for row in rows if not row["queue"].startswith(INTERNAL_PREFIX)]
        return row

    def well(self) -> bool:
        """Whether every partition serves with all its replicas in sync."""
        return all(
            row["serving"] and set(row["in_sync"]) == set(row["replicas"])
            for row in self.status()["partitions"]
        )

    def interrupt(self) -> None:
        """Ctrl-C; it must stop everything and end well."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        self.ended()

    def ended(self) -> None:
        """Waits until it has ended, which must be well."""
        assert self._process.wait(STOP_SECONDS) == 0, self.log()
        self._close()

    def kill(self) -> None:
        """At the end of a test: nothing of it may stay."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            subprocess.run(
                [*PENSTOCK, "cluster", "down", "--data", str(self.data)],
                capture_output=True,
                env=environment(),
            )
        self._close()

    def _close(self) -> None:
        self._reader.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()

"""Metadata servers as processes of their own, for tests that kill and pause them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.metadata.remote.store import RemoteStore, open_remote_store
from tests.metadata.metadata_servers import SECRET
from tests.ports import free_port

READY_SECONDS = 300


class MetadataProcesses:
    """Some servers over one etcd."""

    def __init__(self, directory: Path, etcd_url: str, *options: str) -> None:
        self._directory = directory
        self.etcd_url = etcd_url
        self._options = options
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.addresses: dict[str, str] = {}
        self._handles: list[RemoteStore] = []
        (directory / "secret").write_bytes(SECRET + b"\n")

    async def start(self, *names: str) -> None:
        """Returns when each is registered and hears from etcd; a server that was there before keeps its address."""
        for name in names:
            self._spawn(name)
        for name in names:
            facts = await self._ready(name)
            assert facts["store_connected"], self.log(name)
            self.addresses[name] = facts["address"]

    def _spawn(self, name: str) -> None:
        ready = self._directory / f"{name}.ready"
        ready.unlink(missing_ok=True)
        command = [
            *(sys.executable, "-m", "penstock.cli.main", "metadata"),
            *("--name", name, "--etcd", self.etcd_url),
            *("--listen", self.addresses.setdefault(name, f"127.0.0.1:{free_port()}")),
            *("--secret-file", str(self._directory / "secret"), "--ready-file", str(ready)),
            *self._options,
        ]
        with (self._directory / f"{name}.log").open("ab") as log:
            own = {key: value for key, value in os.environ.items() if not key.startswith("PENSTOCK_")}
            self._processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=own)

    async def _ready(self, name: str) -> dict[str, str]:
        ready = self._directory / f"{name}.ready"
        async with asyncio.timeout(READY_SECONDS):
            while not ready.exists():  # a process tells of itself by a file
                assert self._processes[name].poll() is None, self.log(name)
                await asyncio.sleep(0.02)
        facts: dict[str, str] = json.loads(ready.read_text())
        return facts

    def log(self, name: str) -> str:
        return (self._directory / f"{name}.log").read_text()

    def signal(self, name: str, number: signal.Signals) -> None:
        self._processes[name].send_signal(number)
        if number == signal.SIGKILL:
            self._processes[name].wait()

    def stop(self, name: str) -> int:
        """A clean stop; the exit code."""
        self._processes[name].send_signal(signal.SIGTERM)
        return self._processes[name].wait(READY_SECONDS)

    async def open(self, *names: str, options: str = "timeout=10") -> RemoteStore:
        """A handle that was told of these servers and knows them all."""
        addresses = ",".join(self.addresses[name] for name in names or self.addresses)
        handle = await open_remote_store(f"penstock-metadata://{addresses}?{options}", SECRET)
        self._handles.append(handle)
        await handle.mapped.wait()
        return handle

    async def open_to(self, name: str, options: str = "timeout=10") -> RemoteStore:
        """A handle that asks this server first for what belongs to no key."""
        while True:
            handle = await self.open(options=options)
            if handle.servers.addresses(None)[0] == self.addresses[name]:
                return handle

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Closes the handles that were opened within."""
        try:
            yield
        finally:
            for handle in self._handles:
                await handle.close()
            self._handles.clear()

    async def heal(self) -> None:
        """Every server runs again."""
        for process in self._processes.values():
            process.send_signal(signal.SIGCONT)
        await self.start(*(name for name, process in self._processes.items() if process.poll() is not None))

    def end(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()

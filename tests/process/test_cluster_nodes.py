"""Nodes as processes, a real etcd, a front end: the primary is killed with -9 and nothing that was acknowledged is lost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import penstock
from tests.etcd_servers import EtcdServers
from tests.process.server import SMALL_FILES

START_SECONDS = 300
SENDERS = 8


class Program:
    """A process of a cluster that says when it is ready, through all its lives."""

    def __init__(self, *arguments: str) -> None:
        self._arguments = arguments
        self._process: asyncio.subprocess.Process | None = None
        self.ready: dict[str, object] = {}

    async def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "penstock.cli.main",
            *self._arguments,
            "--json",
            stdout=asyncio.subprocess.PIPE,
            env=environment | SMALL_FILES,
        )
        assert self._process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            line = await self._process.stdout.readline()
        assert line, f"{self._arguments} did not start"
        self.ready = json.loads(line)

    async def end(self, how: signal.Signals) -> int:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(how)
        return await self._process.wait()


async def scenario(url: str, place: Path) -> None:
    secret = place / "secret"
    secret.write_text("0123456789abcdef0123456789abcdef")
    shared = ("--cluster", url, "--secret-file", str(secret))
    nodes = {
        name: Program(
            *("node", "run", "--name", name, "--zone", name, *shared, "--data", str(place / name)),
            *("--listen", "127.0.0.1:0", "--peers-listen", "127.0.0.1:0", "--monitoring-listen", "off"),
        )
        for name in ("node-1", "node-2", "node-3")
    }
    front = Program(
        *("frontend", "--name", "front", *shared, "--data", str(place / "front")),
        *("--native-listen", "127.0.0.1:0", "--sqs-listen", "127.0.0.1:0"),
    )
    programs = [*nodes.values(), front]
    try:
        await asyncio.gather(*(program.start() for program in nodes.values()))
        await front.start()
        await kill_the_primary(str(front.ready["native_url"]), nodes)
        assert await nodes["node-3"].end(signal.SIGTERM) == 0
    finally:
        for program in programs:
            await program.end(signal.SIGKILL)


async def kill_the_primary(native_url: str, nodes: dict[str, Program]) -> None:
    acknowledged: list[bytes] = []
    enough = asyncio.Event()
    progress = asyncio.Condition()

    async def another_fifty() -> None:
        goal = len(acknowledged) + 50
        async with asyncio.timeout(START_SECONDS), progress:
            await progress.wait_for(lambda: len(acknowledged) >= goal)

    async with penstock.connect(native_url) as client:
        queue = await client.create_queue("orders", replicas=3)

        async def send(sender: int) -> None:
            for number in range(10_000):
                body = b"%d-%d" % (sender, number)
                await queue.send(body)
                async with progress:
                    acknowledged.append(body)
                    progress.notify_all()
                if enough.is_set():
                    return

        senders = [asyncio.create_task(send(sender)) for sender in range(SENDERS)]
        for name in nodes:  # one after the other; who leads is among them
            await another_fifty()
            await nodes[name].end(signal.SIGKILL)
            await another_fifty()
            await nodes[name].start()
        enough.set()
        await asyncio.gather(*senders)
        found: list[bytes] = []
        async with asyncio.timeout(START_SECONDS):
            while len(found) < len(acknowledged):
                messages = await queue.receive(1_000, wait=1.0)
                found += [bytes(message.body) for message in messages]
                if messages:
                    await messages.delete()
        assert sorted(found) == sorted(acknowledged)


def test_killed_primaries_lose_nothing(etcd: EtcdServers, tmp_path: Path) -> None:
    asyncio.run(scenario(etcd.url(), tmp_path))

"""Measures metadata servers: reads and writes a second, and how long one takes, in each organisation.

    python -m benchmarks.metadata_servers [--seconds 2] [--etcd URL]

Starts an etcd of one member unless one is named, and servers as processes of their own; one client process asks. Not a
part of `penstock bench`: what it measures is no path of a message.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import uvloop

from penstock.metadata.remote.store import RemoteStore, open_remote_store
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import MetadataStore
from penstock.runtime.local_cluster.etcd_cluster import start_etcd

KEYS = 1_000
VALUE = bytes(300)
AT_ONCE = 64
ORGANISATIONS = ("replicated", "sharded-direct", "sharded-forwarding")
Ask = Callable[[str], Awaitable[object]]


class Rate(NamedTuple):
    """How many were answered in how long, and what that cost the servers."""

    answers: int
    seconds: float
    server_seconds: float


def processor_seconds(processes: list[subprocess.Popen[bytes]]) -> float:
    """What processes have used so far: unlike a rate it says the same on a busy machine."""
    used = 0
    for process in processes:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        used += int(fields[11]) + int(fields[12])
    return used / os.sysconf("SC_CLK_TCK")


async def rate(ask: Ask, seconds: float, processes: list[subprocess.Popen[bytes]]) -> Rate:
    """So many questions are under way at once."""
    done = 0
    ends = time.perf_counter() + seconds

    async def go_on(first: int) -> None:
        nonlocal done
        number = first
        while time.perf_counter() < ends:
            await ask(f"bench/{number % KEYS}")
            number += AT_ONCE
            done += 1

    began, used = time.perf_counter(), processor_seconds(processes)
    await asyncio.gather(*(go_on(number) for number in range(AT_ONCE)))
    return Rate(done, time.perf_counter() - began, processor_seconds(processes) - used)


async def latency(ask: Ask, seconds: float) -> tuple[float, float]:
    """The median and the 99th percentile in milliseconds, one question at a time."""
    taken: list[float] = []
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began = time.perf_counter()
        await ask(f"bench/{len(taken) % KEYS}")
        taken.append(time.perf_counter() - began)
    taken.sort()
    return taken[len(taken) // 2] * 1e3, taken[len(taken) * 99 // 100] * 1e3


async def measure(
    name: str, kinds: dict[str, Ask], seconds: float, processes: list[subprocess.Popen[bytes]]
) -> None:
    """Prints one line for each kind of question."""
    for kind, ask in kinds.items():
        measured = await rate(ask, seconds, processes)
        median, slow = await latency(ask, seconds / 2)
        cost = (
            f"{measured.server_seconds / measured.answers * 1e6:5.0f} us of the servers" if processes else ""
        )
        print(
            f"{name:<34} {kind:<11} {measured.answers / measured.seconds:>7,.0f}/s "
            f"  p50 {median:7.3f} ms   p99 {slow:7.3f} ms   {cost}",
            flush=True,
        )


async def start_servers(
    directory: Path, etcd: str, organisation: str, count: int
) -> tuple[list[subprocess.Popen[bytes]], str]:
    """Processes, and the URL of all."""
    secret = directory / "secret"
    secret.write_bytes(os.urandom(32).hex().encode())
    ready = [directory / f"{number}.ready" for number in range(count)]
    processes = [_start_server(number, etcd, organisation, secret, file) for number, file in enumerate(ready)]
    while not all(file.exists() for file in ready):  # noqa: ASYNC110  # a process tells of itself by a file
        await asyncio.sleep(0.05)
    addresses = ",".join(json.loads(file.read_text())["address"] for file in ready)
    return processes, f"penstock-metadata://{addresses}?secret_file={secret}"


def _start_server(
    number: int, etcd: str, organisation: str, secret: Path, ready: Path
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "penstock.cli.main", "metadata", "--name", f"m{number}", "--etcd", etcd]
    command += ["--listen", "127.0.0.1:0", "--secret-file", str(secret), "--ready-file", str(ready)]
    command += ["--organisation", organisation, "--copies", "1", "--log-level", "warning"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


async def fill(store: MetadataStore) -> None:
    """The entries that are asked for."""
    for first in range(0, KEYS, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, KEYS))
        await asyncio.gather(*(store.put(f"bench/{number}", VALUE) for number in numbers))


async def settled(store: RemoteStore, count: int) -> None:
    """Returns when the client knows all servers and each server has what it is asked for."""
    while len(store.servers.organisation.servers) < count:  # noqa: ASYNC110  # it is asked again until it is so
        await asyncio.sleep(0.05)
    for number in range(KEYS):
        await store.look_up(f"bench/{number}")


async def run(etcd: str, seconds: float) -> None:
    """All organisations with one, two and three servers, and etcd itself beside them."""
    straight = await open_etcd_store(etcd)
    await fill(straight)
    kinds: dict[str, Ask] = {"read": straight.get, "write": lambda key: straight.put(key, VALUE)}
    await measure("etcd itself", kinds, seconds, [])
    await straight.close()
    for organisation in ORGANISATIONS:
        for count in (1, 2, 3):
            with tempfile.TemporaryDirectory() as place:
                processes, url = await start_servers(Path(place), etcd, organisation, count)
                handles: list[RemoteStore] = []
                try:
                    handles = [await open_remote_store(url) for _ in range(8)]
                    for handle in handles:
                        await settled(handle, count)
                    await measure(
                        f"{organisation}, {count} server{'s' * (count > 1)}",
                        _questions(handles),
                        seconds,
                        processes,
                    )
                finally:
                    for handle in handles:
                        await handle.close()
                    for process in processes:
                        process.terminate()
                    for process in processes:
                        process.wait()


def _questions(handles: list[RemoteStore]) -> dict[str, Ask]:
    """Each spreads over several handles, as over several front ends."""
    turn = 0

    def next_handle() -> RemoteStore:
        nonlocal turn
        turn += 1
        return handles[turn % len(handles)]

    return {
        "look up": lambda key: next_handle().look_up(key),
        "fresh read": lambda key: next_handle().get(key),
        "write": lambda key: next_handle().put(key, VALUE),
    }


async def _main(seconds: float, etcd: str | None) -> None:
    if etcd is not None:
        await run(etcd, seconds)
        return
    with tempfile.TemporaryDirectory() as place:
        cluster = await start_etcd(Path(place), 1)
        try:
            await run(cluster.url, seconds)
        finally:
            cluster.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure metadata servers.")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each figure is measured")
    parser.add_argument("--etcd", help="the URL of an etcd; otherwise one is started")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main(options.seconds, options.etcd))

"""Reading a retained log that is on disk only: messages a second, what they cost, and the disk's own rate beside them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cold_files import cached_share, drop_from_cache, read_rate
from benchmarks.figures import Figure, figure
from benchmarks.processes import BenchError
from benchmarks.sections.throughput import BATCH_MESSAGES, IN_FLIGHT, Column, size_name
from benchmarks.stage import Stage
from benchmarks.tasks import Publish, ReadLog

QUEUE = "log"
LOG_BYTES = 512 * 1024 * 1024
QUICK_LOG_BYTES = 96 * 1024 * 1024
MESSAGES_AT_MOST = 4_000_000
WARM_SHARE = 0.02
"""More than this of the files in memory, and the log is not cold."""
COOLING_ATTEMPTS = 20
COOLING_PAUSE_SECONDS = 0.5
READ_SECONDS = 300.0


def measure(stage: Stage) -> Iterator[Figure]:
    """For each message size."""
    for size_bytes in stage.options.sizes:
        yield from _measure(stage, size_bytes)


def _measure(stage: Stage, size_bytes: int) -> Iterator[Figure]:
    """Writes a log once; each round reads it with a server that has just been started and files out of memory."""
    title = f"{size_name(size_bytes)} messages"
    home = stage.directory / f"log-{size_bytes}"
    log_bytes = QUICK_LOG_BYTES if stage.options.quick else LOG_BYTES
    messages = min(MESSAGES_AT_MOST, log_bytes // size_bytes)
    messages -= messages % (BATCH_MESSAGES * IN_FLIGHT)
    stage.progress(f"{title}: writes a log of {messages:,}")
    _write(stage, home, size_bytes, messages)
    slices, bodies = Column(), Column()
    disk: list[float] = []
    for number in range(stage.options.rounds):
        stage.progress(f"{title}: reads the log, round {number + 1}")
        _read(stage, home, messages, slices, cut=False)
        _read(stage, home, messages, bodies, cut=True)
        drop_from_cache(home)
        disk.append(read_rate(home, messages * size_bytes))
    note = f"{messages:,} messages, one reader; server started anew, files out of memory"
    yield from slices.figures(f"log.{size_bytes}", f"read a cold log, {title}", note)
    yield from bodies.figures(
        f"log.{size_bytes}.bodies", f"read a cold log, {title}, bodies", "every body cut out by the client"
    )
    rates = [rate * size_bytes / 1e6 for rate in slices.rates]
    yield figure(f"log.{size_bytes}.bytes", "  bodies of the log", "MB/s", rates)
    yield figure(
        f"log.{size_bytes}.disk", "  the disk by itself", "MB/s", disk, "plain reads of the same files"
    )


def _write(stage: Stage, home: Path, size_bytes: int, messages: int) -> None:
    with stage.server(home=home) as server:
        server.client.create_queue(QUEUE, consumption="log")
        task = Publish(
            url=server.url,
            queue=QUEUE,
            messages=messages,
            size_bytes=size_bytes,
            batch_messages=BATCH_MESSAGES,
            in_flight=IN_FLIGHT,
        )
        stage.loads[0].run(task, READ_SECONDS)


def _read(stage: Stage, home: Path, messages: int, column: Column, *, cut: bool) -> None:
    before_start = time.time()
    with stage.server(home=home) as server:
        _cool(home, before_start)  # only now: a server that starts reads its journal
        before = server.cpu_seconds()
        task = ReadLog(url=server.url, queue=QUEUE, messages=messages, bodies=cut)
        outcome = stage.loads[0].run(task, READ_SECONDS)
        if outcome.messages != messages:
            raise BenchError(f"{outcome.messages} messages were read where {messages} had been written")
        column.add(outcome.seconds, server.cpu_seconds() - before, outcome)


def _cool(home: Path, before_start: float) -> None:
    """Returns when the log is on disk only; a server that has just started may still tidy up its journal."""
    for _ in range(COOLING_ATTEMPTS):
        drop_from_cache(home)
        warm = cached_share(home, before_start)
        if warm <= WARM_SHARE:
            return
        time.sleep(COOLING_PAUSE_SECONDS)
    raise BenchError(f"{warm:.0%} of the log is still in memory: it cannot be measured cold")

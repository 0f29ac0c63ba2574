"""Memory: what a waiting message costs the engine, and the process, once it lies in a segment."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.figures import Figure, figure
from benchmarks.processes import BenchError
from benchmarks.sections.throughput import BATCH_MESSAGES, CREDIT, IN_FLIGHT
from benchmarks.stage import Server, Stage
from benchmarks.tasks import Publish, Receive

MESSAGES = 1_000_000
SIZE_BYTES = 100
_WARM_UP_MESSAGES = 10_000
_FILLER_BYTES = 16 * 1024
_FILLER_MESSAGES = 2_000
_MOVE_SECONDS = 60.0


def measure(stage: Stage) -> Iterator[Figure]:
    """One million messages wait; other traffic goes on until the journal has handed them to segments."""
    with stage.server() as server:
        for queue in ("warm-up", "waiting", "filler"):
            server.client.create_queue(queue)
        _publish(stage, server, "warm-up", _WARM_UP_MESSAGES, SIZE_BYTES)
        _drain(stage, server, "warm-up", _WARM_UP_MESSAGES)
        before = server.resident_bytes()
        stage.progress("one million messages wait")
        _publish(stage, server, "waiting", MESSAGES, SIZE_BYTES)
        _move_out_of_journal(stage, server)
        statistics = server.statistics("waiting")
        grown = server.resident_bytes() - before
    title = f"{MESSAGES:,} × {SIZE_BYTES} B waiting"
    yield figure(
        "memory.engine",
        f"engine memory a message, {title}",
        "B",
        [statistics.memory_bytes / MESSAGES],
        "its columns",
    )
    yield figure(
        "memory.resident",
        f"growth of resident memory, {title}",
        "MB",
        [grown / 1e6],
        "against the idle server; all moved to segments",
    )


def _move_out_of_journal(stage: Stage, server: Server) -> None:
    """Sends and deletes other messages until a checkpoint has moved what waits."""
    deadline = time.monotonic() + _MOVE_SECONDS
    while server.statistics("waiting").segment_bytes < MESSAGES * SIZE_BYTES:
        if time.monotonic() > deadline:
            raise BenchError(f"the messages were not moved to segments within {_MOVE_SECONDS:.0f} s")
        stage.progress("until the waiting messages lie in segments")
        _publish(stage, server, "filler", _FILLER_MESSAGES, _FILLER_BYTES)
        _drain(stage, server, "filler", _FILLER_MESSAGES)


def _publish(stage: Stage, server: Server, queue: str, messages: int, size_bytes: int) -> None:
    stage.loads[0].run(
        Publish(
            url=server.url,
            queue=queue,
            messages=messages,
            size_bytes=size_bytes,
            batch_messages=BATCH_MESSAGES,
            in_flight=IN_FLIGHT if size_bytes <= 1024 else 2,
        )
    )


def _drain(stage: Stage, server: Server, queue: str, messages: int) -> None:
    stage.loads[0].run(
        Receive(url=server.url, queue=queue, messages=messages, batch_messages=BATCH_MESSAGES, credit=CREDIT)
    )

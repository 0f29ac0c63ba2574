"""Receiving from deep queues: the same few messages, taken from a small backlog and from a huge one."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, figure
from benchmarks.sections.throughput import IN_FLIGHT
from benchmarks.stage import Server, Stage
from benchmarks.targets import BACKLOG_MESSAGES
from benchmarks.tasks import Publish, ReceiveRounds

SIZE_BYTES = 100
BATCH_MESSAGES = 100
ROUND_MESSAGES = 1_000
_FILL_PORTION = 1_000_000


def measure(stage: Stage) -> Iterator[Figure]:
    """Backlogs take turns, so that a slow moment of the machine hits all of them."""
    backlogs = stage.options.backlog_sizes
    rates: dict[int, list[float]] = {backlog: [] for backlog in backlogs}
    with stage.server() as server:
        for backlog in backlogs:
            server.client.create_queue(_queue(backlog))
            fills = _fill(stage, server, backlog)
        for number in range(2 * stage.options.rounds):
            for backlog in backlogs:
                stage.progress(f"receive with {backlog:,} waiting, round {number + 1}")
                rates[backlog].append(_receive(stage, server, backlog))
        largest = backlogs[-1]
        memory_bytes = server.statistics(_queue(largest)).memory_bytes
        resident_bytes = server.resident_bytes()
    yield figure(
        "backlog.fill.rate",
        f"publish {largest:,} and receive none",
        "msg/s",
        fills,
        "rounds of a million; all of it is moved to segments on the way",
    )
    for backlog in backlogs:
        yield figure(
            f"backlog.{backlog}.rate",
            f"receive + delete, {backlog:,} waiting",
            "msg/s",
            rates[backlog],
            f"{ROUND_MESSAGES:,} at a time by {BATCH_MESSAGES}, until the last delete is answered",
        )
    smallest = backlogs[0]
    ratios = [many / few for many, few in zip(rates[largest], rates[smallest], strict=True)]
    # The target speaks of ten million; a smaller run shows a ratio, but cannot answer it.
    name = "backlog.ratio" if largest >= BACKLOG_MESSAGES else "backlog.ratio-small"
    yield figure(
        name, f"rate with {largest:,} / with {smallest:,}", "×", ratios, "of rounds next to each other"
    )
    yield figure(
        "backlog.engine", f"engine memory a message, {largest:,} waiting", "B", [memory_bytes / largest]
    )
    yield figure("backlog.resident", f"resident memory, {largest:,} waiting", "MB", [resident_bytes / 1e6])


def _queue(backlog: int) -> str:
    return f"backlog-{backlog}"


def _fill(stage: Stage, server: Server, backlog: int) -> list[float]:
    """Sends so many messages; returns the rates of its portions."""
    filled = 0
    rates: list[float] = []
    while filled < backlog:
        stage.progress(f"filling a queue with {backlog:,} messages: {filled:,}")
        portion = min(_FILL_PORTION, backlog - filled)
        task = Publish(
            url=server.url,
            queue=_queue(backlog),
            messages=portion,
            size_bytes=SIZE_BYTES,
            batch_messages=BATCH_MESSAGES,
            in_flight=IN_FLIGHT,
        )
        outcome = stage.loads[0].run(task)
        filled += outcome.messages
        rates.append(outcome.messages / outcome.seconds)
    return rates


def _receive(stage: Stage, server: Server, backlog: int) -> float:
    task = ReceiveRounds(
        url=server.url,
        queue=_queue(backlog),
        rounds=20 if stage.options.quick else 50,
        messages=ROUND_MESSAGES,
        size_bytes=SIZE_BYTES,
        batch_messages=BATCH_MESSAGES,
    )
    outcome = stage.loads[0].run(task)
    return outcome.messages / outcome.timed_seconds

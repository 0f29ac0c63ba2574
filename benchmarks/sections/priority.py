"""Priority groups under load: whether the service follows the weights, and how long the lowest has to wait."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, figure
from benchmarks.sections.throughput import IN_FLIGHT
from benchmarks.stage import Server, Stage
from benchmarks.tasks import Outcome, Publish, ReceiveGroup

WEIGHTS = {"priority-high": 16, "priority-middle": 4, "priority-low": 1}
SIZE_BYTES = 100
BATCHES = (1, 10, 100)
_RECEIVERS = 8


def measure(stage: Stage) -> Iterator[Figure]:
    """All queues have a backlog all the time; many receive at once, a few messages at a time or many."""
    messages = 10_000 if stage.options.quick else 40_000
    with stage.server() as server:
        for name in WEIGHTS:
            server.client.create_queue(name)
        for batch_messages in BATCHES:
            rounds = [
                _round(
                    stage,
                    server,
                    max(2_000, messages if batch_messages > 1 else messages // 10),
                    batch_messages,
                )
                for _ in range(stage.options.rounds)
            ]
            yield from _figures(batch_messages, rounds)


def _round(stage: Stage, server: Server, messages: int, batch_messages: int) -> Outcome:
    for name in WEIGHTS:  # what the round before has left is more than the lower ones can have been short of
        stage.progress(f"filling {name}")
        stage.loads[0].run(
            Publish(
                url=server.url,
                queue=name,
                messages=messages,
                size_bytes=SIZE_BYTES,
                batch_messages=100,
                in_flight=IN_FLIGHT,
            )
        )
    stage.progress(f"receiving {messages:,} messages of three queues, {batch_messages} at a time")
    return stage.loads[0].run(
        ReceiveGroup(
            url=server.url,
            weights=WEIGHTS,
            messages=messages,
            batch_messages=batch_messages,
            in_flight=_RECEIVERS,
        )
    )


def _figures(batch_messages: int, rounds: list[Outcome]) -> Iterator[Figure]:
    weights = ":".join(map(str, WEIGHTS.values()))
    name, title = f"priority.{batch_messages}", f"weights {weights}, {batch_messages} at a time"
    yield figure(
        f"{name}.rate",
        f"receive + delete, {title}",
        "msg/s",
        [outcome.messages / outcome.seconds for outcome in rounds],
        f"{_RECEIVERS} requests on their way at once",
    )
    yield figure(
        f"{name}.error",
        f"share off its weight, {title}",
        "%",
        [_worst_error(outcome) for outcome in rounds],
        "the queue that is furthest off, of its own share",
    )
    yield figure(
        f"{name}.gap",
        f"messages between two of the lowest, {title}",
        "msg",
        [float(outcome.longest_gap) for outcome in rounds],
        f"the longest; a round has {sum(WEIGHTS.values())}",
    )


def _worst_error(outcome: Outcome) -> float:
    total = sum(WEIGHTS.values())
    return max(
        abs(outcome.served.get(name, 0) / outcome.messages / (weight / total) - 1) * 100
        for name, weight in WEIGHTS.items()
    )

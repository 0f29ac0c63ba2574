"""End to end: from sending to the consumer's hands, at a fixed rate that leaves room."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, latency_figures
from benchmarks.stage import Stage
from benchmarks.tasks import SendPaced, Watch

RATE = 1_000
SIZE_BYTES = 1024


def measure(stage: Stage) -> Iterator[Figure]:
    """One producer, one consumer, two processes."""
    messages = RATE * (1 if stage.options.quick else 3)
    producer, consumer = stage.loads
    latencies = []
    with stage.server() as server:
        server.client.create_queue("end-to-end")
        for number in range(stage.options.rounds):
            stage.progress(f"end to end at {RATE:,}/s, round {number + 1}")
            consumer.start(Watch(url=server.url, queue="end-to-end", messages=messages))
            consumer.ready()
            producer.run(
                SendPaced(
                    url=server.url, queue="end-to-end", messages=messages, size_bytes=SIZE_BYTES, rate=RATE
                )
            )
            outcome = consumer.finish()
            latencies.append(outcome.measured)
    yield from latency_figures(
        "end-to-end", f"end to end, 1 KiB at {RATE:,}/s", latencies, "send → consumer has it, both on disk"
    )

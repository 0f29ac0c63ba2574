"""One message at a time: the latency of a lone send beside the disk and the network it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.disk_probe import append_and_sync
from benchmarks.echo import echo_round_trips
from benchmarks.figures import Figure, figure, latency_figures
from benchmarks.stage import Stage
from benchmarks.tasks import SendSingly

SIZE_BYTES = 1024


def measure(stage: Stage) -> Iterator[Figure]:
    """Disk, network and sends take turns, so that a slow moment of the machine hits all three."""
    options = stage.options
    messages = 500 if options.quick else 2_000
    latencies, floors, ratios = [], [], []
    with stage.server() as server:
        server.client.create_queue("single")
        task = SendSingly(url=server.url, queue="single", messages=messages, size_bytes=SIZE_BYTES)
        stage.loads[0].run(task)
        for number in range(2 * options.rounds):
            stage.progress(f"one message at a time, round {number + 1}")
            disk = append_and_sync(stage.directory, messages // 4)
            network = echo_round_trips(messages)
            outcome = stage.loads[0].run(task)
            latencies.append(outcome.measured)
            floors.append(disk.p50_us + network.p50_us)
            ratios.append(outcome.measured.p50_us / floors[-1])
    yield from latency_figures(
        "single", "send, 1 KiB, one at a time", latencies, "from asking to acknowledged"
    )
    yield figure("single.floor", "append + fdatasync p50 + echo p50", "µs", floors, "in turns with the sends")
    yield figure("single.ratio", "send p50 / (fdatasync p50 + echo p50)", "×", ratios)

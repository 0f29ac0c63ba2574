"""How fast Spark reads logs and writes to queues: messages of 1 KiB, rows of usage, and the memory it takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.figures import Figure, figure
from benchmarks.processes import BenchError
from benchmarks.sections.throughput import BATCH_MESSAGES, IN_FLIGHT
from benchmarks.spark.session import CORES, DRIVER_MEMORY, SparkBench, spark_bench
from benchmarks.stage import Server, Stage
from benchmarks.tasks import Publish
from penstock.columnar.arrow import arrow_stream
from penstock.columnar.usage import USAGE

MESSAGES, QUICK_MESSAGES = 1_500_000, 200_000
MESSAGE_BYTES = 1_024
USAGE_ROWS, QUICK_USAGE_ROWS = 5_000_000, 1_000_000
ROWS_PER_MESSAGE = 4_000
WRITTEN, QUICK_WRITTEN = 200_000, 40_000
WRITE_SECONDS = 600.0
_MEBIBYTE = 1024 * 1024


def measure(stage: Stage) -> Iterator[Figure]:
    """One server, one session; each round reads everything."""
    quick = stage.options.quick
    messages = QUICK_MESSAGES if quick else MESSAGES
    rows = QUICK_USAGE_ROWS if quick else USAGE_ROWS
    with stage.server() as server:
        stage.progress(f"writes a log of {messages:,} messages and one of {rows:,} rows")
        _write_messages(stage, server, messages)
        _write_usage(server, rows)
        stage.progress("starts Spark")
        with spark_bench(stage.directory) as spark:
            yield from _read(stage, server, spark, messages, rows)
            yield from _sink(stage, server, spark, QUICK_WRITTEN if quick else WRITTEN)
            note = f"local[{CORES}], driver memory {DRIVER_MEMORY}: driver and executor are one process"
            yield figure("spark.memory.java", "Spark's Java", "MiB", [spark.driver_bytes() / _MEBIBYTE], note)
            note = "all of them together, shared pages counted in each"
            python = [spark.worker_bytes() / _MEBIBYTE]
            yield figure("spark.memory.python", "Spark's Python workers", "MiB", python, note)


@dataclass
class _Rounds:
    """What the rounds of one kind of reading gave."""

    rates: list[float] = field(default_factory=list)
    server_cpu: list[float] = field(default_factory=list)
    java_cpu: list[float] = field(default_factory=list)
    python_cpu: list[float] = field(default_factory=list)

    def run(self, server: Server, spark: SparkBench, count: int, queue: str, **options: str) -> None:
        """Reads everything once more."""
        before = server.cpu_seconds(), spark.java_cpu_seconds(), spark.worker_cpu_seconds()
        self.rates.append(count / spark.drain(spark.read(server.url, queue, **options)))
        self.server_cpu.append((server.cpu_seconds() - before[0]) / count * 1e6)
        self.java_cpu.append((spark.java_cpu_seconds() - before[1]) / count * 1e6)
        self.python_cpu.append((spark.worker_cpu_seconds() - before[2]) / count * 1e6)

    def figures(self, name: str, title: str, unit: str, note: str) -> Iterator[Figure]:
        """The rate, and what it costs the three of them."""
        yield figure(f"{name}.rate", title, unit, self.rates, note)
        yield figure(f"{name}.server-cpu", "  server CPU", "s/M", self.server_cpu)
        yield figure(f"{name}.java-cpu", "  Java's CPU", "s/M", self.java_cpu)
        yield figure(f"{name}.python-cpu", "  Python workers' CPU", "s/M", self.python_cpu)


def _read(stage: Stage, server: Server, spark: SparkBench, messages: int, rows: int) -> Iterator[Figure]:
    stage.progress("reads for the first time")
    cold = messages / spark.drain(spark.read(server.url, "messages"))
    found = spark.read(server.url, "messages").count(), spark.read(server.url, "usage", rows="usage").count()
    if found != (messages, rows):
        raise BenchError(f"Spark read {found} messages and rows, and {(messages, rows)} were written")
    plain, usage = _Rounds(), _Rounds()
    for number in range(stage.options.rounds):
        stage.progress(f"reads, round {number + 1}")
        plain.run(server, spark, messages, "messages")
        usage.run(server, spark, rows, "usage", rows="usage")
    note = f"{messages:,} messages, every column, planning included; server, Java and Python on {CORES} cores"
    yield from plain.figures("spark.read.1024", "Spark reads a log, 1 KiB messages", "msg/s", note)
    note = "the first read of the session: Java has compiled nothing yet, Python workers start"
    yield figure("spark.read.1024.first", "  the same for the first time", "msg/s", [cold], note)
    note = f"{rows:,} rows, {ROWS_PER_MESSAGE:,} a message"
    yield from usage.figures("spark.read.usage", "Spark reads usage", "rows/s", note)


def _sink(stage: Stage, server: Server, spark: SparkBench, messages: int) -> Iterator[Figure]:
    frame = spark.session.range(messages, numPartitions=CORES).selectExpr(
        f"cast(rpad(id, {MESSAGE_BYTES}, 'x') as binary) body"
    )
    for name, title, option in (
        ("once", "Spark writes, 1 KiB messages, exactly once", "true"),
        ("plain", "Spark writes, 1 KiB messages, at least once", "false"),
    ):
        rates = []
        for number in range(stage.options.rounds):
            stage.progress(f"{title}, round {number + 1}")
            queue = f"written-{name}-{number}"
            server.client.create_queue(queue, consumption="log")
            began = time.monotonic()
            endpoint = server.url.removeprefix("penstock://")
            writer = frame.write.format("penstock").options(
                endpoint=endpoint, queue=queue, exactlyOnce=option
            )
            writer.mode("append").save()
            rates.append(messages / (time.monotonic() - began))
            bounds = server.client.queue(queue).log().bounds()
            if bounds.end - bounds.begin != messages:
                raise BenchError(f"{bounds.end - bounds.begin} messages were stored of {messages}")
            server.client.delete_queue(queue)
        yield figure(f"spark.write.1024.{name}", title, "msg/s", rates)


def _write_messages(stage: Stage, server: Server, messages: int) -> None:
    server.client.create_queue("messages", consumption="log")
    task = Publish(
        url=server.url,
        queue="messages",
        messages=messages,
        size_bytes=MESSAGE_BYTES,
        batch_messages=BATCH_MESSAGES,
        in_flight=IN_FLIGHT,
    )
    stage.loads[0].run(task, WRITE_SECONDS)


def _write_usage(server: Server, rows: int) -> None:
    queue = server.client.create_queue("usage", consumption="log")
    with queue.producer() as producer:
        for first in range(0, rows, ROWS_PER_MESSAGE):
            producer.send_many([usage_body(first, min(ROWS_PER_MESSAGE, rows - first))])


def usage_body(first: int, count: int) -> bytes:
    """Rows as a front end writes them."""
    numbers = list(range(first, first + count))
    columns: dict[str, list[int] | list[str]] = {
        "time": [1_790_000_000_000_000 + 250 * number for number in numbers],
        "front_end": ["frontend-1"] * count,
        "number": numbers,
        "account": ["000000000000"] * count,
        "user": [f"user-{number % 20}" for number in numbers],
        "address": ["10.0.0.7"] * count,
        "action": ["SendMessage" if number % 3 else "ReceiveMessage" for number in numbers],
        "queue": [f"arn:aws:sqs:penstock:000000000000:orders-{number % 50}" for number in numbers],
        "messages": [1 + number % 10 for number in numbers],
        "bytes_in": [number % 2_000 for number in numbers],
        "bytes_out": [200] * count,
        "outcome": ["ok" if number % 100 else "Throttled" for number in numbers],
        "status": [200] * count,
        "latency_us": [300 + number % 5_000 for number in numbers],
        "request_id": [f"{number:032x}" for number in numbers],
    }
    return arrow_stream(USAGE, [columns[name] for name in USAGE.names])

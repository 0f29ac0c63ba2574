"""A job that follows the log: how soon rows are in its table, what it costs the broker beside it, and its memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import penstock
from benchmarks.figures import Figure, figure, percentile
from benchmarks.sections.throughput import Column, Load
from benchmarks.spark.following import INTERVAL, Following, following
from benchmarks.spark.source import usage_body
from benchmarks.stage import Server, Stage

QUEUE = "rows"
SENDS, QUICK_SENDS = 600, 150
SENDS_A_SECOND = 10
START_SECONDS = 300.0
WAIT_SECONDS = 120.0
SIZE_BYTES = 1_024
FED_ROWS = 1_000
FED_SECONDS = 0.5
ROUND_LENGTH, QUICK_ROUND_LENGTH = 6, 3
"""A round has to be longer than the interval, so that each has as many batches in it as the others."""
SETTLE_SECONDS = 4.0
"""What came while it stood still is done before a round beside it begins."""
_MEBIBYTE = 1024 * 1024


def measure(stage: Stage) -> Iterator[Figure]:
    """One server and one run of the job for all of it."""
    with stage.server() as server:
        log = server.client.create_queue(QUEUE, consumption="log")
        log.send(usage_body(0, 1))
        stage.progress("starts Spark")
        with following(stage, server, QUEUE) as job:
            job.wait_for(range(1), START_SECONDS)
            sends = QUICK_SENDS if stage.options.quick else SENDS
            yield from _latency(stage, log, job, sends)
            yield from _cost(stage, server, job, 1 + sends)
            note = f"following with --interval {INTERVAL}; driver and executor are one process"
            memory = {kind: [peak / _MEBIBYTE] for kind, peak in job.memory().items()}
            yield figure("spark.follow.memory.driver", "the driver's Python", "MiB", memory["driver"])
            yield figure("spark.follow.memory.java", "its Java", "MiB", memory["java"], note)
            shared = "all of them together, shared pages counted in each"
            yield figure(
                "spark.follow.memory.workers", "its Python workers", "MiB", memory["workers"], shared
            )


def _latency(stage: Stage, log: penstock.BlockingQueue, job: Following, sends: int) -> Iterator[Figure]:
    stage.progress(f"rows one at a time, {sends} of them")
    acknowledged: dict[int, float] = {}
    begun = time.monotonic()
    for number in range(1, 1 + sends):
        log.send(usage_body(number, 1))
        acknowledged[number] = time.monotonic()
        while time.monotonic() < begun + number / SENDS_A_SECOND:
            job.look()
            time.sleep(0.02)
    job.wait_for(range(1, 1 + sends), WAIT_SECONDS)
    waits = sorted(job.seen[number] - moment for number, moment in acknowledged.items())
    note = f"{sends} rows, {SENDS_A_SECOND} a second, --interval {INTERVAL}"
    title = "acknowledged send → row in the table"
    yield figure("spark.follow.latency.p50", f"{title}, p50", "s", [percentile(waits, 0.5)], note)
    yield figure("spark.follow.latency.p95", f"{title}, p95", "s", [percentile(waits, 0.95)])


def _cost(stage: Stage, server: Server, job: Following, first: int) -> Iterator[Figure]:
    """By turns with the job standing still, so that what the machine does otherwise hits both alike.

    Now the one comes first and now the other, so that a machine which gets slower or quicker favours neither.
    """
    server.client.create_queue("throughput", visibility_timeout=600)
    load = Load(stage, server, "throughput", SIZE_BYTES, 0)
    length = QUICK_ROUND_LENGTH if stage.options.quick else ROUND_LENGTH
    messages = length * load.calibrate()
    alone, beside = Column(), Column()
    costs, shares = [], dict[str, list[float]]()
    with _fed(server.url, first):
        for number in range(stage.options.rounds + 1):
            stage.progress(f"in and out beside it and without it, round {number + 1}")
            for held in (True, False) if number % 2 == 0 else (False, True):
                if held:
                    job.hold()
                    load.both(messages, alone)
                    job.go_on()
                    continue
                time.sleep(SETTLE_SECONDS)
                before, began = job.cpu_seconds(), time.monotonic()
                load.both(messages, beside)
                passed = time.monotonic() - began
                for kind, used in job.cpu_seconds().items():
                    shares.setdefault(kind, []).append(100 * (used - before[kind]) / passed)
            costs.append(100 * (1 - beside.rates[-1] / alone.rates[-1]))
    flow = f"{FED_ROWS / FED_SECONDS:,.0f} rows a second come in, --interval {INTERVAL}"
    yield from beside.figures("spark.follow.both", "both at once, 1 KiB, beside the pipeline", flow)
    yield from alone.figures("spark.follow.alone", "  the same without it", "by turns with these")
    yield figure("spark.follow.cost", "what the pipeline costs the broker's throughput", "%", costs)
    totals = [sum(one) for one in zip(*shares.values(), strict=True)]
    nice = f"at nice {job.niceness()}; broker and clients at {os.getpriority(os.PRIO_PROCESS, 0)}"
    yield figure("spark.follow.cpu", "  the pipeline's CPU meanwhile", "% of a core", totals, nice)
    yield figure("spark.follow.cpu.java", "  of that Java's", "% of a core", shares["java"])


@contextmanager
def _fed(url: str, first: int) -> Iterator[None]:
    """Rows come in all the while, as front ends send them."""
    stopped = Event()

    def feed() -> None:
        number = first
        with penstock.connect_blocking(url) as client:
            log = client.queue(QUEUE)
            while not stopped.wait(FED_SECONDS):
                log.send(usage_body(number, FED_ROWS))
                number += FED_ROWS

    thread = Thread(target=feed, name="rows that come in")
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()

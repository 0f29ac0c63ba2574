"""Rates, latency and cost of a cluster: three replicas, synchronous, on three disks before the acknowledgement."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import penstock
from penstock.bench.cluster.stage import NODES, ClusterServer, running_cluster
from penstock.bench.figures import Figure, figure, latency_figures
from penstock.bench.sections.throughput import BATCH_MESSAGES, IN_FLIGHT, Column, Load
from penstock.bench.stage import Stage
from penstock.bench.tasks import SendSingly

SIZE_BYTES = 1024
MIN_IN_SYNC = 2
CREATES_AT_ONCE = 32


def throughput(stage: Stage) -> Iterator[Figure]:
    """In, and out with deletes, on one queue of one partition."""
    with running_cluster(stage) as server:
        server.client.create_queue(
            "throughput", replicas=NODES, replication="sync", min_in_sync=MIN_IN_SYNC, visibility_timeout=600
        )
        load = Load(stage, server, "throughput", SIZE_BYTES, 0)
        messages = load.calibrate()
        publish, receive = Column(), Column()
        front_end = 0.0
        for number in range(stage.options.rounds):
            stage.progress(f"three replicas: in and out, round {number + 1}")
            before = server.front_ends.cpu_seconds()
            load.publish(messages, publish)
            front_end += server.front_ends.cpu_seconds() - before
            load.receive(messages, receive)
        flight = (
            f"on {NODES} disks before it is acknowledged; batches of {BATCH_MESSAGES}, {IN_FLIGHT} in flight"
        )
        yield from publish.figures("cluster.publish", "publish, 1 KiB, 3 replicas", flight)
        cost = front_end / (messages * stage.options.rounds) * 1e6
        yield figure("cluster.publish.front-end-cpu", "  front end CPU", "s/M", [cost])
        yield from receive.figures(
            "cluster.receive", "receive + delete, 1 KiB, 3 replicas", "each deleted as a range"
        )


def single(stage: Stage) -> Iterator[Figure]:
    """One message at a time."""
    messages = 500 if stage.options.quick else 2_000
    with running_cluster(stage) as server:
        server.client.create_queue("single", replicas=NODES, replication="sync", min_in_sync=MIN_IN_SYNC)
        task = SendSingly(url=server.url, queue="single", messages=messages, size_bytes=SIZE_BYTES)
        stage.loads[0].run(task)
        latencies = []
        for number in range(stage.options.rounds):
            stage.progress(f"three replicas: one message at a time, round {number + 1}")
            outcome = stage.loads[0].run(task)
            assert outcome.latency is not None
            latencies.append(outcome.latency)
    yield from latency_figures(
        "cluster.single", "send, 1 KiB, 3 replicas, one at a time", latencies, "from asking to acknowledged"
    )


def queues(stage: Stage) -> Iterator[Figure]:
    """Many queues: how soon they are there, and what they cost when nothing happens."""
    count, idle_seconds = (100, 5.0) if stage.options.quick else (1_000, 20.0)
    with running_cluster(stage) as server:
        stage.progress(f"creating {count:,} queues")
        seconds = asyncio.run(_create(server, count))
        yield figure(
            "cluster.create.rate",
            f"create {count:,} queues of 3 replicas",
            "queues/s",
            [count / seconds],
            f"{CREATES_AT_ONCE} at once; each answered when its primary serves",
        )
        stage.progress(f"{count:,} idle queues, {idle_seconds:g} s")
        before = server.nodes.each_cpu_seconds()
        time.sleep(idle_seconds)
        after = server.nodes.each_cpu_seconds()
        shares = [100 * (after[name] - before[name]) / idle_seconds for name in before]
        yield figure(
            "cluster.idle.cpu",
            f"a node with {count:,} idle queues",
            "% of a core",
            [max(shares)],
            "the busiest",
        )


async def _create(server: ClusterServer, count: int) -> float:
    async with penstock.connect(server.url) as client:
        gate = asyncio.Semaphore(CREATES_AT_ONCE)

        async def create(number: int) -> None:
            async with gate:
                await client.create_queue(f"queue-{number:04d}", replicas=NODES, replication="sync")

        began = time.monotonic()
        async with asyncio.TaskGroup() as tasks:
            for number in range(count):
                tasks.create_task(create(number))
        return time.monotonic() - began

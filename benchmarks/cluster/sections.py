"""Rates, latency and cost of a cluster: three replicas, synchronous, on three disks before the acknowledgement."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import penstock
from benchmarks.cluster.stage import NODES, ClusterServer, running_cluster
from benchmarks.disk_probe import overwrite_and_sync
from benchmarks.echo import echo_round_trips
from benchmarks.figures import Figure, figure, latency_figures
from benchmarks.sections.throughput import BATCH_MESSAGES, IN_FLIGHT, Column, Load
from benchmarks.stage import Stage
from benchmarks.tasks import SendSingly

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
    """One message at a time; in turns with a single node, the disk and the network, so that a slow moment hits all."""
    messages = 500 if stage.options.quick else 2_000
    replicated, alone, disk, network, beside = [], [], [], [], []
    with running_cluster(stage) as server, stage.server() as lone:
        server.client.create_queue("single", replicas=NODES, replication="sync", min_in_sync=MIN_IN_SYNC)
        lone.client.create_queue("single")
        tasks = [
            SendSingly(url=one.url, queue="single", messages=messages, size_bytes=SIZE_BYTES)
            for one in (server, lone)
        ]
        for number in range(-1, stage.options.rounds):
            stage.progress(f"one message at a time, round {number + 1}")
            flushes = overwrite_and_sync(stage.directory, messages // 4)
            echoes = echo_round_trips(messages)
            outcomes = [stage.loads[0].run(task).measured for task in tasks]
            if number < 0:
                continue  # the first is to warm everybody up
            replicated.append(outcomes[0])
            alone.append(outcomes[1])
            disk.append(flushes.p50_us)
            network.append(echoes.p50_us)
            beside.append(outcomes[0].p50_us / outcomes[1].p50_us)
    yield from latency_figures(
        "cluster.single",
        "send, 1 KiB, 3 replicas, one at a time",
        replicated,
        "from asking to acknowledged, through a front end",
    )
    yield from latency_figures(
        "cluster.alone", "  the same on a node by itself", alone, "in turns with these"
    )[:2]
    yield figure("cluster.single.ratio", "  three replicas / a node by itself, p50", "×", beside)
    yield figure(
        "cluster.single.disk", "  4 KiB overwrite + fdatasync, p50", "µs", disk, "the disk by itself"
    )
    yield figure("cluster.single.network", "  1 KiB loopback echo, p50", "µs", network, "one there and back")


def queues(stage: Stage) -> Iterator[Figure]:
    """Many queues: how soon they are there, and what they cost when nothing happens."""
    count, idle_seconds = (200, 5.0) if stage.options.quick else (1_000, 20.0)
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
            f"the busiest; all: {', '.join(f'{share:.1f}' for share in sorted(shares))} %",
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

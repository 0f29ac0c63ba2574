"""How long a queue takes nothing: when its primary is killed, and when it is moved on purpose.

A client sends one message after the other all the time. What counts is what it sees: from the kill to the first message
that was sent after it and is acknowledged; and for a move the longest that one send took.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from benchmarks.cluster.sender import SETTLE_SECONDS, Sender
from benchmarks.cluster.stage import NODES, ClusterServer, read_partitions, running_cluster
from benchmarks.figures import Figure, figure, percentile
from benchmarks.processes import BenchError
from benchmarks.stage import Stage
from penstock.cluster.layout.entries import PartitionEntry, encode, partition_key
from penstock.metadata.store.interface import MetadataStore, VersionConflictError

QUEUE = "failover"
KILLS, QUICK_KILLS = 30, 5
MOVES, QUICK_MOVES = 30, 10
_LOOK_SECONDS = 0.05


def measure(stage: Stage) -> Iterator[Figure]:
    """Kills, then moves."""
    kills, moves = (QUICK_KILLS, QUICK_MOVES) if stage.options.quick else (KILLS, MOVES)
    with running_cluster(stage) as server:
        server.client.create_queue(QUEUE, replicas=NODES, replication="sync", min_in_sync=2)
        with Sender(server.url, QUEUE) as sender:
            sender.first_after(time.monotonic())
            killed, whole = [], []
            for number in range(kills):
                stage.progress(f"failover {number + 1} of {kills}")
                without, until_whole = _kill(server, sender)
                killed.append(without)
                whole.append(until_whole)
            moved = []
            for number in range(moves):
                stage.progress(f"planned move {number + 1} of {moves}")
                moved.append(1000 * _move(server, sender))
        refused, sent = sender.refused, len(sender.acknowledged)
    note = f"kill -9 of the primary to the first acknowledged send; {refused} of {sent:,} sends were told to try again"
    yield from _spread("cluster.failover", "failover", f"{kills} kills", "s", killed, note)
    yield figure(
        "cluster.rejoin",
        "  killed node started again → all in sync",
        "s",
        whole,
        "start of the process, recovery, catching up",
    )
    yield from _spread(
        "cluster.move", "planned move", f"{moves} moves", "ms", moved, "the longest send meanwhile"
    )


def _spread(name: str, title: str, count: str, unit: str, values: list[float], note: str) -> Iterator[Figure]:
    ordered = sorted(values)
    yield figure(f"{name}.p50", f"{title}, p50 of {count}", unit, values, note)
    yield figure(f"{name}.p99", f"{title}, p99", unit, [percentile(ordered, 0.99)])
    yield figure(f"{name}.worst", f"{title}, worst", unit, [ordered[-1]])


def _kill(server: ClusterServer, sender: Sender) -> tuple[float, float]:
    """How long nothing was acknowledged, and how long it took from starting the node again until all were in sync."""
    entry = _settled(server)
    assert entry.primary is not None
    moment = time.monotonic()
    server.cluster.kill(entry.primary)
    seconds = sender.first_after(moment) - moment
    began = time.monotonic()
    server.cluster.start(entry.primary)
    _settled(server)
    return seconds, time.monotonic() - began


def _move(server: ClusterServer, sender: Sender) -> float:
    entry = _settled(server)
    successor = next(node for node in entry.in_sync if node != entry.primary)
    began = time.monotonic()
    server.ask_store(lambda store: _ask_to_hand_over(store, entry.partition, successor))
    deadline = time.monotonic() + SETTLE_SECONDS
    while (after := server.partition_of(QUEUE)).epoch == entry.epoch or after.serving != after.epoch:
        if time.monotonic() > deadline:
            raise BenchError(f"{entry.primary} did not hand over to {successor} within {SETTLE_SECONDS:g} s")
        time.sleep(_LOOK_SECONDS)
    return sender.longest_between(began, sender.first_after(time.monotonic()))


def _settled(server: ClusterServer) -> PartitionEntry:
    """Waits until somebody leads and all are in sync."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        entry = server.partition_of(QUEUE)
        if entry.primary is not None and entry.serving == entry.epoch and len(entry.in_sync) == NODES:
            return entry
        if time.monotonic() > deadline:
            raise BenchError(
                f"after {SETTLE_SECONDS:g} s only {', '.join(entry.in_sync)} are in sync: {entry.reason}"
            )
        time.sleep(_LOOK_SECONDS)


async def _ask_to_hand_over(store: MetadataStore, partition: int, successor: str) -> None:
    """As the manager does when a node is drained."""
    while True:
        for version, entry in (await read_partitions(store)).items():
            if entry.partition != partition:
                continue
            changed = msgspec.structs.replace(entry, hand_over_to=successor, reason="it is measured")
            try:
                await store.put(partition_key(partition), encode(changed), version=version)
            except VersionConflictError:
                break
            return

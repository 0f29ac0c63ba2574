"""How long a queue takes nothing: when its primary is killed, and when it is moved on purpose.

A client sends one message after the other all the time. What counts is what it sees: from the kill to the first message
that was sent after it and is acknowledged; and for a move the longest that one send took.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

import msgspec

import penstock
from penstock.bench.cluster.stage import NODES, ClusterServer, read_partitions, running_cluster
from penstock.bench.figures import Figure, figure, percentile
from penstock.bench.processes import BenchError
from penstock.bench.stage import Stage
from penstock.cluster.layout import PartitionEntry, encode, partition_key
from penstock.metadata.store.interface import MetadataStore, VersionConflictError
from penstock.model.errors import PenstockError

QUEUE = "failover"
SETTLE_SECONDS = 60.0
_LOOK_SECONDS = 0.05
_PAUSE_SECONDS = 0.001


class Sender:
    """Sends one message after the other in a thread of its own, and notes when each was begun and acknowledged."""

    def __init__(self, url: str, queue: str) -> None:
        self._url = url
        self._queue = queue
        self._stop = threading.Event()
        self._news = threading.Condition()
        self.acknowledged: list[tuple[float, float]] = []
        self.refused = 0
        self._thread = threading.Thread(target=lambda: asyncio.run(self._send()), name="sender", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(SETTLE_SECONDS)

    def first_after(self, moment: float) -> float:
        """When the first message that was begun after the moment was acknowledged; waits for it."""
        deadline = time.monotonic() + SETTLE_SECONDS
        with self._news:
            while True:
                for began, done in reversed(self.acknowledged):
                    if began < moment:
                        break
                    found = done
                if self.acknowledged and self.acknowledged[-1][0] >= moment:
                    return found
                if not self._news.wait(max(0.0, deadline - time.monotonic())):
                    raise BenchError(f"nothing was acknowledged for {SETTLE_SECONDS:g} s after a failover")

    def longest_between(self, first: float, last: float) -> float:
        """The longest that a send took of those under way between two moments."""
        with self._news:
            return max(
                (done - began for began, done in self.acknowledged if done >= first and began <= last),
                default=0.0,
            )

    async def _send(self) -> None:
        body = bytes(1024)
        async with penstock.connect(self._url, timeout=SETTLE_SECONDS) as client:
            queue = client.queue(self._queue)
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    await queue.send(body)
                except PenstockError as error:
                    if not error.retryable:
                        raise
                    self.refused += 1
                    await asyncio.sleep(_PAUSE_SECONDS)
                    continue
                with self._news:
                    self.acknowledged.append((began, time.monotonic()))
                    self._news.notify_all()


def measure(stage: Stage) -> Iterator[Figure]:
    """Kills, then moves."""
    kills, moves = (3, 3) if stage.options.quick else (30, 10)
    with running_cluster(stage) as server:
        server.client.create_queue(QUEUE, replicas=NODES, replication="sync", min_in_sync=2)
        with Sender(server.url, QUEUE) as sender:
            sender.first_after(time.monotonic())
            killed = []
            for number in range(kills):
                stage.progress(f"failover {number + 1} of {kills}")
                killed.append(_kill(server, sender))
            moved = []
            for number in range(moves):
                stage.progress(f"planned move {number + 1} of {moves}")
                moved.append(_move(server, sender))
        refused = sender.refused
    note = f"kill -9 of the primary to the first acknowledged send; {refused} sends were told to try again"
    yield figure("cluster.failover.median", "failover", "s", killed, note)
    yield figure("cluster.failover.p99", f"failover, p99 of {kills}", "s", [percentile(sorted(killed), 0.99)])
    yield figure(
        "cluster.move.worst",
        f"planned move, the worst of {moves}",
        "ms",
        [1000 * max(moved)],
        "the longest send meanwhile",
    )


def _kill(server: ClusterServer, sender: Sender) -> float:
    entry = _settled(server)
    assert entry.primary is not None
    moment = time.monotonic()
    server.cluster.kill(entry.primary)
    seconds = sender.first_after(moment) - moment
    server.cluster.start(entry.primary)
    _settled(server)
    return seconds


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

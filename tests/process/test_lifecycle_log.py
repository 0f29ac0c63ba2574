"""The log of lifecycles of real processes that are killed: no row is missing, none counts twice, every message has one end."""

from __future__ import annotations

import asyncio
import random
import signal
from pathlib import Path

import pytest

import penstock
from penstock import Client, Queue
from penstock.columnar.lifecycle import LIFECYCLE, LIFECYCLE_QUEUE, Change
from penstock.columnar.reading import Row, rows_of
from penstock.model.errors import ErrorCode, PenstockError
from penstock.simulation.lifecycle_ledger import LifecycleLedger
from tests.etcd_servers import EtcdServers
from tests.process.server import ServerProcess
from tests.process.test_cluster_nodes import Program

KILLS = 4
BATCH = 5
SECONDS = 300


class Work:
    """A producer and a consumer, and what they were told."""

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.sent: set[int] = set()
        self.deleted: set[int] = set()
        self._progress = asyncio.Condition()
        self._stop = asyncio.Event()
        self._tasks = [asyncio.create_task(self._produce()), asyncio.create_task(self._consume())]

    async def more(self, count: int) -> None:
        """Returns when so much more was acknowledged."""
        goal = len(self.sent) + len(self.deleted) + count
        async with asyncio.timeout(SECONDS), self._progress:
            await self._progress.wait_for(lambda: len(self.sent) + len(self.deleted) >= goal)

    async def finish(self) -> None:
        """Ends when everything is deleted that was sent."""
        self._stop.set()
        await self._tasks[0]
        async with asyncio.timeout(SECONDS), self._progress:
            await self._progress.wait_for(lambda: self.deleted >= self.sent)
        self._tasks[1].cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _produce(self) -> None:
        while not self._stop.is_set():
            await self._told(self.sent, [m.sequence for m in await self._queue.send_batch([b"x"] * BATCH)])

    async def _consume(self) -> None:
        while True:
            messages = await self._queue.receive(50, wait=1.0, visibility_timeout=3)
            if not messages:
                continue
            settlement = await messages.delete()
            await self._told(self.deleted, {message.sequence for message in messages} - set(settlement.stale))

    async def _told(self, where: set[int], numbers: list[int] | set[int]) -> None:
        async with self._progress:
            where.update(numbers)
            self._progress.notify_all()


async def rows_until(client: Client, queue_id: int, deleted: set[int]) -> list[Row]:
    """Reads the log from its beginning until it tells of so many ends; what it says of the queue."""
    rows: list[Row] = []
    ended: set[int] = set()
    async with asyncio.timeout(SECONDS):
        async for message in client.queue(LIFECYCLE_QUEUE).log().messages(follow=True):
            for row in rows_of(LIFECYCLE, bytes(message.body)):
                if row["queue_id"] == queue_id:
                    rows.append(row)
                    if row["change"] == Change.DELETED:
                        ended.update(range(row["first"], row["first"] + row["count"]))
            if ended >= deleted:
                return rows
    raise AssertionError("unreachable")


def balance(rows: list[Row], work: Work) -> None:
    """Every acknowledged send has its row and one end, and nothing is told of that never was."""
    ledger = LifecycleLedger(rows)
    assert not ledger.problems
    (partition,) = ledger.partitions()
    messages = ledger.messages[partition]
    assert messages.keys() >= work.sent
    for sequence in work.sent:
        events = messages[sequence]
        assert events[0].change == Change.SENT
        assert events[-1].change == Change.DELETED
        assert ledger.states[partition, sequence] == "gone"


async def kill_a_server(directory: Path) -> None:
    dice = random.Random(7)
    server = ServerProcess(directory)
    await server.start()
    async with penstock.connect(server.url, timeout=SECONDS, name="tester") as client:
        queue = await client.create_queue("orders", lifecycle=True)
        work = Work(queue)
        for _ in range(KILLS):
            await work.more(dice.randrange(20, 300))
            await server.kill()
            await server.start()
        await work.finish()
        queue_id = (await queue.describe()).queue_id
        rows = await rows_until(client, queue_id, work.deleted)
        assert {row["consumer"] for row in rows if row["change"] == Change.LEASED} == {"tester"}
        balance(rows, work)
        with pytest.raises(PenstockError) as refused:
            await client.delete_queue(LIFECYCLE_QUEUE)
        assert refused.value.code is ErrorCode.UNSUPPORTED
    assert await server.stop() == 0


def test_a_server_that_is_killed_again_and_again_reports_every_row(tmp_path: Path) -> None:
    asyncio.run(kill_a_server(tmp_path / "data"))


async def kill_primaries(url: str, place: Path) -> None:
    secret = place / "secret"
    secret.write_text("0123456789abcdef0123456789abcdef")
    shared = ("--cluster", url, "--secret-file", str(secret))
    nodes = [
        Program(
            *("node", "run", "--name", name, "--zone", name, *shared, "--data", str(place / name)),
            *("--listen", "127.0.0.1:0", "--peers-listen", "127.0.0.1:0", "--monitoring-listen", "off"),
        )
        for name in ("node-1", "node-2", "node-3")
    ]
    front = Program(
        *("frontend", "--name", "front", *shared, "--data", str(place / "front")),
        *("--native-listen", "127.0.0.1:0", "--sqs-listen", "127.0.0.1:0"),
    )
    try:
        await asyncio.gather(*(node.start() for node in nodes))
        await front.start()
        async with penstock.connect(str(front.ready["native_url"]), timeout=SECONDS, name="tester") as client:
            await follow_through_failovers(client, nodes)
    finally:
        for program in (*nodes, front):
            await program.end(signal.SIGKILL)


async def follow_through_failovers(client: Client, nodes: list[Program]) -> None:
    queue = await client.create_queue("orders", replicas=3, lifecycle=True)
    queue_id = (await queue.describe()).queue_id
    work = Work(queue)
    for node in nodes:  # one after the other; who leads the queue and its log is among them
        await work.more(100)
        await node.end(signal.SIGKILL)
        await work.more(100)
        await node.start()
    await work.finish()
    rows = await rows_until(client, queue_id, work.deleted)
    assert {row["consumer"] for row in rows if row["change"] == Change.LEASED} == {"tester"}
    balance(rows, work)
    left = [message.sequence for message in await queue.send_batch([b"left"] * 3)]
    await client.delete_queue("orders")
    await rows_of_the_end(client, queue_id, set(left))
    with pytest.raises(PenstockError) as refused:
        await client.delete_queue(LIFECYCLE_QUEUE)
    assert refused.value.code is ErrorCode.UNSUPPORTED


async def rows_of_the_end(client: Client, queue_id: int, left: set[int]) -> None:
    """Returns when the log tells that these messages went with their queue."""
    async with asyncio.timeout(SECONDS):
        async for message in client.queue(LIFECYCLE_QUEUE).log().messages(follow=True):
            for row in rows_of(LIFECYCLE, bytes(message.body)):
                if row["queue_id"] == queue_id and row["change"] == Change.QUEUE_DELETED:
                    left -= set(range(row["first"], row["first"] + row["count"]))
            if not left:
                return


def test_killed_primaries_report_every_row(etcd: EtcdServers, tmp_path: Path) -> None:
    asyncio.run(kill_primaries(etcd.url(), tmp_path))

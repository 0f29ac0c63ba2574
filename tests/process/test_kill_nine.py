"""Many producers and consumers, a server that is killed again and again, and a ledger that must balance."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from pathlib import Path

import penstock
from penstock.client.queue import Queue
from tests.process.server import ServerProcess

KILLS = 30
PRODUCERS = 4
CONSUMERS = 3
BATCH = 5
VISIBILITY_SECONDS = 3


class Ledger:
    """What clients were told, and nothing else."""

    def __init__(self) -> None:
        self.acknowledged: dict[bytes, int] = {}
        """Body → sequence number, for every send that was answered."""
        self.delivered: dict[bytes, set[int]] = defaultdict(set)
        self.deleted: set[bytes] = set()
        self.progress = asyncio.Condition()

    async def step(self) -> None:
        """Something was acknowledged: whoever waits for that is told."""
        async with self.progress:
            self.progress.notify_all()

    async def wait_for_more(self, count: int) -> None:
        """Returns when so many more sends and deletes have been acknowledged."""
        goal = len(self.acknowledged) + len(self.deleted) + count
        async with self.progress:
            await self.progress.wait_for(lambda: len(self.acknowledged) + len(self.deleted) >= goal)


async def produce(queue: Queue, name: int, ledger: Ledger, stop: asyncio.Event) -> None:
    """Sends batches of bodies that exist only once."""
    number = 0
    while not stop.is_set():
        bodies = [b"%d-%d" % (name, number + place) for place in range(BATCH)]
        number += BATCH
        sent = await queue.send_batch(bodies)
        for body, message in zip(bodies, sent, strict=True):
            ledger.acknowledged[body] = message.sequence
        await ledger.step()


async def consume(queue: Queue, ledger: Ledger) -> None:
    """Takes messages and deletes most of them; some are left to come back."""
    async for message in queue.consume(credit=50, batch_messages=10, visibility_timeout=VISIBILITY_SECONDS):
        body = bytes(message.body)
        ledger.delivered[body].add(message.sequence)
        if message.sequence % 7 == 0 and message.receive_count == 1:
            continue
        try:
            await message.delete()
        except penstock.PenstockError as error:
            if error.code != "stale-receipt":
                raise
        else:
            ledger.deleted.add(body)
            await ledger.step()


async def drain(queue: Queue, ledger: Ledger) -> list[bytes]:
    """Everything that is left, as a client that starts afresh sees it."""
    left: list[bytes] = []
    while True:
        statistics = (await queue.describe()).statistics
        if not statistics.ready + statistics.leased:
            return left
        for message in await queue.receive(max_messages=100, wait=VISIBILITY_SECONDS):
            left.append(bytes(message.body))
            ledger.delivered[left[-1]].add(message.sequence)
            await message.delete()


async def scenario(directory: Path) -> None:
    dice = random.Random(20)
    server = ServerProcess(directory)
    await server.start()
    ledger, stop = Ledger(), asyncio.Event()
    async with penstock.connect(server.url, timeout=300) as client:
        queue = await client.create_queue("orders")
        producers = [asyncio.create_task(produce(queue, name, ledger, stop)) for name in range(PRODUCERS)]
        consumers = [asyncio.create_task(consume(queue, ledger)) for _ in range(CONSUMERS)]
        for _ in range(KILLS):
            more = asyncio.create_task(ledger.wait_for_more(dice.randrange(1, 400)))
            done, _ = await asyncio.wait([more, *producers, *consumers], return_when=asyncio.FIRST_COMPLETED)
            assert done == {more}, [task.exception() for task in done if task is not more]
            await server.kill()
            await server.start()
        stop.set()
        await asyncio.gather(*producers)
        for task in consumers:
            task.cancel()
        await asyncio.gather(*consumers, return_exceptions=True)
    async with penstock.connect(server.url) as client:
        left = await drain(client.queue("orders"), ledger)
    assert await server.stop() == 0
    check(ledger, left)
    assert server.lives == KILLS + 1


def check(ledger: Ledger, left: list[bytes]) -> None:
    lost = ledger.acknowledged.keys() - ledger.delivered.keys()
    assert not lost, f"{len(lost)} acknowledged messages were never delivered: {sorted(lost)[:5]}"
    resurrected = ledger.deleted & set(left)
    assert not resurrected, f"deleted messages came back: {sorted(resurrected)[:5]}"
    doubled = {body: found for body, found in ledger.delivered.items() if len(found) > 1}
    assert not doubled, f"messages were stored twice: {dict(list(doubled.items())[:5])}"
    renumbered = [body for body, number in ledger.acknowledged.items() if ledger.delivered[body] != {number}]
    assert not renumbered, f"messages were delivered under another number: {renumbered[:5]}"
    assert len(ledger.acknowledged) > KILLS * BATCH


def test_the_ledger_balances_after_thirty_kills(tmp_path: Path) -> None:
    asyncio.run(scenario(tmp_path / "data"))

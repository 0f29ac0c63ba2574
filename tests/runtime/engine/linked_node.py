"""A node with a local link in this process, and a way to await answers of any link."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from penstock.backend.node.node import Environment, Node
from penstock.frontend.engine import EngineLink
from penstock.model.batch import Buffer, encode_parts
from penstock.model.errors import PenstockError
from penstock.model.limits import MEBIBYTE
from penstock.model.settings import QueueSettings
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.disk.disk import RealDisk
from penstock.runtime.engine.driver import Driver
from penstock.runtime.engine.local_link import LocalLink
from penstock.steps.step import Reply
from penstock.storage.identity import Identity
from penstock.storage.options import StorageOptions
from penstock.storage.store import Store
from penstock.wire.messages import CreateQueue, Delivery, QueueDescription, Receive, Request, Send, SendResult


class LinkedNode:
    """A driver whose only connection is the link."""

    def __init__(self, driver: Driver, link: LocalLink) -> None:
        self.driver = driver
        self.link = link


@asynccontextmanager
async def linked_node(directory: Path) -> AsyncIterator[LinkedNode]:
    """A real node on a real directory."""
    loop, clock, disk = asyncio.get_running_loop(), WallClock(), RealDisk(str(directory))
    options = StorageOptions(journal_file_bytes=32 * MEBIBYTE, checkpoint_journal_bytes=32 * MEBIBYTE)
    store = Store.open(disk, options, Identity("node-test", bytes(32)))
    node = Node(store, Environment("test", str(directory), lambda: (0.0, 0)), clock.now_ms())
    driver = Driver(
        node,
        clock,
        loop,
        write=lambda connection, buffers: None,
        congestion_changed=lambda congested: None,
        failed=lambda: None,
    )
    link = LocalLink(driver, loop)
    try:
        yield LinkedNode(driver, link)
    finally:
        link.close()
        await driver.close()
        driver.join(10)
        disk.close()


def asked(link: EngineLink, request: Request, body: Buffer = b"") -> tuple[int, asyncio.Future[Reply]]:
    """A ticket and the answer to come; fails if it is called back within `ask`, or twice."""
    future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    within = True

    def done(outcome: Reply | PenstockError) -> None:
        assert not within, "called back within ask"
        assert not future.done(), "called back twice"
        if isinstance(outcome, PenstockError):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    ticket = link.ask(request, body, done)
    within = False
    return ticket, future


async def ask(link: EngineLink, request: Request, body: Buffer = b"") -> Reply:
    """The answer; raises `PenstockError`."""
    return await asked(link, request, body)[1]


async def create_queue(link: EngineLink, name: str, settings: QueueSettings | None = None) -> int:
    """The id of a new queue, or of the one that exists."""
    reply = await ask(link, CreateQueue(name, settings or QueueSettings()))
    assert isinstance(reply.answer, QueueDescription)
    return reply.answer.queue_id


async def exercise(link: EngineLink) -> None:
    """What every link can do: asking, many at once, large answers, errors, and cancelling a receive that waits."""
    queue_id = await create_queue(link, "orders", QueueSettings(max_message_bytes=16 * MEBIBYTE))
    sends = [asked(link, Send(queue_id), encode_parts([b"%d" % number]))[1] for number in range(200)]
    for reply in await asyncio.gather(*sends):
        assert isinstance(reply.answer, SendResult)
    got = await ask(link, Receive(queue_id, 1_000))
    assert isinstance(got.answer, Delivery)
    assert sum(batch.count for batch in got.answer.batches) == 200
    assert sum(batch.size for batch in got.answer.batches) == len(got.body)

    large = bytes(range(256)) * (10 * MEBIBYTE // 256)
    await ask(link, Send(queue_id), encode_parts([large]))
    got = await ask(link, Receive(queue_id, 1, max_bytes=16 * MEBIBYTE))
    assert large in bytes(got.body)

    waits = Receive(queue_id, 1, wait_ms=3_600_000)
    ticket, waiting = asked(link, waits)
    _, other = asked(link, waits)
    link.cancel(ticket)
    link.cancel(ticket)
    cancelled = (await waiting).answer
    assert isinstance(cancelled, Delivery)
    assert cancelled.batches == []
    link.cancel(ticket)  # it has been answered: nothing happens, to nobody
    assert not other.done()
    await ask(link, Send(queue_id), encode_parts([b"for the other"]))
    assert b"for the other" in bytes((await other).body)

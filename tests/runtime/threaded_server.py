"""A server on a thread of its own, for programs that block; and a way to make it leave numbers out, as a cluster may."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from penstock.model.records import NumbersSkipped
from penstock.queue.decisions.decision import PendingRecord
from penstock.runtime.embedded import EmbeddedServer, running_server
from tests.runtime.harness import small_config


class Running(NamedTuple):
    """The server, and the loop that it runs in."""

    server: EmbeddedServer
    loop: asyncio.AbstractEventLoop

    def leave_out(self, queue: str, first: int) -> None:
        """The next message of a queue gets this number, as after a failover that may have lost messages."""
        node: Any = self.server.broker._node
        written: Future[None] = Future()

        def write() -> None:
            partition = node._parts.catalogue.named(queue)
            node._parts.write(partition, [PendingRecord(NumbersSkipped(first, 1))])
            self.server.broker._driver.wake()
            written.set_result(None)

        self.loop.call_soon_threadsafe(write)
        written.result(timeout=300)


@contextmanager
def threaded_server(directory: Path) -> Iterator[Running]:
    """Runs until the block ends."""
    running: Future[Running] = Future()
    finished = threading.Event()

    async def serve() -> None:
        async with running_server(directory, small_config()) as server:
            loop = asyncio.get_running_loop()
            running.set_result(Running(server, loop))
            await loop.run_in_executor(None, finished.wait)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve())
        except BaseException as error:
            if running.done():
                raise
            running.set_exception(error)

    thread = threading.Thread(target=run, name="server")
    thread.start()
    try:
        yield running.result(timeout=300)
    finally:
        finished.set()
        thread.join()

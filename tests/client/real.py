"""A real server for tests: in the same event loop, or on a thread of its own for the blocking client."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future

import uvloop

import penstock
from penstock import Client
from penstock.config.address import Address
from penstock.config.serve import ServeConfig
from penstock.runtime.embedded import EmbeddedServer, running_server
from tests.ports import free_port


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[tuple[EmbeddedServer, Client]]:
    """A server on an empty directory, and a client of it."""
    with tempfile.TemporaryDirectory() as directory:
        async with running_server(directory) as server, penstock.connect(server.url) as client:
            yield server, client


class Restartable:
    """A server that can be stopped and started again, on the same directory and port."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._port = free_port()
        self._stack = contextlib.AsyncExitStack()

    @property
    def url(self) -> str:
        return f"penstock://127.0.0.1:{self._port}"

    async def start(self) -> None:
        config = ServeConfig(listen=Address("127.0.0.1", self._port), sqs_listen=None, monitoring_listen=None)
        await self._stack.enter_async_context(running_server(self._directory, config))

    async def stop(self) -> None:
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def restartable() -> AsyncIterator[Restartable]:
    with tempfile.TemporaryDirectory() as directory:
        server = Restartable(directory)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@contextlib.contextmanager
def served_in_a_thread() -> Iterator[str]:
    """The url of a server that runs on another thread."""
    url: Future[str] = Future()
    loop = uvloop.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        with tempfile.TemporaryDirectory() as directory:
            async with running_server(directory) as server:
                url.set_result(server.url)
                await stop.wait()

    def run() -> None:
        try:
            loop.run_until_complete(serve())
        except BaseException as error:
            if url.done():
                raise
            url.set_exception(error)
        finally:
            loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield url.result(timeout=120)
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(stop.set)
        thread.join()

"""A watch through metadata servers: continues at another server where it stopped, and delivers every change once.

Each has a separate connection, which is not read while the caller takes nothing: a slow watch blocks no other one and uses
no memory at either end.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator

from penstock.metadata.organisation.server_search import PAUSE_SECONDS
from penstock.metadata.remote.connection import Reply, ServerConnection
from penstock.metadata.remote.failures import NotDoneError, ServerFailure, raise_failed
from penstock.metadata.remote.servers import Servers
from penstock.metadata.store.interface import Change, StoreUnavailableError
from penstock.wire.metadata_messages import Changes, Failed, Watch, decode_changes

FRAMES_AHEAD = 16


class RemoteWatch:
    """One watch."""

    def __init__(self, servers: Servers, prefix: str, after: int) -> None:
        self._servers = servers
        self._prefix = prefix
        self._after = after

    async def changes(self) -> AsyncGenerator[Change, None]:
        """Every change; ends when the store is closed."""
        loop = asyncio.get_running_loop()
        failures: dict[str, ServerFailure] = {}
        failing_since: float | None = None
        closed = self._servers.connections.closed
        while not closed.is_set():
            address = self._servers.addresses(None)[0]
            stream: WatchStream | None = None
            try:
                connection = await self._servers.connections.open_another(address)
                stream = WatchStream(connection, self._prefix, self._after, closed)
                while (batch := await stream.next()) is not None:
                    failures.clear()
                    failing_since = None
                    # The whole batch is delivered before anything can fail, so that `after` is the last delivered version.
                    self._after = max(self._after, batch.upto)
                    for change in batch.changes:
                        yield change
                return
            except ServerFailure as error:
                failures[address] = error
                self._servers.connections.suspect(address)
                now = loop.time()
                failing_since = now if failing_since is None else failing_since
                if now - failing_since >= self._servers.timeout_seconds and not closed.is_set():
                    raise self._servers.unavailable(failures) from error
            finally:
                if stream is not None:
                    stream.close()
            try:
                await self._servers.pause(PAUSE_SECONDS)
            except StoreUnavailableError:
                return  # closed


class Batch:
    """The contents of one frame."""

    def __init__(self, changes: list[Change], upto: int) -> None:
        self.changes = changes
        self.upto = upto


class WatchStream:
    """A watch at one server."""

    def __init__(self, connection: ServerConnection, prefix: str, after: int, closed: asyncio.Event) -> None:
        self._connection = connection
        self._closed = closed
        self._arrived: deque[Reply | ServerFailure] = deque()
        self._news = asyncio.Event()
        self._paused = False
        connection.begin(Watch(prefix, after), self._sink)

    async def next(self) -> Batch | None:
        """The next frame; None when the store is closed. Raises what the server says, and `ServerFailure`."""
        if not self._arrived:
            await self._wait()
        if self._closed.is_set():
            return None
        reply = self._arrived.popleft()
        if self._paused and not self._arrived:
            self._paused = False
            self._connection.pause(False)
        if isinstance(reply, ServerFailure):
            raise reply
        if isinstance(reply.answer, Failed):
            raise_failed(reply.answer)
        if not isinstance(reply.answer, Changes):
            raise NotDoneError("the server answered a watch with something else")
        changes = [Change(*raw) for raw in decode_changes(reply.body)] if reply.body else []
        return Batch(changes, reply.answer.upto)

    def close(self) -> None:
        """Ends the watch and its connection."""
        self._connection.close()

    async def _wait(self) -> None:
        self._news.clear()
        news = asyncio.ensure_future(self._news.wait())
        closed = asyncio.ensure_future(self._closed.wait())
        try:
            await asyncio.wait({news, closed}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (news, closed):
                task.cancel()
            await asyncio.gather(news, closed, return_exceptions=True)

    def _sink(self, outcome: Reply | ServerFailure) -> None:
        self._arrived.append(outcome)
        self._news.set()
        if len(self._arrived) >= FRAMES_AHEAD and not self._paused:
            self._paused = True
            self._connection.pause(True)

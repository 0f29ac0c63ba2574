"""Connections to metadata servers by address: opened when first needed, kept, and not retried without pauses."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from penstock.metadata.remote.connection import Dial, Reply, ServerConnection, connect, dial_plainly
from penstock.metadata.remote.failures import NotDoneError, PerhapsDoneError, raise_failed
from penstock.metadata.remote.settings import split_address
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.batch import Buffer
from penstock.wire.metadata_messages import Failed, Request
from penstock.wire.suspects import SUSPECTED_SECONDS, Suspects


class Connections:
    """One connection for requests to each server, on the event loop that made it."""

    def __init__(
        self,
        secret: bytes,
        name: str,
        clock: Callable[[], float] = time.monotonic,
        dial: Dial = dial_plainly,
    ) -> None:
        self.closed = asyncio.Event()
        self._secret = secret
        self._name = name
        self._clock = clock
        self._dial = dial
        self._open: dict[str, ServerConnection] = {}
        self._opening: dict[str, asyncio.Task[ServerConnection]] = {}
        self._suspects = Suspects(SUSPECTED_SECONDS)

    def trusted_first(self, addresses: Iterable[str]) -> list[str]:
        """The same order, but servers that failed a moment ago are last."""
        return self._suspects.last(addresses, self._clock())

    def suspect(self, address: str) -> None:
        """It failed: others are asked first for a while."""
        self._suspects.note(address, self._clock())

    async def ask(self, address: str, request: Request, body: Buffer, seconds: float) -> Reply:
        """Asks one server; raises a `ServerFailure`, or the store's own errors as the server reports them."""
        sent = False
        try:
            async with asyncio.timeout(seconds):
                connection = await self._connection(address)
                asked = connection.ask(request, body)
                sent = True
                reply = await asked
        except TimeoutError as error:
            self.suspect(address)
            if sent:
                raise PerhapsDoneError(f"no answer within {seconds:.3g} s") from error
            raise NotDoneError(f"could not be asked within {seconds:.3g} s") from error
        except (NotDoneError, PerhapsDoneError):
            self.suspect(address)
            if self.closed.is_set():
                raise closed() from None
            raise
        if isinstance(reply.answer, Failed):
            raise_failed(reply.answer)
        return reply

    async def open_another(self, address: str) -> ServerConnection:
        """A connection of one's own; raises `NotDoneError`. The caller closes it."""
        try:
            host, port = split_address(address)
        except ValueError as error:
            raise NotDoneError(str(error)) from error
        return await connect(host, port, self._secret, self._name, self._dial)

    def close(self) -> None:
        """Closes all connections; waiting requests fail."""
        self.closed.set()
        for task in self._opening.values():
            task.cancel()
        for connection in self._open.values():
            connection.close()
        self._open.clear()

    async def _connection(self, address: str) -> ServerConnection:
        found = self._open.get(address)
        if found is not None and found.usable:
            return found
        if self.closed.is_set():
            raise closed()
        opening = self._opening.get(address)
        if opening is None:
            opening = self._opening[address] = asyncio.create_task(self._connect(address))
            opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            if self.closed.is_set():
                raise closed() from None
            raise

    async def _connect(self, address: str) -> ServerConnection:
        try:
            self._open[address] = connection = await self.open_another(address)
            return connection
        finally:
            del self._opening[address]


def closed() -> StoreUnavailableError:
    """The error after the end."""
    return StoreUnavailableError("the metadata store is closed")

"""The link to a node in the same process: one of its driver's connections, without a socket.

Requests go in as frames that were never encoded to bytes. Answers come out of the driver as frames in pieces; what
is one piece is not copied, and their checksums are not computed again.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

from penstock.frontend.engine import Answered
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.runtime.engine.correlation import Correlation
from penstock.runtime.engine.driver import Driver
from penstock.wire.frames import PREFIX_BYTES, Frame
from penstock.wire.messages import PROTOCOL_VERSION, Hello, Request, Unsubscribe, encode_message

LOCAL_CONNECTION = -1
"""Sockets count from 1 on."""
_NOTHING = memoryview(b"")
_prefix = struct.Struct("<IIII").unpack_from


class LocalLink:
    """Asks a node through its driver, on the driver's event loop."""

    def __init__(self, driver: Driver, loop: asyncio.AbstractEventLoop, name: str = "penstock") -> None:
        self._driver = driver
        self.turn = driver.turn
        """What is done together with this node."""
        self._loop = loop
        self._correlation = Correlation()
        self._arrived: list[Buffer] = []
        self._closed = ""
        driver.connected(LOCAL_CONNECTION)
        self._send(self._correlation.next_id(), Hello([PROTOCOL_VERSION], name), _NOTHING)

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        """See `EngineLink`."""
        ticket = self._correlation.enter(done)
        if not self._closed:
            self._send(ticket, request, memoryview(body) if len(body) else _NOTHING, stands_for)
        if self._closed or self._driver.failure is not None:
            self._loop.call_soon(self._correlation.lose, self._closed or "the server has failed")
        return ticket

    def cancel(self, ticket: int) -> None:
        """See `EngineLink`."""
        if ticket in self._correlation and not self._closed:
            self._send(self._correlation.next_id(), Unsubscribe(ticket), _NOTHING)

    def write(self, buffers: list[Buffer]) -> None:
        """What the driver has for this connection. Called back for it is later: the driver is in the middle of a turn."""
        if not self._arrived:
            self.turn.later(self._take)
        self._arrived += buffers

    def close(self, reason: str = "the server is stopping") -> None:
        """Everything outstanding fails, and so does what is asked from now on."""
        if self._closed:
            return
        self._closed = reason
        self._driver.disconnected(LOCAL_CONNECTION)
        self._loop.call_soon(self._end)

    def _send(self, request_id: int, request: Request, body: memoryview, stands_for: int = 1) -> None:
        frame = Frame(request_id, memoryview(encode_message(request)), body)
        self._driver.handle(LOCAL_CONNECTION, (frame,), stands_for)

    def _end(self) -> None:
        self._take()
        self._correlation.lose(self._closed)

    def _take(self) -> None:
        buffers, self._arrived = self._arrived, []
        answered = self._correlation.answered
        index, count = 0, len(buffers)
        while index < count:
            piece = buffers[index]
            index += 1
            size, _, request_id, head_bytes = _prefix(piece)
            view = memoryview(piece)
            body_start = PREFIX_BYTES + head_bytes
            head, body = view[PREFIX_BYTES:body_start], view[body_start:]
            missing = size + 4 - len(view)
            if missing:
                first = index
                while missing > 0:
                    missing -= len(buffers[index])
                    index += 1
                pieces = buffers[first:index] if not body else [body, *buffers[first:index]]
                body = memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))
            # `contextlib.suppress` would cost 0.7 µs an answer.
            try:
                answered(request_id, head, body)
            except PenstockError:
                pass  # who asked has been told


class LocalRoute:
    """Stands before a server's `write`: what is for the local link goes there, all else to its socket."""

    def __init__(self, elsewhere: Callable[[int, list[Buffer]], None]) -> None:
        self._elsewhere = elsewhere
        self._link: LocalLink | None = None

    def link(self, driver: Driver, loop: asyncio.AbstractEventLoop) -> LocalLink:
        """The link to a driver that writes through this route; who asks again shares it."""
        if self._link is None:
            self._link = LocalLink(driver, loop)
        return self._link

    def write(self, connection: int, buffers: list[Buffer]) -> None:
        """What the driver writes with."""
        if connection != LOCAL_CONNECTION:
            self._elsewhere(connection, buffers)
        elif self._link is not None:
            self._link.write(buffers)

    def close(self, reason: str) -> None:
        """Ends the link, if there is one."""
        if self._link is not None:
            self._link.close(reason)

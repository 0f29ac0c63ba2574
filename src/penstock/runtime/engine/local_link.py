"""The link to a node in the same process: one of its driver's connections, without a socket.

Requests and answers are passed as objects, not encoded. A body of one piece is not copied.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count

from penstock.backend.node.outbox import HandedAnswer
from penstock.frontend.engine import Answered
from penstock.frontend.telling import tell
from penstock.model.batch import Buffer
from penstock.runtime.engine.correlation import unreachable
from penstock.runtime.engine.driver import Driver
from penstock.steps.step import Reply
from penstock.wire.frames import Frame
from penstock.wire.messages import PROTOCOL_VERSION, Failed, Hello, Request, Unsubscribe
from penstock.wire.refusals import error_of

LOCAL_CONNECTION = -1
"""Sockets count from 1 on."""
_NOTHING = memoryview(b"")


class LocalLink:
    """Asks a node through its driver, on the driver's event loop."""

    def __init__(self, driver: Driver, loop: asyncio.AbstractEventLoop, name: str = "penstock") -> None:
        self._driver = driver
        self.turn = driver.turn
        """The turn of this node."""
        self._loop = loop
        self._waiting: dict[int, Answered] = {}
        """The callbacks by request."""
        self._tickets = count(1)
        self._arrived: list[HandedAnswer] = []
        self._closed = ""
        driver.connected(LOCAL_CONNECTION, self._hand_over)
        self._send(next(self._tickets), Hello([PROTOCOL_VERSION], name), _NOTHING)

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        """See `EngineLink`."""
        ticket = next(self._tickets)
        self._waiting[ticket] = done
        if not self._closed:
            self._send(ticket, request, memoryview(body) if len(body) else _NOTHING, stands_for)
        if self._closed or self._driver.failure is not None:
            self._loop.call_soon(self._lose, self._closed or "the server has failed")
        return ticket

    def cancel(self, ticket: int) -> None:
        """See `EngineLink`."""
        if ticket in self._waiting and not self._closed:
            self._send(next(self._tickets), Unsubscribe(ticket), _NOTHING)

    def close(self, reason: str = "the server is stopping") -> None:
        """Everything outstanding fails, and so does what is asked from now on."""
        if self._closed:
            return
        self._closed = reason
        self._driver.disconnected(LOCAL_CONNECTION)
        self._loop.call_soon(self._end)

    def _send(self, request_id: int, request: Request, body: memoryview, stands_for: int = 1) -> None:
        self._driver.handle(LOCAL_CONNECTION, (Frame(request_id, _NOTHING, body, request),), stands_for)

    def _hand_over(self, answers: list[HandedAnswer]) -> None:
        """Called back for them is later: the driver is in the middle of a turn."""
        if not self._arrived:
            self.turn.later(self._take)
        self._arrived += answers

    def _end(self) -> None:
        self._take()
        self._lose(self._closed)

    def _lose(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, {}
        for done in waiting.values():
            tell(done, unreachable(reason))

    def _take(self) -> None:
        arrived, self._arrived = self._arrived, []
        for ticket, answer, body in arrived:
            done = self._waiting.pop(ticket, None)
            if done is None:
                continue
            if isinstance(answer, Failed):
                tell(done, error_of(answer))
            else:
                tell(done, Reply(answer, _joined(body) if body else _NOTHING))


def _joined(pieces: Sequence[Buffer]) -> memoryview:
    return memoryview(pieces[0] if len(pieces) == 1 else b"".join(pieces))

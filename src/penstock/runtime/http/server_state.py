"""The state that all connections of a server share: its handler, its limits, and the remaining room."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from heapq import nsmallest
from typing import Protocol

from penstock.runtime.engine.turn import Turn
from penstock.runtime.http.answers import Refusal, plain_refusal
from penstock.runtime.http.buffer_budget import BufferBudget
from penstock.runtime.http.deadlines import Deadlines, TimedConnection
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.native.bad_connections import BadConnections
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer

logger = logging.getLogger(__name__)

REFUSED_CONNECTIONS = 256
"""So many connections above the limit, or an eighth of it, get an explanation; further ones are only closed."""
ROOM_SHARE = 16
"""If all places are taken, up to a sixteenth of them is freed at once: finding these takes 8 ms for 16,000."""
UNUSED_SECONDS = 1.0
"""A client that was answered within this time may be about to send again, and is kept."""
ARRIVED_BYTES = 1024 * 1024
"""The maximum that may be read before it is handled."""

Handler = Callable[[HttpRequest, Peer, Callable[[HttpResponse], None]], Callable[[], None] | None]
"""Handles a request: calls the third argument once, at once or later, and returns how to cancel it or None.

The cancel function is called when the client leaves before the answer; later replies are ignored.
"""
Refuse = Callable[[int, str], HttpResponse]
"""Makes the answer for a status and a sentence where the request never reaches the handler."""


class Connection(TimedConnection, Protocol):
    """A connection, as far as its server and its exchanges know it."""

    transport: asyncio.Transport
    ended: bool
    """Whether the client has closed its half."""

    @property
    def served(self) -> bool: ...
    @property
    def is_asking(self) -> bool: ...
    def take(self, data: bytes) -> None: ...
    def go_on(self) -> None: ...
    def has_room(self) -> None: ...


class HttpServerState:
    """The connections of a server."""

    def __init__(self, handler: Handler, limits: HttpLimits, refuse: Refuse | None) -> None:
        self.handler = handler
        self.limits = limits
        self._refuse = refuse
        self.bad = BadConnections(logger)
        self.deadlines = Deadlines(limits, self.bad)
        self.connections: set[Connection] = set()
        self.held: set[Connection] = set()
        """Connections with requests that wait until the server is no longer held."""
        self.holding = False
        self.stopping = False
        self.budget = BufferBudget(limits.buffered_bytes)
        self.date_line = ""
        self.turn: Turn
        """Given when it starts."""
        self._arrived: list[tuple[Connection, bytes]] = []
        self._arrived_bytes = 0
        self._writers: list[Callable[[], None]] = []

    # -- reads and writes of one turn ------------------------------------------------------------------------

    def arrives(self, connection: Connection, data: bytes) -> None:
        """Keeps what was read until all sockets that are ready have been, or until it is much."""
        arrived = self._arrived
        if not arrived:
            self.turn.later(self.take_arrived)
        arrived.append((connection, data))
        self._arrived_bytes += len(data)
        if self._arrived_bytes > ARRIVED_BYTES:
            self.take_arrived()

    def take_arrived(self) -> None:
        """Hands everything that was read to its connections."""
        arrived, self._arrived = self._arrived, []
        self._arrived_bytes = 0
        for connection, data in arrived:
            try:
                connection.take(data)
            except Exception:
                logger.exception(
                    "could not process what %(address)s sent: this is a defect of Penstock; please report it",
                    {"address": connection.address},
                )
                connection.abort()

    def writes(self, write_out: Callable[[], None]) -> None:
        """There is something to write once all answers of this turn are made."""
        writers = self._writers
        if not writers:
            self.turn.later(self._write_out)
        writers.append(write_out)

    def _write_out(self) -> None:
        writers, self._writers = self._writers, []
        for write_out in writers:
            write_out()

    # -- who comes and goes ----------------------------------------------------------------------------------

    def admit(self, connection: Connection) -> Refusal | None:
        """Counts a new connection; the refusal where there is no room for it."""
        most = self.limits.max_connections
        if len(self.connections) >= most:
            self._make_room()
        open_connections = len(self.connections)
        if open_connections >= most + min(REFUSED_CONNECTIONS, max(16, most // 8)):
            connection.abort()
            return None
        self.connections.add(connection)
        if self.stopping:
            return Refusal(503, "This server is stopping.")
        if open_connections < most:
            return None
        self.bad.tell("full", "refused a connection: %(connections)d are open", connections=open_connections)
        return Refusal(503, f"This server accepts {most} connections; all are in use.")

    def _make_room(self) -> None:
        """Closes unused connections: first those that were never served, then those that are idle longest.

        Otherwise a client that opens connections and sends nothing useful would keep all others out.
        """
        now = self.deadlines.now()
        unused = [
            connection
            for connection in self.connections
            if not (connection.is_asking or (connection.served and now - connection.used_at < UNUSED_SECONDS))
        ]
        share = max(1, self.limits.max_connections // ROOM_SHARE)
        gone = nsmallest(share, unused, key=lambda connection: (connection.served, connection.used_at))
        for connection in gone:
            connection.abort()
        if gone:
            self.bad.tell(
                "unused",
                "closed %(connections)d idle connections to make room for new ones",
                connections=len(gone),
            )

    def forget(self, connection: Connection) -> None:
        """A connection is closed."""
        self.deadlines.forget(connection)
        self.connections.discard(connection)
        self.held.discard(connection)

    def refusal(self, status: int, sentence: str) -> HttpResponse:
        """The answer to a request that the handler does not see."""
        if self._refuse is not None:
            try:
                return self._refuse(status, sentence)
            except Exception:
                logger.exception(
                    "could not format the error response: this is a defect of Penstock; please report it"
                )
        return plain_refusal(status, sentence)

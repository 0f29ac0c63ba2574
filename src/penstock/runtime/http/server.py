"""Accepts HTTP connections, keeps their sum within bounds, and ends them in good order.

Every buffer has a bound. What has arrived and is not answered counts against a budget shared by all connections;
a client that does not read its answers is not read from, and is disconnected when it has stopped reading for
good; while the server is held nobody is read from. One timer looks after the deadlines of all connections.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from email.utils import formatdate

from penstock.runtime.http.answers import plain_refusal
from penstock.runtime.http.connection import HttpConnection
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.request_reader import Refusal
from penstock.runtime.http.waiting import Waiting
from penstock.sqs.http import HttpRequest, HttpResponse, Peer

log = logging.getLogger(__name__)

BACKLOG = 1024
REFUSED_CONNECTIONS = 256
"""So many connections beyond the limit are told why they are refused; further ones are just closed."""

Handler = Callable[[HttpRequest, Peer, Callable[[HttpResponse], None]], Callable[[], None] | None]
"""Handles a request: calls the third argument once, at once or later, and returns how to cancel it or None.

The cancel is called when the client goes away before the answer; whatever is replied after that is ignored.
"""
Refuse = Callable[[int, str], HttpResponse]
"""Makes the answer for a status and a sentence where the request never reaches the handler."""


class HttpServer:
    """Serves requests to a handler."""

    OVERLOADED = "The server holds as many requests as it can; try again in a moment."

    def __init__(self, handler: Handler, *, limits: HttpLimits, refuse: Refuse | None = None) -> None:
        self.handler = handler
        self.limits = limits
        self._refuse = refuse
        self.connections: set[HttpConnection] = set()
        self.held: set[HttpConnection] = set()
        """Connections with requests that wait until the server is held no more."""
        self.holding = False
        self.stopping = False
        self.buffered_bytes = 0
        self.date_line = ""
        self.idle: Waiting[HttpConnection] = Waiting(limits.idle_seconds)
        self.arriving_heads: Waiting[HttpConnection] = Waiting(limits.head_seconds)
        # A connection comes here from `arriving_heads` when the time for its head is over, so that both tables
        # stay in the order of their deadlines.
        self.arriving_bodies: Waiting[HttpConnection] = Waiting(
            max(0.0, limits.request_seconds - limits.head_seconds)
        )
        self.stalled: Waiting[HttpConnection] = Waiting(limits.stalled_seconds)
        self.lingering: Waiting[HttpConnection] = Waiting(limits.linger_seconds)
        self.now: Callable[[], float] = time.monotonic
        self._listeners: list[asyncio.Server] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    async def start(self, listener: socket.socket, ssl_context: ssl.SSLContext | None = None) -> None:
        """Listens on a socket that is bound; called again, on one more."""
        loop = asyncio.get_running_loop()
        self.now = loop.time
        if self._sweeper is None:
            self._sweep()
        self._listeners.append(
            await loop.create_server(
                lambda: HttpConnection(self),
                sock=listener,
                backlog=BACKLOG,
                ssl=ssl_context,
                ssl_handshake_timeout=self.limits.handshake_seconds if ssl_context is not None else None,
            )
        )

    def hold(self) -> None:
        """Takes no more requests for now; what arrives waits, and its connection is not read from."""
        self.holding = True

    def resume(self) -> None:
        """Goes on with the requests that wait."""
        self.holding = False
        held, self.held = self.held, set()
        for connection in held:
            connection.go_on()

    # -- called by connections -------------------------------------------------------------------------------

    def admit(self, connection: HttpConnection) -> Refusal | None:
        """Counts a new connection; the refusal where there is no room for it."""
        open_connections = len(self.connections)
        if open_connections >= self.limits.max_connections + REFUSED_CONNECTIONS:
            connection.abort()
            return None
        self.connections.add(connection)
        self._empty.clear()
        if open_connections < self.limits.max_connections and not self.stopping:
            return None
        if self.stopping:
            return Refusal(503, "This server is stopping.")
        log.warning("refused a connection: %d are open", open_connections)
        return Refusal(
            503, f"This server takes {self.limits.max_connections} connections and has no room for another."
        )

    def forget(self, connection: HttpConnection) -> None:
        """A connection is closed."""
        self.connections.discard(connection)
        self.held.discard(connection)
        if not self.connections:
            self._empty.set()

    def refusal(self, status: int, sentence: str) -> HttpResponse:
        """The answer to a request that the handler does not see."""
        if self._refuse is not None:
            try:
                return self._refuse(status, sentence)
            except Exception:
                log.exception("a refusal could not be dressed")
        return plain_refusal(status, sentence)

    # -- the end ---------------------------------------------------------------------------------------------

    def stop_accepting(self) -> None:
        """Closes the listening sockets and the idle connections; what has begun is answered and closed."""
        self.stopping = True
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections):
            connection.wind_down()

    async def close(self, grace_seconds: float) -> None:
        """Waits for the requests under way, and drops those that take too long."""
        self.stop_accepting()
        try:
            async with asyncio.timeout(grace_seconds):
                await self._empty.wait()
        except TimeoutError:
            log.warning("dropped %d connections that did not finish in time", len(self.connections))
        self.drop_all()

    def drop_all(self) -> None:
        """Ends everything at once."""
        self.stop_accepting()
        for connection in list(self.connections):
            connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()

    # -- time ------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """Looks after all deadlines, and after the clock of the answers."""
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(self.limits.sweep_seconds, self._sweep)
        self.date_line = f"Date: {formatdate(usegmt=True)}\r\n"
        now = self.now()
        for waiting in (self.idle, self.arriving_heads, self.arriving_bodies, self.stalled, self.lingering):
            for connection in waiting.take_due(now):
                connection.overdue(waiting)

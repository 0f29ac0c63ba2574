"""Accepts HTTP connections, limits their total, and ends them in order.

Every buffer has a limit. Input that is not answered counts against a budget of all connections. A client that does not
read its answers is not read from, and is disconnected when it has stopped reading for too long. While the server is held
no client is read from. One timer checks the deadlines of all connections.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from email.utils import formatdate

from penstock.runtime.cluster.streams import Listener, Shown, listen
from penstock.runtime.engine.turn import Turn
from penstock.runtime.http.connection import HttpConnection
from penstock.runtime.http.limits import HttpLimits
from penstock.runtime.http.server_state import Connection, Handler, HttpServerState, Refuse

logger = logging.getLogger(__name__)

BACKLOG = 1024
USUAL_LIMITS = HttpLimits()


class HttpServer(HttpServerState):
    """Serves requests to a handler."""

    def __init__(
        self,
        handler: Handler,
        *,
        limits: HttpLimits = USUAL_LIMITS,
        refuse: Refuse | None = None,
        turn: Turn | None = None,
    ) -> None:
        super().__init__(handler, limits, refuse)
        self._given_turn = turn
        self._listeners: list[Listener] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self._empty = asyncio.Event()
        """Set when the last connection ends; used only after no more are accepted."""

    async def start(self, listener: socket.socket, ssl_context: ssl.SSLContext | None = None) -> None:
        """Listens on a socket that is bound; called again, on one more."""
        loop = asyncio.get_running_loop()
        self.deadlines.now = loop.time
        if self._sweeper is None:
            self.turn = self._given_turn or Turn(loop)
            self._sweep()
        self._listeners.append(
            await listen(
                lambda: HttpConnection(self),
                listener,
                Shown(ssl_context) if ssl_context is not None else None,
                "HTTP",
                BACKLOG,
                at_once=self.limits.handshakes,
                seconds=self.limits.handshake_seconds,
            )
        )

    def hold(self) -> None:
        """Accepts no more requests for now; input waits, and connections are not read."""
        self.holding = True

    def resume(self) -> None:
        """Continues with the waiting requests."""
        self.holding = False
        held, self.held = self.held, set()
        for connection in held:
            connection.go_on()

    def forget(self, connection: Connection) -> None:
        super().forget(connection)
        if not self.connections:
            self._empty.set()

    # -- the end ---------------------------------------------------------------------------------------------

    def stop_accepting(self) -> None:
        """Closes the listening sockets and the idle connections; requests in progress are answered first."""
        self.take_arrived()  # requests that arrived by now are answered
        self.stopping = True
        for listener in self._listeners:
            listener.close()
        for connection in list(self.connections):
            if not (connection.begun or connection.closing):
                connection.finish(linger=False)

    async def close(self, grace_seconds: float) -> None:
        """Waits for the requests under way, and drops those that take too long."""
        self.stop_accepting()
        self._empty.clear()
        try:
            async with asyncio.timeout(grace_seconds):
                if self.connections:
                    await self._empty.wait()
        except TimeoutError:
            logger.warning(
                "closed %(connections)d connections that did not finish in time",
                {"connections": len(self.connections)},
            )
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
        """Checks all deadlines, and updates the clock of the answers."""
        loop = asyncio.get_running_loop()
        self._sweeper = loop.call_later(self.limits.sweep_seconds, self._sweep)
        self.date_line = f"Date: {formatdate(usegmt=True)}\r\n"
        self.take_arrived()  # input that was read counts as in time
        self.deadlines.sweep()

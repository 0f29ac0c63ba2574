"""The native protocol's server: sockets in, frames to the driver, answers out. It decides nothing about queues.

Every buffer has a limit, and while the node is congested no client is read from: `wire.client_session` decides this.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence

from penstock.model.batch import Buffer
from penstock.runtime.cluster.streams import Certified, Listener, listen
from penstock.runtime.native.bad_connections import BadConnections
from penstock.runtime.native.connection import Connection
from penstock.runtime.native.proxy_headers import TrustedBalancers
from penstock.streams.waiting import came
from penstock.wire.client_session import SessionTerms
from penstock.wire.client_sessions import ClientSessions
from penstock.wire.handshake import NONCE_BYTES
from penstock.wire.proxy_protocol import ProxyHeader
from penstock.wire.session_sides import Handler

logger = logging.getLogger(__name__)

BACKLOG = 1024


class _Balanced:
    """See `Balanced`: connections of a server that come through balancers."""

    def __init__(self, server: Server, balancers: TrustedBalancers) -> None:
        self._server = server
        self.trusts = balancers.trusts

    def make(self, header: ProxyHeader) -> Connection:
        return Connection(self._server.sessions, header)


class Server:
    """Accepts connections and moves bytes between them and a driver."""

    def __init__(
        self,
        *,
        max_connections: int,
        write_buffer_bytes: int,
        hello_timeout_ms: int,
        secret: bytes | None = None,
        place: str = "",
        tls: Certified | None = None,
        trusted_proxies: Sequence[str] | None = None,
    ) -> None:
        self._tls = tls
        """The TLS of the server; that of a cluster requires a certificate of its authority from clients."""
        self._balancers = TrustedBalancers(trusted_proxies) if trusted_proxies else None
        """The balancers whose headers are trusted; None: none."""
        terms = SessionTerms(
            max_connections, write_buffer_bytes, hello_timeout_ms / 1000, secret=secret, place=place
        )
        self.sessions: ClientSessions[Connection] = ClientSessions(
            terms, _later, BadConnections(logger).tell, lambda: os.urandom(NONCE_BYTES), _now_us
        )
        self.connections = self.sessions.connections
        self.congestion_changed = self.sessions.congestion_changed
        self._listener: Listener | None = None
        self._empty = asyncio.Event()
        self.sessions.emptied = self._empty.set

    async def start(self, driver: Handler, listener: socket.socket) -> None:
        """Listens on a socket that is bound."""
        self.sessions.start(driver)
        balanced = _Balanced(self, self._balancers) if self._balancers is not None else None
        self._listener = await listen(
            lambda: Connection(self.sessions), listener, self._tls, "the native protocol", BACKLOG, balanced
        )

    def write(self, connection: int, buffers: list[Buffer]) -> None:
        """Sends to a client, if it is still there."""
        if (session := self.connections.get(connection)) is not None:
            session.socket.write(buffers)

    def abort(self, connection: int) -> None:
        """Ends a connection at once, if it is still there."""
        if (session := self.connections.get(connection)) is not None:
            session.abort()

    # -- the end ---------------------------------------------------------------------------------------------

    def stop_accepting(self) -> None:
        """Closes the listening socket and reads no more requests; answers still leave."""
        if self._listener is not None:
            self._listener.close()
        self.sessions.stop()

    async def close(self, timeout_seconds: float) -> None:
        """Sends what is left to send, closes all connections, and drops those that take too long."""
        for session in list(self.connections.values()):
            session.socket.close()
        if self.connections:
            self._empty.clear()
            await came(self._empty, timeout_seconds)
        if self.connections:
            logger.warning(
                "closed %(connections)d connections that did not read their last answers",
                {"connections": len(self.connections)},
            )
        self.drop_all()

    def drop_all(self) -> None:
        """Ends all connections at once."""
        self.stop_accepting()
        for session in list(self.connections.values()):
            session.abort()


def _now_us() -> int:
    return time.monotonic_ns() // 1_000


def _later(seconds: float, call: Callable[[], None]) -> asyncio.TimerHandle:
    return asyncio.get_running_loop().call_later(seconds, call)

"""The native protocol's server: sockets in, frames to the driver, answers out. It decides nothing about queues.

Every buffer has a bound (see `native_connection`), and while the node is congested nobody is read from.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence

from penstock.model.batch import Buffer
from penstock.runtime.cluster.streams import Certified, Door, listen
from penstock.runtime.native.bad_connections import BadConnections
from penstock.runtime.native.connection import Connection, Handler
from penstock.runtime.native.proxy_headers import TrustedBalancers
from penstock.streams.waiting import came
from penstock.wire.proxy_protocol import ProxyHeader
from penstock.wire.strangers import Strangers

log = logging.getLogger(__name__)

BACKLOG = 1024


class _Balanced:
    """See `Balanced`: connections of a server that come through balancers."""

    def __init__(self, server: Server, balancers: TrustedBalancers) -> None:
        self._server = server
        self.trusts = balancers.trusts

    def make(self, header: ProxyHeader) -> Connection:
        return Connection(self._server, header)


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
        self.max_connections = max_connections
        self.secret = secret
        """Of the cluster: who connects must prove first that it knows it; None: nobody has to."""
        self.place = place
        """Where the cluster looks for this process: who proves to know the secret says that it means this address."""
        self._tls = tls
        """What is shown to who connects; that of a cluster asks for a certificate of its authority in return."""
        self._balancers = TrustedBalancers(trusted_proxies) if trusted_proxies else None
        """Who is believed when it says whose connection it passes on; None: nobody is."""
        self.write_buffer_bytes = write_buffer_bytes
        self.hello_timeout_seconds = hello_timeout_ms / 1000
        self.connections: dict[int, Connection] = {}
        self.strangers: Strangers[Connection] = Strangers(max_connections)
        """Those of them that have not shown yet who they are."""
        self.turned_away = 0
        """Connections that are refused and may still read why."""
        self.held: set[Connection] = set()
        """Connections with bytes that wait until the node is no longer congested."""
        self.partial_bytes = 0
        self.bad = BadConnections(log)
        self.accepting = False
        self._next_connection = 1
        self._listener: Door | None = None
        self._driver: Handler | None = None
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def driver(self) -> Handler:
        """Who handles what arrives."""
        assert self._driver is not None, "the server is not started"
        return self._driver

    async def start(self, driver: Handler, listener: socket.socket) -> None:
        """Listens on a socket that is bound."""
        self._driver = driver
        self.accepting = True
        balanced = _Balanced(self, self._balancers) if self._balancers is not None else None
        self._listener = await listen(
            lambda: Connection(self), listener, self._tls, "the native protocol", BACKLOG, balanced
        )

    def write(self, connection: int, buffers: list[Buffer]) -> None:
        """Sends to a client, if it is still there."""
        if (client := self.connections.get(connection)) is not None:
            client.write(buffers)

    def abort(self, connection: int) -> None:
        """Ends a connection at once, if it is still there."""
        if (client := self.connections.get(connection)) is not None:
            client.abort()

    def congestion_changed(self, congested: bool) -> None:
        """Goes on reading where reading was held back; holding back happens as bytes arrive."""
        if not congested:
            held, self.held = self.held, set()
            for client in held:
                client.go_on()

    # -- connections -----------------------------------------------------------------------------------------

    def admit(self, client: Connection) -> int | None:
        """The number of a new connection, or None where there is no room for it."""
        if not self.accepting:
            return None
        if len(self.connections) >= self.max_connections:
            oldest = self.strangers.oldest
            if oldest is None:
                return None
            self.bad.tell(
                "many",
                "closed the connection from %(address)s, which sent no hello, to make room for new ones",
                address=oldest.peer,
            )
            oldest.give_way()
        number = self._next_connection
        self._next_connection += 1
        self.connections[number] = client
        self.strangers.enter(client)
        self._empty.clear()
        self.driver.connected(number)
        return number

    def forget(self, client: Connection, number: int) -> None:
        """A connection is closed."""
        del self.connections[number]
        self.strangers.leave(client)
        self.held.discard(client)
        self.driver.disconnected(number)
        if not self.connections:
            self._empty.set()

    # -- the end ---------------------------------------------------------------------------------------------

    def stop_accepting(self) -> None:
        """Closes the listening socket and reads no more requests; answers still go out."""
        self.accepting = False
        if self._listener is not None:
            self._listener.close()
        for client in self.connections.values():
            client.stop_reading()

    async def close(self, timeout_seconds: float) -> None:
        """Sends what is left to send, closes all connections, and drops those that take too long."""
        for client in list(self.connections.values()):
            client.close()
        await came(self._empty, timeout_seconds)
        if self.connections:
            log.warning(
                "closed %(connections)d connections that did not read their last answers",
                {"connections": len(self.connections)},
            )
        self.drop_all()

    def drop_all(self) -> None:
        """Ends everything at once: there is nobody left to answer."""
        self.stop_accepting()
        for client in list(self.connections.values()):
            client.abort()

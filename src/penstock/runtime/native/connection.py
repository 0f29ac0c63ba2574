"""A client's connection to the native protocol's server: a socket with its session (`wire.client_session`), which decides
what is read.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import cast

from penstock.model.batch import Buffer
from penstock.runtime.engine.ended_transport import ENDED
from penstock.runtime.http.peer import is_secure, peer_of
from penstock.runtime.http.tls import shown_in
from penstock.runtime.native.proxy_headers import client_of
from penstock.sqs.protocols.http import Peer
from penstock.streams.framed import write_together
from penstock.wire.client_session import ClientSession
from penstock.wire.client_sessions import ClientSessions
from penstock.wire.proxy_protocol import ProxyHeader


class Connection(asyncio.Protocol):
    """See `ClientSocket`."""

    def __init__(self, sessions: ClientSessions[Connection], header: ProxyHeader | None = None) -> None:
        """`header`: the client's address from a trusted balancer."""
        self._header = header
        self._write_buffer_bytes = sessions.terms.write_buffer_bytes
        self.session = ClientSession(sessions, self)
        self._transport: asyncio.Transport

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._write_buffer_bytes)
        connection_socket = self._transport.get_extra_info("socket")
        if connection_socket is not None:
            connection_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.session.opened()

    def data_received(self, data: bytes) -> None:
        self.session.arrived(data)

    def connection_lost(self, error: Exception | None) -> None:
        self.session.lost()
        # Nothing is left that only a look at all objects would find (`processes/collector.py`).
        self._transport = ENDED
        del self.session

    def pause_writing(self) -> None:
        self.session.behind()

    def resume_writing(self) -> None:
        self.session.caught_up()

    # -- called by the session -------------------------------------------------------------------------------

    @property
    def peer(self) -> str:
        """The client, for the log."""
        if self._header is not None:
            return f"{self._header.address or 'a client'} (behind a balancer)"
        name = self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if name else "a client"

    @property
    def is_closing(self) -> bool:
        """Whether it is about to end, or gone."""
        return self._transport.is_closing()

    @property
    def unread_bytes(self) -> int:
        """How much waits to be sent."""
        return self._transport.get_write_buffer_size()

    def say(self, frame: Sequence[Buffer]) -> None:
        """Writes what is no answer."""
        self._transport.write(b"".join(frame))

    def end_output(self) -> None:
        """Nothing more is written."""
        if self._transport.can_write_eof():  # TLS has no half-closed connections
            self._transport.write_eof()

    def pause_reading(self) -> None:
        """Reads nothing more."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Reads on."""
        self._transport.resume_reading()

    def abort(self) -> None:
        """Closes at once."""
        self._transport.abort()

    # -- called by the server --------------------------------------------------------------------------------

    @property
    def transport(self) -> asyncio.Transport:
        """The socket."""
        return self._transport

    @property
    def client(self) -> Peer:
        """The client itself, also behind a balancer."""
        if self._header is not None:
            return client_of(self._header, is_secure(self._transport))
        return peer_of(self._transport)

    @property
    def channel(self) -> bytes:
        """The identity of this server for a client that connects to it directly: see `channel_of`."""
        tls = self._transport.get_extra_info("ssl_object")
        return shown_in(tls.context) if tls is not None else b""

    def write(self, buffers: list[Buffer]) -> None:
        """Queues answers; the event loop sends them at the end of its turn."""
        transport = self._transport
        if transport.is_closing():
            return
        size = sum(map(len, buffers))
        self.session.written(size)
        write_together(transport, buffers, size)

    def close(self) -> None:
        """Closes when everything written has been sent."""
        self.session.is_stopped = True
        self._transport.close()

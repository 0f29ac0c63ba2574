"""A client's connection to the native protocol's server: frames in, answers out, and no more of either than it has room for.

A frame that has not arrived whole counts against a budget that all connections share; a client that does not read its
answers is not read from, and is disconnected when they pile up further.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable, Sequence, Sized
from typing import Protocol, cast

from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.http.peer import is_secure, peer_of
from penstock.runtime.http.tls import shown_in
from penstock.runtime.native.bad_connections import BadConnections
from penstock.runtime.native.proxy_headers import client_of
from penstock.sqs.protocols.http import Peer
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, NONCE_BYTES, HandshakeError, ServerHandshake
from penstock.wire.messages import SERVICE, Failed, encode_message
from penstock.wire.proxy_protocol import ProxyHeader, begins_header
from penstock.wire.strangers import Strangers
from penstock.wire.tls_reasons import begins_tls

PARTIAL_FRAME_BYTES = 32 * limits.FRAME_BYTES
"""What all connections together may hold of frames that have not arrived whole."""
LINGER_SECONDS = 1.0
"""How long a client that is refused may take to read why."""
LINGER_AT_ONCE = 1_024
"""So many may do that, or an eighth of all connections; others that are refused are just cut off."""
ABANDONED_BUFFERS = 64
STALLED_SECONDS = 10.0
"""A client that has more than so many write buffers of answers to read, and reads nothing of them for so long,
has stopped reading for good."""
JOIN_BYTES = 16 * limits.KIBIBYTE
"""Answers smaller than this are joined into one write: copying is cheaper than a vector of small pieces."""


class Handler(Protocol):
    """Who handles what arrives: the driver of a node, or a gateway to a cluster."""

    @property
    def congested(self) -> bool:
        """Whether nobody is to be read from for the moment."""
        ...

    def connected(self, connection: int) -> None:
        """A client has connected."""
        ...

    def behind(self, connection: int) -> None:
        """A client does not read what it is sent."""
        ...

    def caught_up(self, connection: int) -> None:
        """A client has read what it was sent."""
        ...

    def disconnected(self, connection: int) -> None:
        """A client is gone."""
        ...

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """Whole frames arrived."""
        ...


class Host(Protocol):
    """What a connection needs of the server that it belongs to."""

    max_connections: int
    secret: bytes | None
    place: str
    write_buffer_bytes: int
    hello_timeout_seconds: float
    held: set[Connection]
    strangers: Strangers[Connection]
    turned_away: int
    partial_bytes: int
    bad: BadConnections

    @property
    def connections(self) -> Sized:
        """All that are open."""
        ...

    @property
    def driver(self) -> Handler:
        """Who handles what arrives."""
        ...

    def admit(self, client: Connection) -> int | None:
        """The number of a new connection, or None where there is no room for it."""
        ...

    def forget(self, client: Connection, number: int) -> None:
        """A connection is closed."""
        ...


class Connection(asyncio.Protocol):
    """One client."""

    def __init__(self, server: Host, header: ProxyHeader | None = None) -> None:
        """`header`: what a balancer that is trusted says of the connection."""
        self._server = server
        self._header = header
        self._reader = FrameReader()
        self._number = 0
        self._transport: asyncio.Transport
        self._hello_timer: asyncio.TimerHandle | None = None
        self._held: list[bytes] = []
        self._partial_bytes = 0
        self._unread_answers = False
        self._written_bytes = 0
        self._stall_timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._handshake: ServerHandshake | None = None

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        server = self._server
        self._transport.set_write_buffer_limits(high=server.write_buffer_bytes)
        connection_socket = self._transport.get_extra_info("socket")
        if connection_socket is not None:
            connection_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        number = server.admit(self)
        if number is None:
            server.bad.tell(
                "full",
                "refused a connection from %(address)s: %(connections)d are open",
                address=self.peer,
                connections=len(server.connections),
            )
            self.refuse(
                PenstockError(
                    ErrorCode.LIMIT_REACHED,
                    f"this server takes {server.max_connections} connections and has no room for another; "
                    "close some, or raise native.max_connections",
                )
            )
            return
        self._number = number
        loop = asyncio.get_running_loop()
        self._hello_timer = loop.call_later(server.hello_timeout_seconds, self._no_hello)
        if server.secret is not None:
            self._handshake = ServerHandshake(server.secret, SERVICE, os.urandom(NONCE_BYTES), server.place)
            self._reader = FrameReader(HANDSHAKE_FRAME_BYTES)
            self._transport.write(b"".join(encode_frame(0, self._handshake.challenge())))

    def data_received(self, data: bytes) -> None:
        if self._stopped:
            return
        server = self._server
        if server.driver.congested:
            self._held.append(data)
            server.held.add(self)
            self._transport.pause_reading()
            return
        self._take(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._leave()

    def pause_writing(self) -> None:
        self._unread_answers = True
        self._transport.pause_reading()
        if self._number:
            self._server.driver.behind(self._number)
        if self._stall_timer is None:
            self._watch_reader()

    def resume_writing(self) -> None:
        self._unread_answers = False
        if self._number:
            self._server.driver.caught_up(self._number)
        self._resume_reading()

    # -- called by the server --------------------------------------------------------------------------------

    @property
    def transport(self) -> asyncio.Transport:
        """The socket."""
        return self._transport

    def allow(self, frame_bytes: int) -> None:
        """Frames may be so long from now on."""
        self._reader.allow(frame_bytes)
        if frame_bytes >= limits.FRAME_BYTES:
            self._server.strangers.leave(self)  # it is known who this is

    @property
    def client(self) -> Peer:
        """Who this is: the client itself, also behind a balancer."""
        if self._header is not None:
            return client_of(self._header, is_secure(self._transport))
        return peer_of(self._transport)

    @property
    def channel(self) -> bytes:
        """What a client was shown that speaks to this server itself: see `channel_of`."""
        tls = self._transport.get_extra_info("ssl_object")
        return shown_in(tls.context) if tls is not None else b""

    @property
    def peer(self) -> str:
        """Who this is, for the log."""
        if self._header is not None:
            return f"{self._header.address or 'a client'} (behind a balancer)"
        name = self._transport.get_extra_info("peername")
        return f"{name[0]}:{name[1]}" if name else "a client"

    def write(self, buffers: list[Buffer]) -> None:
        """Queues answers; the event loop sends them at the end of its turn."""
        transport = self._transport
        if transport.is_closing():
            return
        size = sum(map(len, buffers))
        self._written_bytes += size
        if len(buffers) == 1:
            transport.write(buffers[0])
        elif size <= JOIN_BYTES:
            transport.write(b"".join(buffers))
        else:
            transport.writelines(buffers)

    def refuse(self, error: PenstockError, request_id: int = 0) -> None:
        """Says what is wrong, once, and closes.

        What still arrives is thrown away for a moment: closing a socket with unread bytes in it resets the
        connection, and the client would never see why.
        """
        self._leave()
        server = self._server
        if server.turned_away >= min(LINGER_AT_ONCE, max(16, server.max_connections // 8)):
            self._transport.abort()
            return
        server.turned_away += 1
        answer = encode_frame(request_id, encode_message(Failed(error.code, error.message)))
        self._transport.write(b"".join(answer))
        if self._transport.can_write_eof():  # TLS has no half-closed connections
            self._transport.write_eof()
        self._transport.resume_reading()
        asyncio.get_running_loop().call_later(LINGER_SECONDS, self._turned_away)

    def go_on(self) -> None:
        """Takes what was held back while the node was congested."""
        held, self._held = self._held, []
        for data in held:
            if not self._stopped:
                self._take(data)
        self._resume_reading()

    def stop_reading(self) -> None:
        """No request is taken from here on."""
        self._stopped = True
        self._held.clear()
        if not self._transport.is_closing():
            self._transport.pause_reading()

    def close(self) -> None:
        """Closes when everything written has been sent."""
        self._stopped = True
        self._transport.close()

    def abort(self) -> None:
        """Closes at once."""
        self._stopped = True
        self._transport.abort()

    def give_way(self) -> None:
        """Closes at once, and counts no more."""
        self._leave()
        self._transport.abort()

    # -- inside ----------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        server = self._server
        try:
            if self._hello_timer is not None and begins_tls(data):
                raise PenstockError(
                    ErrorCode.BAD_FRAME, "it speaks TLS, and there is no native.tls_certificate"
                )
            if self._hello_timer is not None and begins_header(data):
                raise PenstockError(
                    ErrorCode.BAD_FRAME,
                    "it begins with a header of the PROXY protocol, and its address is not among native.trusted_proxies",
                )
            frames = self._reader.feed(data)
            self._count_partial(self._reader.buffered_bytes)
        except PenstockError as error:
            server.bad.tell(
                "frames",
                "closed the connection from %(address)s: %(error)s",
                address=self.peer,
                error=error.message,
            )
            self.refuse(error)
            return
        if frames and self._handshake is not None:
            frames = self._introduce(self._handshake, frames)
        if frames:
            if self._hello_timer is not None:
                self._hello_timer.cancel()
                self._hello_timer = None
            server.driver.handle(self._number, frames)

    def _introduce(self, handshake: ServerHandshake, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Takes the proof of whoever connected; a stranger is cut off and told nothing."""
        try:
            accepted = handshake.accept(frames[0].head)
        except HandshakeError as error:
            self._server.bad.tell(
                "stranger",
                "closed the connection from %(address)s: %(error)s",
                address=self.peer,
                error=error,
            )
            self.abort()
            return ()
        self._handshake = None
        self._server.strangers.leave(self)
        self._reader = FrameReader()
        self._transport.write(b"".join(encode_frame(0, accepted)))
        return frames[1:]

    def _count_partial(self, partial_bytes: int) -> None:
        """Keeps the sum over all connections within its budget."""
        grown_bytes = partial_bytes - self._partial_bytes
        if grown_bytes == 0:
            return
        server = self._server
        self._partial_bytes = partial_bytes
        server.partial_bytes += grown_bytes
        if grown_bytes > 0 and server.partial_bytes > PARTIAL_FRAME_BYTES:
            raise PenstockError(
                ErrorCode.OVERLOADED, "too many large requests are arriving at once; connect again and retry"
            )

    def _leave(self) -> None:
        """From here on the connection counts no more, and nothing it sends is taken."""
        self._stopped = True
        self._held.clear()
        for timer in (self._hello_timer, self._stall_timer):
            if timer is not None:
                timer.cancel()
        self._server.partial_bytes -= self._partial_bytes
        self._partial_bytes = 0
        self._reader = FrameReader()
        number, self._number = self._number, 0
        if number:
            self._server.forget(self, number)

    def _turned_away(self) -> None:
        self._server.turned_away -= 1
        self._transport.abort()

    def _watch_reader(self, sent_bytes: int = -1) -> None:
        """Looks at a client that is behind with reading from time to time, until it has caught up."""
        self._stall_timer = None
        unread_bytes = self._transport.get_write_buffer_size()
        if not self._unread_answers or self._transport.is_closing():
            return
        sent_now = self._written_bytes - unread_bytes
        if sent_now == sent_bytes and unread_bytes > ABANDONED_BUFFERS * self._server.write_buffer_bytes:
            self._server.bad.tell(
                "unread",
                "closed the connection from %(address)s: it left %(unread_bytes)d bytes of answers unread",
                address=self.peer,
                unread_bytes=unread_bytes,
            )
            self.abort()
            return
        loop = asyncio.get_running_loop()
        self._stall_timer = loop.call_later(STALLED_SECONDS, self._watch_reader, sent_now)

    def _resume_reading(self) -> None:
        if not (self._stopped or self._unread_answers or self._held or self._transport.is_closing()):
            self._transport.resume_reading()

    def _no_hello(self) -> None:
        seconds = self._server.hello_timeout_seconds
        self._server.bad.tell(
            "silent",
            "closed the connection from %(address)s: no hello within %(seconds)g s",
            address=self.peer,
            seconds=seconds,
        )
        self.refuse(PenstockError(ErrorCode.BAD_FRAME, f"no hello arrived within {seconds:g} s"))

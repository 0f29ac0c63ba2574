"""One client of the HTTP server: its requests are handled side by side, its answers leave in order.

A client that stops sending has either only closed its half, or is gone: the network tells both the same way. It
still gets the answers that are there and those of requests that cannot be cancelled. A request that can be
cancelled is: a long poll must not take messages for a client that is gone, and who aborts one closes its
connection. Over TLS there is no half: whatever is not answered by then is cancelled.

While a connection is not read from (it has too many requests under way and sent more, or the server is held) its
end is not seen either, until there is room again or an answer cannot be sent.
"""

from __future__ import annotations

import asyncio
import socket
from typing import cast

from penstock.runtime.http.arrivals import Arrivals
from penstock.runtime.http.deadlines import Table
from penstock.runtime.http.house import House
from penstock.runtime.http.peer import peer_of
from penstock.runtime.http.refusal import Refusal
from penstock.runtime.http.request_reader import RequestReader
from penstock.runtime.http.under_way import UnderWay
from penstock.runtime.http.unread import unread_bytes_of
from penstock.sqs.protocols.http import Peer


class HttpConnection(asyncio.Protocol):
    """Moves bytes between a client and the handler."""

    __slots__ = (
        "_server",
        "arrivals",
        "closing",
        "ended",
        "gone",
        "peer",
        "table",
        "transport",
        "under_way",
        "unread_bytes",
    )

    def __init__(self, server: House) -> None:
        self._server = server
        self.transport: asyncio.Transport
        self.peer = Peer("", secure=False)
        self.under_way = UnderWay(self, server)
        self.arrivals = Arrivals(self, server, self.under_way)
        self.ended = False
        """Whether the client said that it sends nothing more."""
        self.closing = False
        self.gone = False
        self.table: Table | None = None
        self.unread_bytes = 0

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=self._server.limits.write_buffer_bytes)
        connection_socket = self.transport.get_extra_info("socket")
        if connection_socket is not None and connection_socket.family != socket.AF_UNIX:
            connection_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer = peer_of(self.transport)
        self.under_way.used_at = self._server.deadlines.now()
        refusal = self._server.admit(self)
        if refusal is not None:
            self.refuse(refusal)
        self._server.deadlines.settle(self)

    def data_received(self, data: bytes) -> None:
        self._server.arrives(self, data)

    def eof_received(self) -> bool:
        self._server.take_arrived()
        if self.closing:
            return False
        self.ended = True
        self.arrivals.end()
        if self.peer.secure:
            self._abandon()
        else:
            self.give_up()
        if self.begun:
            return True
        self.finish(linger=False)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._leave()

    def pause_writing(self) -> None:
        self.under_way.unread = True
        self._server.deadlines.settle(self)

    def resume_writing(self) -> None:
        self.under_way.unread = False
        self.go_on()

    # -- called by the server and its deadlines --------------------------------------------------------------

    @property
    def reader(self) -> RequestReader:
        """Where the request is that is arriving."""
        return self.arrivals.reader

    @property
    def paused(self) -> bool:
        """Whether its socket is not read from."""
        return self.arrivals.paused

    @property
    def begun(self) -> bool:
        """Whether a request is arriving, waits or is under way."""
        return bool(self.under_way.exchanges) or self.arrivals.begun

    @property
    def late_in_sending(self) -> bool:
        """Whether the client is to send the rest of a request; one that waits for leave, or is not read, is not."""
        arrivals = self.arrivals
        reader = arrivals.reader
        return reader.arriving and not (reader.continue_due or arrivals.paused or arrivals.deaf)

    @property
    def late_in_reading(self) -> bool:
        """Whether the client is to read what it was sent."""
        return self.under_way.unread

    @property
    def in_head(self) -> bool:
        """Whether headers are arriving."""
        return self.arrivals.reader.in_head

    @property
    def served(self) -> bool:
        """Whether a request on it was ever answered with something else than a refusal."""
        return self.under_way.served

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way."""
        return bool(self.under_way.exchanges)

    @property
    def used_at(self) -> float:
        """When an answer was sent last."""
        return self.under_way.used_at

    @property
    def address(self) -> str:
        """Where the client is."""
        return self.peer.address

    def measure_unread(self) -> int:
        """What the client has not read; what was sent since it was asked last does not hide what it read."""
        self.unread_bytes += self.under_way.sent_unread_bytes
        self.under_way.sent_unread_bytes = 0
        return unread_bytes_of(self.transport)

    def take(self, data: bytes) -> None:
        """Takes what has arrived."""
        self.arrivals.take(data)

    def go_on(self) -> None:
        """Takes what waits, as far as there is room for it."""
        self.arrivals.go_on()

    def has_room(self) -> None:
        """Answers were sent."""
        self.arrivals.has_room()

    def wind_down(self) -> None:
        """The server stops: closes unless a request has begun, which is answered first."""
        if not (self.begun or self.closing):
            self.finish(linger=False)

    # -- the end ---------------------------------------------------------------------------------------------

    def refuse(self, refusal: Refusal) -> None:
        """Says what is wrong when it is its turn, and closes."""
        self.arrivals.refuse(refusal)
        self.arrivals.go_on()

    def finish(self, *, linger: bool) -> None:
        """Closes when everything written has been sent.

        Closing a socket with unread bytes in it resets the connection, and the client would never see why it
        was refused: what it still sends is thrown away for a while.
        """
        if self.gone or self.closing:
            return
        self.closing = self.arrivals.deaf = True
        self._abandon()
        self.under_way.write_out()
        transport = self.transport
        if not linger or self.ended or transport.is_closing():
            transport.close()
            self._server.deadlines.settle(self)
            return
        if transport.can_write_eof():
            transport.write_eof()
        if self.arrivals.paused:
            self.arrivals.read_again()
        self._server.deadlines.linger(self)

    def abort(self) -> None:
        """Closes at once."""
        self.transport.abort()
        self._leave()

    def give_up(self) -> None:
        """Cancels what can be cancelled, and with it whatever could only be answered after it."""
        if (kept := self.under_way.first_cancellable()) is not None:
            self._abandon(kept)

    def _abandon(self, kept: int = 0) -> None:
        """Whatever waits or is under way is for nobody, but for the first ones."""
        self.arrivals.clear()
        self.under_way.abandon(kept)

    def _leave(self) -> None:
        self.gone = self.closing = True
        self.arrivals.stop()
        self._abandon()
        self._server.forget(self)

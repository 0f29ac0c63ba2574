"""One client of the HTTP server: its requests are handled in parallel, its answers leave in order.

Input is accepted as far as there is room, and held back beyond that. Every connection may have a limited number of
requests in progress, and all together may keep a limited number of bytes. What exceeds the limit of one connection is not
read from its socket for a while; what exceeds the common limit is refused.

A client that stops sending has either only closed its half, or is gone: the network does not distinguish them. It still
gets the answers that are there and those of requests that cannot be cancelled. A request that can be cancelled is
cancelled: a long poll must not receive messages for a client that is gone, and a client that aborts one closes its
connection. Over TLS there is no half close: all unanswered requests are cancelled.

While a connection is not read (it has too many requests in progress and sent more, or the server is held) its end is not
noticed either, until there is room again or an answer cannot be sent.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import cast

from penstock.runtime.engine.ended_transport import ENDED
from penstock.runtime.http.answers import CONTINUE, Refusal
from penstock.runtime.http.buffer_budget import OVERLOADED
from penstock.runtime.http.deadlines import Waiting
from penstock.runtime.http.exchanges import FAILED, Exchange, Exchanges
from penstock.runtime.http.peer import peer_of, unread_bytes_of
from penstock.runtime.http.request_reader import SLICE_BYTES, HeldBytes, RequestReader
from penstock.runtime.http.server_state import HttpServerState
from penstock.sqs.protocols.http import HttpRequest, Peer

logger = logging.getLogger(__name__)


class HttpConnection(asyncio.Protocol):
    """Moves bytes between a client and the handler."""

    __slots__ = (
        "_counted_bytes",
        "_deaf",
        "_held",
        "_server",
        "_working",
        "closing",
        "ended",
        "exchanges",
        "gone",
        "paused",
        "peer",
        "reader",
        "table",
        "transport",
        "unread_bytes",
    )

    def __init__(self, server: HttpServerState) -> None:
        self._server = server
        self.transport: asyncio.Transport
        self.peer = Peer("", secure=False)
        self.exchanges = Exchanges(self, server)
        self.reader = RequestReader(server.limits)
        self._held = HeldBytes()
        self._counted_bytes = 0
        """The part of the reader and of the held bytes that is counted for all connections."""
        self._working = False
        """Whether a call further down the stack continues with waiting work."""
        self.paused = False
        """Whether the socket is not read from."""
        self._deaf = False
        """Whether what arrives is thrown away."""
        self.ended = False
        """Whether the client has closed its half."""
        self.closing = False
        self.gone = False
        self.table: Waiting | None = None
        self.unread_bytes = 0

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=self._server.limits.write_buffer_bytes)
        connection_socket = self.transport.get_extra_info("socket")
        if connection_socket is not None and connection_socket.family != socket.AF_UNIX:
            connection_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.peer = peer_of(self.transport)
        self.exchanges.used_at = self._server.deadlines.now()
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
        if not self._held:  # held bytes still count
            self.reader.stop()
        if self.peer.secure:
            self._abandon()
        else:
            self._give_up()
        if self.begun:
            return True
        self.finish(linger=False)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._leave()
        self.transport = ENDED
        self.reader.end()
        self.exchanges.end()

    def pause_writing(self) -> None:
        self.exchanges.unread = True
        self._server.deadlines.settle(self)

    def resume_writing(self) -> None:
        self.exchanges.unread = False
        self.go_on()

    # -- called by the server and its deadlines --------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether a request is arriving, waits or is under way."""
        return bool(self.is_asking or self.reader.arriving or self.reader.arrived or self._held)

    @property
    def late_in_sending(self) -> bool:
        """Whether the client is to send the rest of a request; one that waits for leave, or is not read, is not."""
        return self.reader.arriving and not (self.reader.continue_due or self.paused or self._deaf)

    @property
    def late_in_reading(self) -> bool:
        """Whether the client is to read what it was sent."""
        return self.exchanges.unread

    @property
    def in_head(self) -> bool:
        """Whether headers are arriving."""
        return self.reader.in_head

    @property
    def served(self) -> bool:
        """Whether a request on it was ever answered with something else than a refusal."""
        return self.exchanges.served

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way."""
        return bool(self.exchanges.under_way)

    @property
    def used_at(self) -> float:
        """When an answer was sent last."""
        return self.exchanges.used_at

    @property
    def address(self) -> str:
        """The client's address."""
        return self.peer.address

    def measure_unread(self) -> int:
        """Measures what the client has not read; data sent since the last measurement does not hide its progress."""
        self.unread_bytes += self.exchanges.sent_unread_bytes
        self.exchanges.sent_unread_bytes = 0
        return unread_bytes_of(self.transport)

    # -- taking what has arrived -----------------------------------------------------------------------------

    def take(self, data: bytes) -> None:
        """Reads the requests out of what has arrived, and hands them over as far as there is room for them."""
        if self._deaf:
            return
        server, exchanges = self._server, self.exchanges
        self._working = True
        if (
            self._held.size
            or server.holding
            or ((exchanges.under_way or exchanges.unread) and exchanges.full)
        ):
            self._held.add(data)
            self._wait_for_room()
        elif len(data) <= SLICE_BYTES:
            self._feed(data)
        else:
            self._take_slices(data)
        self._working = False
        if self.reader.arriving or self.table is not server.deadlines.idle:
            self._go_on_waiting()

    def go_on(self) -> None:
        """Takes what waits, as far as there is room for it."""
        if self._working or self.gone:
            return
        self._working = True
        self._dispatch()
        while self._held and not (self._deaf or self._blocked()):
            self._take_slices(self._held.take())
        self._working = False
        if self.paused and not self.closing and not self._held and not self._blocked():
            self._read_again()
        elif self.paused and self._server.holding:
            self._server.held.add(self)
        self._go_on_waiting()

    def has_room(self) -> None:
        """Answers were sent."""
        if not self._working and (self.paused or self.reader.arrived or self.reader.continue_due):
            self.go_on()

    def _take_slices(self, data: bytes | memoryview) -> None:
        """Reads requests out of bytes in slices, and holds back the rest when there is no room for more."""
        if len(data) <= SLICE_BYTES:
            self._feed(data)
            return
        view, position = memoryview(data), 0
        while position < len(view) and not self._deaf:
            if self._blocked():
                self._held.put_back(view[position:])
                self._wait_for_room()
                return
            end = position + SLICE_BYTES + self.reader.missing_bytes
            self._feed(view[position:end])
            position = end

    def _feed(self, data: bytes | memoryview) -> None:
        try:
            self.reader.feed(data)
        except Refusal as refusal:
            self._say(refusal)
        if self.reader.arriving or self._counted_bytes:
            self._count_waiting()
        if self.reader.arrived:
            self._dispatch()

    # -- handing over ----------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Hands requests to the handler as long as there is room."""
        arrived, server, exchanges = self.reader.arrived, self._server, self.exchanges
        under_way = exchanges.under_way
        while arrived:
            exchange = arrived[0]
            request = exchange.request
            if request is None:  # a refusal, for which there is always room
                under_way.append(arrived.popleft())
                exchanges.answered(exchange)
                continue
            if (under_way or exchanges.unread or server.holding) and self._blocked():
                self._pause()
                self._count_waiting()
                return
            under_way.append(arrived.popleft())
            exchange.exchanges = exchanges
            self._hand_over(exchange, request)
        if self.reader.arriving:
            server.deadlines.next_arrives(self)

    def _hand_over(self, exchange: Exchange, request: HttpRequest) -> None:
        server = self._server
        exchange.request = None
        size = len(request.body)
        if not server.budget.has_room(self, size):
            exchange.reply(server.refusal(503, OVERLOADED))
            return
        try:
            cancel = server.handler(request, self.peer, exchange.reply)
        except Exception:
            logger.exception(
                "could not handle a request from %(address)s: this is a defect of Penstock; please report it",
                {"address": self.address},
            )
            exchange.reply(server.refusal(500, FAILED))
            return
        if exchange.exchanges is not None:
            exchange.cancel = cancel
            self.exchanges.count(exchange, size)
            if self.ended:
                self._give_up()
        elif exchange.response is None:  # the handler dropped the connection it works for
            exchange.cancel = cancel
            exchange.abandon()

    # -- room ------------------------------------------------------------------------------------------------

    def _blocked(self) -> bool:
        """Whether no further request may be handed over now."""
        return self._server.holding or self.exchanges.full

    def _wait_for_room(self) -> None:
        self._pause()
        self._count_waiting()
        if self._deaf:
            self._dispatch()

    def _pause(self) -> None:
        if self._server.holding:
            self._server.held.add(self)
        if not (self.paused or self._deaf or self.ended or self.transport.is_closing()):
            self.paused = True
            self.transport.pause_reading()

    def _read_again(self) -> None:
        """Reads from the socket, unless nothing can come."""
        self.paused = False
        if not (self.ended or self.transport.is_closing()):
            self.transport.resume_reading()

    def _count_waiting(self) -> None:
        """Keeps the sum of what all connections hold within its budget."""
        size = self.reader.buffered_bytes + self._held.size
        grown_bytes = size - self._counted_bytes
        self._counted_bytes = size
        is_unfinished = self.reader.arriving and size > 0
        if not self._server.budget.takes(self, grown_bytes, is_unfinished=is_unfinished):
            self._say(Refusal(503, OVERLOADED))

    def _go_on_waiting(self) -> None:
        """Lets a client send its body that asked for leave, when it is its turn, and says how long it may take."""
        reader, server = self.reader, self._server
        if reader.continue_due and not (self.exchanges.under_way or reader.arrived or self.closing):
            if server.holding:
                server.held.add(self)
            else:
                reader.continue_due = False
                self.exchanges.send(CONTINUE)
        server.deadlines.settle(self)

    # -- the end ---------------------------------------------------------------------------------------------

    def refuse(self, refusal: Refusal) -> None:
        """Says what is wrong when it is its turn, and closes."""
        self._say(refusal)
        self._count_waiting()
        self.go_on()

    def _say(self, refusal: Refusal) -> None:
        """Stops reading; the refusal is sent after all earlier answers."""
        if self._deaf:
            return
        self._deaf = True
        self._held.clear()
        self.reader.stop()
        exchange = Exchange(None, keep_alive=False, old_version=False, bodiless=False)
        exchange.linger = True
        exchange.response = self._server.refusal(refusal.status, refusal.sentence)
        self.reader.arrived.append(exchange)

    def finish(self, *, linger: bool) -> None:
        """Closes when everything written has been sent.

        Closing a socket with unread input resets the connection, and the client would never see the reason: so further
        input is read and dropped for a while.
        """
        if self.gone or self.closing:
            return
        self.closing = self._deaf = True
        self._abandon()
        self.exchanges.write_out()
        if not linger or self.ended or self.transport.is_closing():
            self.transport.close()
            self._server.deadlines.settle(self)
            return
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self.paused:
            self._read_again()
        self._server.deadlines.linger(self)

    def abort(self) -> None:
        """Closes at once."""
        self.transport.abort()
        self._leave()

    def _give_up(self) -> None:
        """Cancels what can be cancelled, and with it everything that could only be answered after it."""
        if (kept := self.exchanges.first_cancellable()) is not None:
            self._abandon(kept)

    def _abandon(self, kept: int = 0) -> None:
        """Drops all requests and answers except the first ones."""
        self.reader.arrived.clear()
        self._held.clear()
        self._server.budget.takes(self, -self._counted_bytes, is_unfinished=False)
        self._counted_bytes = 0
        self.exchanges.abandon(kept)

    def _leave(self) -> None:
        self.gone = self.closing = self._deaf = True
        self.reader.stop()
        self._abandon()
        self._server.forget(self)

"""What a client sends, on its way from bytes to the handler: taken as far as there is room, held back beyond that.

Every connection may have so many requests under way, and all together may keep so many bytes. What is too much for the
one is not read from its socket for a while; what is too much for all is refused.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from penstock.runtime.http.answers import CONTINUE
from penstock.runtime.http.exchange import Exchange
from penstock.runtime.http.held_bytes import HeldBytes
from penstock.runtime.http.house import OVERLOADED, Guest, House
from penstock.runtime.http.refusal import Refusal
from penstock.runtime.http.request_reader import SLICE_BYTES, RequestReader
from penstock.runtime.http.under_way import FAILED, UnderWay
from penstock.sqs.protocols.http import HttpRequest, Peer

log = logging.getLogger(__name__)


class Recipient(Guest, Protocol):
    """A connection, as far as what arrives on it knows it."""

    transport: asyncio.Transport
    peer: Peer
    ended: bool

    def give_up(self) -> None: ...


class Arrivals:
    """The reading side of one connection."""

    __slots__ = (
        "_connection",
        "_counted_bytes",
        "_held",
        "_server",
        "_under_way",
        "_working",
        "deaf",
        "paused",
        "reader",
    )

    def __init__(self, connection: Recipient, server: House, under_way: UnderWay) -> None:
        self._connection = connection
        self._server = server
        self._under_way = under_way
        self.reader = RequestReader(server.limits)
        self._held = HeldBytes()
        self._counted_bytes = 0
        """What of the reader and of the held bytes is in the sum of all connections."""
        self._working = False
        """Whether a call further down the stack goes on with whatever waits."""
        self.paused = False
        """Whether the socket is not read from."""
        self.deaf = False
        """Whether what arrives is thrown away."""

    @property
    def begun(self) -> bool:
        """Whether a request is arriving or waits."""
        reader = self.reader
        return bool(reader.arriving or reader.arrived or self._held)

    # -- taking ----------------------------------------------------------------------------------------------

    def take(self, data: bytes) -> None:
        """Reads the requests out of what has arrived, and hands them over as far as there is room for them."""
        if self.deaf:
            return
        server, under_way = self._server, self._under_way
        self._working = True
        if (
            self._held.size
            or server.holding
            or ((under_way.exchanges or under_way.unread) and under_way.full)
        ):
            self._held.add(data)
            self._wait_for_room()
        elif len(data) <= SLICE_BYTES:
            self._feed(data)
        else:
            self._take(data)
        self._working = False
        if self.reader.arriving or self._connection.table is not server.deadlines.idle:
            self._go_on_waiting()

    def go_on(self) -> None:
        """Takes what waits, as far as there is room for it."""
        connection = self._connection
        if self._working or connection.gone:
            return
        self._working = True
        self._dispatch()
        while self._held and not (self.deaf or self._blocked()):
            self._take(self._held.take())
        self._working = False
        if self.paused and not connection.closing and not self._held and not self._blocked():
            self.read_again()
        elif self.paused and self._server.holding:
            self._server.held.add(connection)
        self._go_on_waiting()

    def has_room(self) -> None:
        """Answers were sent."""
        if not self._working and (self.paused or self.reader.arrived or self.reader.continue_due):
            self.go_on()

    def _take(self, data: bytes | memoryview) -> None:
        """Reads requests out of bytes in slices, and holds back the rest when there is no room for more."""
        if len(data) <= SLICE_BYTES:
            self._feed(data)
            return
        view, position = memoryview(data), 0
        while position < len(view) and not self.deaf:
            if self._blocked():
                self._held.put_back(view[position:])
                self._wait_for_room()
                return
            end = position + SLICE_BYTES + self.reader.missing_bytes
            self._feed(view[position:end])
            position = end

    def _feed(self, data: bytes | memoryview) -> None:
        reader = self.reader
        try:
            reader.feed(data)
        except Refusal as refusal:
            self.refuse(refusal)
        if reader.arriving or self._counted_bytes:
            self._count_waiting()
        if reader.arrived:
            self._dispatch()

    # -- handing over ----------------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        """Hands requests to the handler as long as there is room."""
        arrived, server, under_way = self.reader.arrived, self._server, self._under_way
        exchanges = under_way.exchanges
        while arrived:
            exchange = arrived[0]
            request = exchange.request
            if request is None:  # a refusal, for which there is always room
                exchanges.append(arrived.popleft())
                under_way.answered(exchange)
                continue
            if (exchanges or under_way.unread or server.holding) and self._blocked():
                self._pause()
                self._count_waiting()
                return
            exchanges.append(arrived.popleft())
            exchange.under_way = under_way
            self._hand_over(exchange, request)
        if self.reader.arriving:
            server.deadlines.next_arrives(self._connection)

    def _hand_over(self, exchange: Exchange, request: HttpRequest) -> None:
        server, connection = self._server, self._connection
        exchange.request = None
        size = len(request.body)
        if server.buffered_bytes + size > server.limits.buffered_bytes:
            exchange.reply(server.refusal(503, OVERLOADED))
            return
        try:
            cancel = server.handler(request, connection.peer, exchange.reply)
        except Exception:
            log.exception(
                "could not handle a request from %(address)s: this is a defect of Penstock; please report it",
                {"address": connection.address},
            )
            exchange.reply(server.refusal(500, FAILED))
            return
        if exchange.under_way is not None:
            exchange.cancel = cancel
            self._under_way.count(exchange, size)
            if connection.ended:
                connection.give_up()
        elif exchange.response is None:  # the handler dropped the connection it works for
            exchange.cancel = cancel
            exchange.abandon()

    # -- room ------------------------------------------------------------------------------------------------

    def _blocked(self) -> bool:
        """Whether no further request may be handed over now."""
        return self._server.holding or self._under_way.full

    def _wait_for_room(self) -> None:
        self._pause()
        self._count_waiting()
        if self.deaf:
            self._dispatch()

    def _pause(self) -> None:
        connection = self._connection
        if self._server.holding:
            self._server.held.add(connection)
        if not (self.paused or self.deaf or connection.ended or connection.transport.is_closing()):
            self.paused = True
            connection.transport.pause_reading()

    def read_again(self) -> None:
        """Reads from the socket, unless nothing can come."""
        connection = self._connection
        self.paused = False
        if not (connection.ended or connection.transport.is_closing()):
            connection.transport.resume_reading()

    def _count_waiting(self) -> None:
        """Keeps the sum of what all connections hold within its budget."""
        server = self._server
        size = self.reader.buffered_bytes + self._held.size
        grown_bytes = size - self._counted_bytes
        self._counted_bytes = size
        server.buffered_bytes += grown_bytes
        if grown_bytes > 0 and server.buffered_bytes > server.limits.buffered_bytes:
            self.refuse(Refusal(503, OVERLOADED))

    def _go_on_waiting(self) -> None:
        """Lets a client send its body that asked for leave, when it is its turn, and says how long it may take."""
        reader, server, connection = self.reader, self._server, self._connection
        if reader.continue_due and not (self._under_way.exchanges or reader.arrived or connection.closing):
            if server.holding:
                server.held.add(connection)
            else:
                reader.continue_due = False
                self._under_way.send(CONTINUE)
        server.deadlines.settle(connection)

    # -- the end ---------------------------------------------------------------------------------------------

    def refuse(self, refusal: Refusal) -> None:
        """Nothing more is listened to; what is wrong is said after everything before it."""
        if self.deaf:
            return
        self.deaf = True
        self._held.clear()
        self.reader.stop()
        exchange = Exchange(None, keep_alive=False, old_version=False, bodiless=False)
        exchange.linger = True
        exchange.response = self._server.refusal(refusal.status, refusal.sentence)
        self.reader.arrived.append(exchange)

    def end(self) -> None:
        """The client sends nothing more; what is held back still counts."""
        if not self._held:
            self.reader.stop()

    def stop(self) -> None:
        """Nobody is there any more."""
        self.deaf = True
        self.reader.stop()

    def clear(self) -> None:
        """Forgets what was not handed over."""
        self.reader.arrived.clear()
        self._held.clear()
        self._server.buffered_bytes -= self._counted_bytes
        self._counted_bytes = 0

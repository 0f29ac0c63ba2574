"""One client of the HTTP server: its requests are handled side by side, its answers leave in order."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import deque
from typing import TYPE_CHECKING, cast

from penstock.runtime.http.answers import CONTINUE, encode_answer, plain_refusal
from penstock.runtime.http.exchange import Exchange
from penstock.runtime.http.held_bytes import HeldBytes
from penstock.runtime.http.peer import peer_of
from penstock.runtime.http.request_reader import SLICE_BYTES, Arrival, Refusal, RequestReader
from penstock.runtime.http.waiting import Waiting
from penstock.sqs.http import HttpResponse, Peer

if TYPE_CHECKING:
    from penstock.runtime.http.server import HttpServer

log = logging.getLogger(__name__)

CLOSE = "Connection: close\r\n"
KEEP_ALIVE = "Connection: keep-alive\r\n"


class HttpConnection(asyncio.Protocol):
    """Moves bytes between a client and the handler."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._reader = RequestReader(server.limits)
        self._transport: asyncio.Transport
        self._peer = Peer("", secure=False)
        self._under_way: deque[Exchange] = deque()
        self._under_way_bytes = 0
        self._held = HeldBytes()
        self._counted_bytes = 0
        self._waiting: Waiting[HttpConnection] | None = None
        self._working = False
        """Whether a call further down the stack goes on with whatever waits."""
        self._deaf = False
        """Whether what arrives is thrown away."""
        self._closing = False
        self._unread_answers = False
        self._unread_bytes = 0
        self._paused = False

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._server.limits.write_buffer_bytes)
        connection_socket = self._transport.get_extra_info("socket")
        if connection_socket is not None and connection_socket.family != socket.AF_UNIX:
            connection_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._peer = peer_of(self._transport)
        if (refusal := self._server.admit(self)) is not None:
            self._refuse(refusal)
        self._settle()

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        if self._blocked() or self._held:
            self._hold(data)
        else:
            self._working = True
            self._take(data)
            self._working = False
        self._settle()

    def eof_received(self) -> None:
        # A client that stops sending has gone: nobody waits for the answers of what is under way.
        self._abandon()
        self._closing = self._deaf = True
        self._settle()

    def connection_lost(self, error: Exception | None) -> None:
        self._leave()

    def pause_writing(self) -> None:
        self._unread_answers = True
        self._pause()
        self._settle()

    def resume_writing(self) -> None:
        self._unread_answers = False
        self.go_on()

    # -- called by the server --------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether a request is arriving, waits or is under way."""
        return bool(self._under_way or self._held or self._reader.arriving or self._reader.arrived)

    def go_on(self) -> None:
        """Takes what waits, as far as there is room for it."""
        if self._working:
            return
        self._working = True
        self._dispatch()
        while self._held and not (self._blocked() or self._deaf):
            self._take(self._held.take())
        self._working = False
        if self._paused and not (self._blocked() or self._held or self._transport.is_closing()):
            self._paused = False
            self._transport.resume_reading()
        elif self._paused and self._server.holding:
            self._server.held.add(self)
        self._settle()

    def wind_down(self) -> None:
        """The server stops: closes unless a request has begun, which is answered first."""
        if not (self.begun or self._closing):
            self._finish(linger=False)
            self._settle()

    def abort(self) -> None:
        """Closes at once."""
        self._transport.abort()
        self._leave()

    def overdue(self, waiting: Waiting[HttpConnection]) -> None:
        """What this connection waited for has not come in time."""
        self._waiting = None
        server, limits = self._server, self._server.limits
        if waiting is server.arriving_heads and not self._reader.in_head:
            self._wait(server.arriving_bodies)
        elif waiting is server.arriving_heads:
            self._too_slow(f"The headers did not arrive within {limits.head_seconds:g} s.")
        elif waiting is server.arriving_bodies:
            self._too_slow(f"The request did not arrive within {limits.request_seconds:g} s.")
        elif waiting is server.stalled:
            self._check_stall()
        elif waiting is server.lingering:
            self.abort()
        else:
            self._finish(linger=False)
            self._settle()

    # -- called by an exchange -------------------------------------------------------------------------------

    def answered(self, exchange: Exchange) -> None:
        """An answer is there: it leaves when it is its turn, and makes room for what waits."""
        if self._under_way[0] is not exchange:
            return
        while self._under_way and self._under_way[0].response is not None:
            self._write(self._under_way.popleft())
        if self._working:
            return
        if not self._closing:
            if self._paused or self._reader.arrived:
                self.go_on()
            elif self._reader.continue_due and not self._under_way:
                self._say_continue()
        self._settle()

    # -- requests --------------------------------------------------------------------------------------------

    def _take(self, data: bytes | memoryview) -> None:
        """Reads requests out of bytes in slices, and holds back the rest when there is no room for more."""
        reader = self._reader
        try:
            if len(data) <= SLICE_BYTES:
                reader.feed(data)
                self._dispatch()
            else:
                view, position = memoryview(data), 0
                while position < len(view) and not self._deaf:
                    if self._blocked():
                        self._held.put_back(view[position:])
                        self._pause()
                        break
                    end = position + SLICE_BYTES + reader.missing_bytes
                    reader.feed(view[position:end])
                    position = end
                    self._dispatch()
            if reader.arriving or self._held or self._counted_bytes:
                self._count()
        except Refusal as refusal:
            self._refuse(refusal)
            return
        if reader.continue_due and not self._under_way:
            self._say_continue()

    def _dispatch(self) -> None:
        """Hands requests to the handler as long as there is room."""
        arrived = self._reader.arrived
        while arrived and not self._closing:
            if self._blocked():
                self._pause()
                return
            self._hand_over(arrived.popleft())

    def _hand_over(self, arrival: Arrival) -> None:
        request, keep_alive, old_version = arrival
        server = self._server
        size = len(request.body)
        exchange = Exchange(
            self,
            size=size,
            keep_alive=keep_alive,
            old_version=old_version,
            bodiless=request.method == "HEAD",
        )
        self._under_way.append(exchange)
        self._under_way_bytes += size
        server.buffered_bytes += size
        if server.buffered_bytes > server.limits.buffered_bytes:
            exchange.reply(server.refusal(503, server.OVERLOADED))
            return
        try:
            exchange.cancel = server.handler(request, self._peer, exchange.reply)
        except Exception:
            log.exception("the handler of a request from %s failed", self._peer.address)
            exchange.reply(server.refusal(500, "The request failed inside the server; its log says why."))

    def _blocked(self) -> bool:
        """Whether no further request may be handed over now."""
        server = self._server
        limits = server.limits
        return (
            server.holding
            or self._unread_answers
            or len(self._under_way) >= limits.pipelined
            or self._under_way_bytes > limits.body_bytes
        )

    def _hold(self, data: bytes) -> None:
        self._held.add(data)
        self._pause()
        try:
            self._count()
        except Refusal as refusal:
            self._refuse(refusal)

    def _pause(self) -> None:
        if self._server.holding:
            self._server.held.add(self)
        if not (self._paused or self._deaf or self._transport.is_closing()):
            self._paused = True
            self._transport.pause_reading()

    def _count(self) -> None:
        """Keeps the sum of what all connections hold within its budget."""
        server = self._server
        size = self._reader.buffered_bytes + self._held.size
        grown_bytes = size - self._counted_bytes
        self._counted_bytes = size
        server.buffered_bytes += grown_bytes
        if grown_bytes > 0 and server.buffered_bytes > server.limits.buffered_bytes:
            raise Refusal(503, server.OVERLOADED)

    # -- answers ---------------------------------------------------------------------------------------------

    def _write(self, exchange: Exchange) -> None:
        server = self._server
        response = exchange.response
        assert response is not None, "only what is answered is written"
        exchange.close()
        self._under_way_bytes -= exchange.size
        server.buffered_bytes -= exchange.size
        close = not exchange.keep_alive or (server.stopping and not self.begun)
        line = CLOSE if close else KEEP_ALIVE if exchange.old_version else ""
        try:
            buffers = encode_answer(response, server.date_line, line, bodiless=exchange.bodiless)
        except ValueError:
            log.exception("an answer to %s cannot be sent", self._peer.address)
            failed = plain_refusal(500, "The server made an answer that cannot be sent.")
            buffers = encode_answer(failed, server.date_line, line, bodiless=exchange.bodiless)
        self._send(buffers)
        if close:
            self._finish(linger=exchange.linger)

    def _send(self, buffers: list[bytes]) -> None:
        if self._transport.is_closing():
            return
        if self._unread_answers:
            self._unread_bytes += sum(map(len, buffers))
        if len(buffers) == 1:
            self._transport.write(buffers[0])
        else:
            self._transport.writelines(buffers)

    def _say_continue(self) -> None:
        self._reader.continue_due = False
        self._send([CONTINUE])

    def _too_slow(self, sentence: str) -> None:
        self._refuse(Refusal(408, sentence))
        self._settle()

    def _refuse(self, refusal: Refusal) -> None:
        """Says what is wrong when it is its turn, and closes."""
        self._deaf = True
        self._held.clear()
        response: HttpResponse = self._server.refusal(refusal.status, refusal.sentence)
        exchange = Exchange(self, size=0, keep_alive=False, old_version=False, bodiless=False, linger=True)
        # It takes its place after the requests that arrived before it; they are the few of one slice of bytes.
        arrived = self._reader.arrived
        while arrived and not self._closing:
            self._hand_over(arrived.popleft())
        if not self._closing:
            self._under_way.append(exchange)
            exchange.reply(response)

    # -- the end ---------------------------------------------------------------------------------------------

    def _finish(self, *, linger: bool) -> None:
        """Closes when everything written has been sent.

        Closing a socket with unread bytes in it resets the connection, and the client would never see why it
        was refused: what it still sends is thrown away for a while.
        """
        self._closing = self._deaf = True
        self._abandon()
        transport = self._transport
        if not linger:
            transport.close()
            return
        if transport.is_closing():
            return
        if transport.can_write_eof():
            transport.write_eof()
        if self._paused:
            self._paused = False
            transport.resume_reading()
        self._wait(self._server.lingering)

    def _abandon(self) -> None:
        """Whatever is under way is for nobody."""
        self._reader.arrived.clear()
        self._held.clear()
        while self._under_way:
            exchange = self._under_way.popleft()
            self._server.buffered_bytes -= exchange.size
            exchange.abandon()
        self._under_way_bytes = 0
        self._server.buffered_bytes -= self._counted_bytes
        self._counted_bytes = 0

    def _leave(self) -> None:
        self._closing = self._deaf = True
        self._abandon()
        self._wait(None)
        self._server.forget(self)

    # -- time ------------------------------------------------------------------------------------------------

    def _wait(self, waiting: Waiting[HttpConnection] | None) -> None:
        if self._waiting is not None and self._waiting is not waiting:
            self._waiting.stop(self)
        self._waiting = waiting
        if waiting is not None:
            waiting.start(self, self._server.now())

    def _settle(self) -> None:
        """Says what this connection waits for, and how long it may."""
        server = self._server
        if self._waiting is server.lingering and self._waiting is not None:
            return
        if self not in server.connections:
            self._wait(None)
        elif self._closing or self._unread_answers:
            if self._waiting is not server.stalled:
                self._unread_bytes = self._transport.get_write_buffer_size()
                self._wait(server.stalled)
        elif self._paused or self._deaf:
            self._wait(None)
        elif self._reader.arriving and not self._reader.continue_due:
            if self._waiting is not server.arriving_heads and self._waiting is not server.arriving_bodies:
                self._wait(server.arriving_heads)
        elif self._under_way or self._reader.arriving:
            self._wait(None)
        elif server.stopping:
            self._finish(linger=False)
            self._wait(server.stalled)
        else:
            self._wait(server.idle)

    def _check_stall(self) -> None:
        """Disconnects a client that has read nothing since it was looked at last."""
        unread_bytes = self._transport.get_write_buffer_size()
        if unread_bytes and unread_bytes < self._unread_bytes:
            self._unread_bytes = unread_bytes
            self._wait(self._server.stalled)
            return
        if unread_bytes:
            log.warning("disconnected %s: it left %d bytes unread", self._peer.address, unread_bytes)
        self.abort()

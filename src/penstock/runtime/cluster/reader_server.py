"""The port of a node for readers outside the cluster: a client with a ticket reads the log that the ticket names.

The first frame is the ticket, of a fixed length; nothing else is parsed before it is verified. After it the connection
accepts `ReadLog` of that partition and `Ping`, which go to the node like those of a front end and are answered in the same
way. No incoming frame is longer than 512 bytes. A connection without a ticket in time is closed, and every connection is
closed when its ticket ends. It gets no error: readers then ask their front end.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.cluster.reader_record import ROW_SECONDS, ReaderRecord, Tally
from penstock.runtime.cluster.streams import Certified, Listener, listen
from penstock.runtime.engine.local_link import LOCAL_CONNECTION
from penstock.runtime.native.bad_connections import BadConnections
from penstock.streams.framed import write_together
from penstock.wire.frames import Frame, encode_frame
from penstock.wire.messages import PROTOCOL_VERSION, Failed, Hello, encode_message
from penstock.wire.read_ticket import TicketError, TicketSeal
from penstock.wire.reader_session import ReaderSession, ReaderSessions
from penstock.wire.session_sides import Handler

logger = logging.getLogger(__name__)

FIRST_READER = LOCAL_CONNECTION - 1
"""Readers are numbered downwards from here: sockets of members of the cluster count from 1 on."""

_NOTHING = memoryview(b"")
_HELLO = encode_message(Hello([PROTOCOL_VERSION], "a reader with a ticket"))
_TOO_MANY = encode_message(
    Failed(
        ErrorCode.TOO_MANY_WAITING, "too many reads of this client wait at this node; try again in a moment"
    )
)


class ReaderTotals(NamedTuple):
    """The counters of the port."""

    readers: int
    """Connected now, with a ticket."""
    refused: int
    """Connections closed for lack of a ticket, or for an invalid frame."""
    sent_bytes: int
    """Written to readers."""


class ReaderServer:
    """Listens for readers."""

    def __init__(
        self,
        driver: Handler,
        seal: TicketSeal,
        now_ms: Callable[[], int],
        *,
        hello_timeout_ms: int,
        write_buffer_bytes: int,
        record: ReaderRecord | None = None,
    ) -> None:
        self.driver = driver
        self.record = record
        self.now_ms = now_ms
        self.hello_seconds = hello_timeout_ms / 1000
        self.write_buffer_bytes = write_buffer_bytes
        self.sessions: ReaderSessions[Reader] = ReaderSessions(seal, FIRST_READER)
        self._server: Listener | None = None
        self._refused = 0
        self._sent_bytes = 0
        self._bad = BadConnections(logger)
        self._closed = False

    async def listen(self, listener: socket.socket, tls: Certified | None) -> None:
        """Takes readers from a socket that is bound."""
        self._server = await listen(lambda: Reader(self), listener, tls, "the port for readers")

    @property
    def totals(self) -> ReaderTotals:
        """What has gone through so far."""
        return ReaderTotals(len(self.sessions), self._refused, self._sent_bytes)

    def write(self, number: int, buffers: list[Buffer]) -> None:
        """What the node answers a reader, if it is still there."""
        reader = self.sessions.find(number)
        if reader is not None:
            self._sent_bytes += reader.write(buffers)

    def close(self) -> None:
        """Accepts no more connections and closes all."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for reader in self.sessions:
            reader.end()

    # -- called by readers -----------------------------------------------------------------------------------

    def connected(self, reader: Reader) -> None:
        """A client has connected; raises `TicketError` where there is no room."""
        if self._closed:
            raise TicketError("the node stops")
        oldest = self.sessions.connected(reader)
        if oldest is not None:
            oldest.cut_off("it sent no ticket, and new connections needed room")

    def admitted(self, reader: Reader) -> int:
        """It has shown a ticket; returns its number. The node's greeting is the answer to it."""
        number = self.sessions.admitted(reader)
        self.driver.connected(number)
        self.driver.handle(number, (Frame(0, memoryview(_HELLO), _NOTHING),))
        return number

    def left(self, reader: Reader, number: int) -> None:
        """Its connection is gone."""
        if self.sessions.left(reader, number):
            self.driver.disconnected(number)

    def refused(self, peer: str, why: str) -> None:
        """Counts who is cut off, and says so now and then."""
        self._refused += 1
        self._bad.tell(
            "reader",
            "refused %(address)s, which connected to the port for readers: %(reason)s",
            address=peer,
            reason=why,
        )


class Reader(asyncio.Protocol):
    """One connection."""

    def __init__(self, server: ReaderServer) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._tally: Tally | None = None
        """Counts for the record, if its holder's reads are recorded."""
        self._row: asyncio.TimerHandle | None = None
        self._number = 0
        self._peer = "a client"
        self._session: ReaderSession

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and no subclass of it
        server = self._server
        name = transport.get_extra_info("peername")
        if name:
            self._peer = str(name[0])
        self._session = server.sessions.begin(self._peer)
        try:
            server.connected(self)
        except TicketError as error:
            self.cut_off(str(error))
            return
        self._transport.set_write_buffer_limits(high=server.write_buffer_bytes)
        connection = transport.get_extra_info("socket")
        if connection is not None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timer = asyncio.get_running_loop().call_later(
            server.hello_seconds, self.cut_off, "it sent no ticket"
        )

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        try:
            frames = self._session.feed(data)
            if frames and self._session.ticket is None:
                self._take_ticket(frames[0])
                frames = frames[1:]
            if frames:
                self._read(frames)
        except (TicketError, PenstockError) as error:
            self.cut_off(str(error))

    def connection_lost(self, error: Exception | None) -> None:
        self.end()

    def pause_writing(self) -> None:
        if self._transport is not None and self._number:
            self._transport.pause_reading()
            self._server.driver.behind(self._number)

    def resume_writing(self) -> None:
        if self._transport is not None and self._number:
            self._server.driver.caught_up(self._number)
            self._transport.resume_reading()

    # -- inside ----------------------------------------------------------------------------------------------

    def _take_ticket(self, frame: Frame) -> None:
        server = self._server
        now_ms = server.now_ms()
        ticket = self._session.show(frame, now_ms)
        if self._timer is not None:
            self._timer.cancel()
        seconds = (ticket.until_ms - now_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end)
        if ticket.holder is not None and server.record is not None:
            self._tally = Tally(ticket.holder, self._peer)
        self._number = server.admitted(self)

    def _read(self, frames: Sequence[Frame]) -> None:
        taken, refused = self._session.admit(frames)
        if self._transport is not None:
            for request_id in refused:
                self._transport.write(b"".join(encode_frame(request_id, _TOO_MANY)))
        if self._tally is not None:
            self._tally.asked(taken)
        if taken:
            self._server.driver.handle(self._number, taken)

    def write(self, buffers: list[Buffer]) -> int:
        """Sends answers; returns how many bytes they have."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return 0
        self._session.answered(buffers)
        if self._tally is not None and self._tally.answered(buffers, self._server.now_ms()):
            self._row = asyncio.get_running_loop().call_later(ROW_SECONDS, self._write_row)
        size = sum(map(len, buffers))
        write_together(transport, buffers, size)
        return size

    def _write_row(self) -> None:
        if self._row is not None:
            self._row.cancel()
            self._row = None
        if self._tally is not None and self._server.record is not None:
            self._server.record.write(self._tally)

    def cut_off(self, why: str) -> None:
        """Ends the connection, and says why in the log."""
        self._server.refused(self._peer, why)
        self.end()

    def end(self) -> None:
        """Ends the connection, if it has not ended."""
        transport, self._transport = self._transport, None
        if self._timer is not None:
            self._timer.cancel()
        if transport is not None:
            transport.abort()
            self._write_row()
            self._session.end()
            self._server.left(self, self._number)

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

import msgspec

from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.cluster.reader_record import ROW_SECONDS, ReaderRecord, Tally
from penstock.runtime.cluster.streams import Certified, Listener, listen
from penstock.runtime.engine.local_link import LOCAL_CONNECTION
from penstock.runtime.native.bad_connections import BadConnections
from penstock.runtime.native.connection import JOIN_BYTES
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.log_messages import ReadLog
from penstock.wire.messages import PROTOCOL_VERSION, Failed, Hello, Ping, encode_message
from penstock.wire.read_ticket import ReadTicket, TicketDesk, TicketError
from penstock.wire.reader_waits import ReaderWaits, ReadsUnderWay
from penstock.wire.session_sides import Handler
from penstock.wire.strangers import Strangers

logger = logging.getLogger(__name__)

FRAME_BYTES = 512
"""Of what readers say: a ticket, or where to read on."""
MAX_READERS = 4_096
MAX_STRANGERS = 256
"""Those who have not shown a ticket yet: they must not use up the files that the node may open."""
FIRST_READER = LOCAL_CONNECTION - 1
"""Readers are numbered downwards from here: sockets of members of the cluster count from 1 on."""

_NOTHING = memoryview(b"")
_HELLO = encode_message(Hello([PROTOCOL_VERSION], "a reader with a ticket"))
_TOO_MANY = encode_message(
    Failed(
        ErrorCode.TOO_MANY_WAITING, "too many reads of this client wait at this node; try again in a moment"
    )
)
_read_request = msgspec.msgpack.Decoder(ReadLog | Ping).decode


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
        desk: TicketDesk,
        now_ms: Callable[[], int],
        *,
        hello_timeout_ms: int,
        write_buffer_bytes: int,
        record: ReaderRecord | None = None,
    ) -> None:
        self.driver = driver
        self.record = record
        self.desk = desk
        self.now_ms = now_ms
        self.hello_seconds = hello_timeout_ms / 1000
        self.write_buffer_bytes = write_buffer_bytes
        self._readers: dict[int, Reader] = {}
        self._strangers: Strangers[Reader] = Strangers(MAX_STRANGERS)
        self._next = FIRST_READER
        self._server: Listener | None = None
        self._refused = 0
        self._sent_bytes = 0
        self._bad = BadConnections(logger)
        self.waits = ReaderWaits()
        self._closed = False

    async def listen(self, listener: socket.socket, tls: Certified | None) -> None:
        """Takes readers from a socket that is bound."""
        self._server = await listen(lambda: Reader(self), listener, tls, "the port for readers")

    @property
    def totals(self) -> ReaderTotals:
        """The counters so far."""
        return ReaderTotals(len(self._readers), self._refused, self._sent_bytes)

    def write(self, number: int, buffers: list[Buffer]) -> None:
        """The node's answer to a reader, if it is still connected."""
        reader = self._readers.get(number)
        if reader is not None:
            self._sent_bytes += reader.write(buffers)

    def close(self) -> None:
        """Accepts no more connections and closes all."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        for reader in [*self._strangers, *self._readers.values()]:
            reader.end()

    # -- called by readers -----------------------------------------------------------------------------------

    def knocked(self, reader: Reader) -> bool:
        """A client has connected; False if there is no room."""
        if self._closed or len(self._readers) >= MAX_READERS:
            return False
        oldest = self._strangers.enter(reader)
        if oldest is not None:
            oldest.cut_off("it sent no ticket, and new connections needed room")
        return True

    def let_in(self, reader: Reader) -> int:
        """It has shown a ticket; returns its number. The node's greeting is the answer to it."""
        self._strangers.leave(reader)
        number = self._next
        self._next -= 1
        self._readers[number] = reader
        self.driver.connected(number)
        self.driver.handle(number, (Frame(0, memoryview(_HELLO), _NOTHING),))
        return number

    def left(self, reader: Reader, number: int) -> None:
        """Its connection is gone."""
        self._strangers.leave(reader)
        if self._readers.pop(number, None) is not None:
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
        self._frames = FrameReader(FRAME_BYTES)
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ticket: ReadTicket | None = None
        self._tally: Tally | None = None
        """Counts for the record, if its holder's reads are recorded."""
        self._row: asyncio.TimerHandle | None = None
        self._reads: ReadsUnderWay | None = None
        """Since it has shown a ticket."""
        self._number = 0
        self._peer = "a client"

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and no subclass of it
        server = self._server
        name = transport.get_extra_info("peername")
        if name:
            self._peer = str(name[0])
        if not server.knocked(self):
            self.cut_off("there are too many")
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
            frames = self._frames.feed(data)
            if frames and self._ticket is None:
                self._introduce(frames[0])
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

    def _introduce(self, frame: Frame) -> None:
        server = self._server
        now_ms = server.now_ms()
        self._ticket = ticket = server.desk.check(frame.head, now_ms)
        holder = ticket.holder
        self._reads = server.waits.begin((holder.account, holder.user) if holder is not None else self._peer)
        if self._timer is not None:
            self._timer.cancel()
        seconds = (ticket.until_ms - now_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(seconds, self.end)
        if ticket.holder is not None and server.record is not None:
            self._tally = Tally(ticket.holder, self._peer)
        self._number = server.let_in(self)

    def _read(self, frames: Sequence[Frame]) -> None:
        """Hands on what is within the ticket; raises `TicketError` at the first that is not."""
        assert self._ticket is not None
        assert self._reads is not None
        within: list[Frame] = []
        for frame in frames:
            try:
                request = _read_request(frame.head)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                raise TicketError("its request is not allowed for readers") from None
            if isinstance(request, ReadLog):
                if request.queue_id != self._ticket.partition:
                    raise TicketError("its ticket is for another partition")
                if request.group:
                    raise TicketError("only front ends may read for a group")
            if self._reads.admit(frame.request_id):
                within.append(frame)
            else:
                self._refuse(frame.request_id)
        if self._tally is not None:
            self._tally.asked(within)
        if within:
            self._server.driver.handle(self._number, within)

    def _refuse(self, request_id: int) -> None:
        if self._transport is not None:
            self._transport.write(b"".join(encode_frame(request_id, _TOO_MANY)))

    def write(self, buffers: list[Buffer]) -> int:
        """Sends answers; returns how many bytes they have."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return 0
        if self._reads is not None:
            self._reads.answered(buffers)
        if self._tally is not None and self._tally.answered(buffers, self._server.now_ms()):
            self._row = asyncio.get_running_loop().call_later(ROW_SECONDS, self._write_row)
        size = sum(map(len, buffers))
        if size <= JOIN_BYTES:
            transport.write(b"".join(buffers))
        else:
            transport.writelines(buffers)
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
            if self._reads is not None:
                self._reads.end()
            self._server.left(self, self._number)

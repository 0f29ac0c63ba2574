"""Readers who are no members of the cluster, as a node's server for them sees them: who may stay, and what is taken of what they say.

The first frame is the ticket, of a fixed length, and nothing else of a stranger is looked at. After it the connection takes
`ReadLog` of that partition and `Ping`. Sockets are the hands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from penstock.model.batch import Buffer
from penstock.wire.frames import Frame, FrameReader
from penstock.wire.log_messages import ReadLog
from penstock.wire.messages import Ping
from penstock.wire.read_ticket import ReadTicket, TicketError, TicketSeal
from penstock.wire.reader_waits import ReaderWaits, ReadsUnderWay
from penstock.wire.strangers import Strangers

FRAME_BYTES = 512
"""Of what readers say: a ticket, or where to read on."""
MAX_READERS = 4_096
MAX_STRANGERS = 256
"""Those who have not shown a ticket yet: they must not use up the files that the node may open."""

_read_request = msgspec.msgpack.Decoder(ReadLog | Ping).decode

Reader = TypeVar("Reader")


class ReaderSessions(Generic[Reader]):
    """All connections of readers to one node, by number where they have shown a ticket."""

    def __init__(self, seal: TicketSeal, first_number: int) -> None:
        """Readers are numbered downwards from the first number."""
        self.seal = seal
        self.waits = ReaderWaits()
        self._readers: dict[int, Reader] = {}
        self._strangers: Strangers[Reader] = Strangers(MAX_STRANGERS)
        self._next = first_number

    def __len__(self) -> int:
        """How many have shown a ticket."""
        return len(self._readers)

    def __iter__(self) -> Iterator[Reader]:
        """All, with a ticket or without."""
        return iter([*self._strangers, *self._readers.values()])

    def find(self, number: int) -> Reader | None:
        """The reader of a number, if it is still there."""
        return self._readers.get(number)

    def connected(self, reader: Reader) -> Reader | None:
        """A client has connected; returns one that has to go for it. Raises `TicketError` where there is no room."""
        if len(self._readers) >= MAX_READERS:
            raise TicketError("there are too many")
        return self._strangers.enter(reader)

    def admitted(self, reader: Reader) -> int:
        """It has shown a ticket; returns its number."""
        self._strangers.leave(reader)
        number = self._next
        self._next -= 1
        self._readers[number] = reader
        return number

    def left(self, reader: Reader, number: int) -> bool:
        """Its connection is gone; whether it had shown a ticket."""
        self._strangers.leave(reader)
        return self._readers.pop(number, None) is not None

    def begin(self, peer: str) -> ReaderSession:
        """The session of a connection from this address."""
        return ReaderSession(self.seal, self.waits, peer)


class ReaderSession:
    """What one connection says. Every method that takes something raises `TicketError` for what ends the connection."""

    def __init__(self, seal: TicketSeal, waits: ReaderWaits, peer: str) -> None:
        self.ticket: ReadTicket | None = None
        self._seal = seal
        self._waits = waits
        self._peer = peer
        self._frames = FrameReader(FRAME_BYTES)
        self._reads: ReadsUnderWay | None = None
        """Since it has shown a ticket."""

    def feed(self, data: bytes) -> Sequence[Frame]:
        """The frames that are whole; raises `PenstockError` for bytes that are no frames."""
        return self._frames.feed(data)

    def show(self, frame: Frame, now_ms: int) -> ReadTicket:
        """The first frame: the ticket."""
        ticket = self.ticket = self._seal.check(frame.head, now_ms)
        holder = ticket.holder
        self._reads = self._waits.begin((holder.account, holder.user) if holder is not None else self._peer)
        return ticket

    def admit(self, frames: Sequence[Frame]) -> tuple[list[Frame], list[int]]:
        """Requests: those that go to the node, and the ids of those for which there is no room."""
        taken: list[Frame] = []
        refused: list[int] = []
        for frame in frames:
            self._check(frame)
            if self._reads is not None and self._reads.admit(frame.request_id):
                taken.append(frame)
            else:
                refused.append(frame.request_id)
        return taken, refused

    def answered(self, buffers: Sequence[Buffer]) -> None:
        """Answers are about to be written."""
        if self._reads is not None:
            self._reads.answered(buffers)

    def end(self) -> None:
        """The connection is gone."""
        if self._reads is not None:
            self._reads.end()

    def _check(self, frame: Frame) -> None:
        try:
            request = _read_request(frame.head)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            raise TicketError("its request is not allowed for readers") from None
        if isinstance(request, ReadLog):
            if self.ticket is None or request.queue_id != self.ticket.partition:
                raise TicketError("its ticket is for another partition")
            if request.group:
                raise TicketError("only front ends may read for a group")

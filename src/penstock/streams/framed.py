"""One connection: bytes in, frames out, frames in, bytes out. It knows nothing about requests or retries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol, cast

from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.wire.credentials import channel_of
from penstock.wire.frames import Frame, FrameGathering, FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, ClientHandshake, HandshakeError

WRITE_BUFFER_BYTES = 4 * limits.MEBIBYTE
"""The maximum in the socket's buffer before senders must wait."""
JOIN_BYTES = 16 * limits.KIBIBYTE
"""Buffers that are smaller than this together are joined into one piece: copying them costs less than a vectored write."""


class Receiver(Protocol):
    """The owner of the connection."""

    def frames_received(self, connection: FramedConnection, frames: Iterable[Frame]) -> None:
        """Whole frames arrived."""

    def connection_lost(self, connection: FramedConnection, error: Exception | None) -> None:
        """The connection is gone; nothing more comes from it."""


class FramedConnection(asyncio.Protocol):
    """The protocol object of one socket. With a `handshake` both sides first prove that they know the secret of their
    cluster, and the receiver gets nothing before that.

    Frames of one turn of the event loop are written together: a burst then costs one system call, and the server gets it
    as a whole and writes it to disk once. While turns have only one frame, it is written at once, for latency; while some
    have more, when the turn ends. (uvloop gathers writes too, but 16 batches of 10 kB a turn cost 62 µs each that way, and
    38 µs this way.) A single frame between two bursts, for example the one that deletes all received messages, must not
    split the next one: the server would sync it twice.
    """

    def __init__(
        self,
        receiver: Receiver,
        loop: asyncio.AbstractEventLoop,
        handshake: ClientHandshake | None = None,
        *,
        gathers: bool = False,
    ) -> None:
        """`gathers`: a frame waits for the end of the turn even where turns have one frame only."""
        self.receiver = receiver
        self._loop = loop
        self._handshake = handshake
        self._gathering = FrameGathering(gathers=gathers)
        self._reader = FrameReader() if handshake is None else FrameReader(HANDSHAKE_FRAME_BYTES)
        self._authenticated: asyncio.Future[None] = loop.create_future()
        if handshake is None:
            self._authenticated.set_result(None)
        self._transport: asyncio.Transport | None = None
        self._room: asyncio.Future[None] | None = None
        self.heard = True
        """Whether anything has arrived since this was last set to False."""

    # -- asyncio's side --------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and no subclass of it
        self._transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self.heard = True
        try:
            frames = self._reader.feed(data)
            if self._handshake is not None:
                frames = self._shake(self._handshake, frames)
        except (PenstockError, HandshakeError) as error:
            self._end(error)
            return
        if frames:
            self.receiver.frames_received(self, frames)

    def _shake(self, handshake: ClientHandshake, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Answers the other side; returns the frames behind the handshake."""
        for place, frame in enumerate(frames):
            said = handshake.take(frame.head)
            if said is not None:
                self.write(encode_frame(0, said))
            if handshake.done:
                self._handshake = None
                self._reader.allow(limits.FRAME_BYTES)
                self._authenticated.set_result(None)
                return frames[place + 1 :]
        return ()

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        if self._handshake is not None:
            error = self._handshake.why_broken_off(secure=self.secure) or error
        self._end(error)

    def pause_writing(self) -> None:
        """Called by asyncio: the socket's buffer is full."""
        if self._room is None:
            self._room = self._loop.create_future()

    def resume_writing(self) -> None:
        """Called by asyncio: the socket's buffer has room."""
        if self._room is not None:
            self._room.set_result(None)
            self._room = None

    # -- the owner's side ------------------------------------------------------------------------------------

    async def authenticated(self) -> None:
        """Returns when both sides have proven what they must; raises why the connection ended instead."""
        await asyncio.shield(self._authenticated)

    @property
    def secure(self) -> bool:
        """Whether it is one with TLS."""
        return self._transport is not None and self._transport.get_extra_info("sslcontext") is not None

    def pause_reading(self, *, paused: bool) -> None:
        """Stops or continues reading, because the receiver has enough or has room again."""
        if self._transport is None:
            return
        if paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    @property
    def alive(self) -> bool:
        """Whether anything can still be written and read."""
        return self._transport is not None

    @property
    def peer(self) -> str:
        """The address of the other side, without its port; empty: it is gone."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if name else ""

    @property
    def channel(self) -> bytes:
        """The identity of this connection, for authentication proofs: see `channel_of`."""
        tls = self._transport.get_extra_info("ssl_object") if self._transport is not None else None
        return channel_of(tls.getpeercert(binary_form=True) if tls is not None else None)

    @property
    def congested(self) -> bool:
        """Whether senders should await `room` before they write more."""
        return self._room is not None

    async def room(self) -> None:
        """Returns when the socket takes more, or is gone."""
        while self._room is not None:
            await asyncio.shield(self._room)

    def write(self, frame: list[Buffer]) -> None:
        """Writes a frame; never blocks. Frames written after the end go nowhere."""
        if self._transport is None:
            return
        if self._gathering.is_between_turns:
            self._loop.call_soon(self._turn_ended)
        if self._gathering.add(frame):
            self._transport.writelines(frame)

    def close(self) -> None:
        """Closes after writing waiting bytes; the owner is told as for any other end."""
        if self._transport is not None:
            self._turn_ended()
            transport = self._transport
            self._end(None)
            transport.close()

    def abort(self, error: Exception) -> None:
        """Cuts the connection now."""
        self._end(error)

    def _turn_ended(self) -> None:
        gathered = self._gathering.end_turn()
        if gathered and self._transport is not None:
            write_together(self._transport, gathered, sum(map(len, gathered)))

    def _end(self, error: Exception | None) -> None:
        """Tells the owner once, whatever the cause."""
        transport, self._transport = self._transport, None
        if transport is None:
            return
        self._gathering.clear()
        self.resume_writing()
        if error is not None:
            transport.abort()
        if not self._authenticated.done():
            self._authenticated.set_exception(error or ConnectionError("it closed the connection"))
            self._authenticated.exception()  # nobody may be waiting for it
        self.receiver.connection_lost(self, error)


def write_together(transport: asyncio.WriteTransport, buffers: Sequence[Buffer], size: int) -> None:
    """Writes them in order; `size`: how many bytes they have together."""
    if len(buffers) == 1:
        transport.write(buffers[0])
    elif size <= JOIN_BYTES:
        transport.write(b"".join(buffers))
    else:
        transport.writelines(buffers)

"""One TCP connection to a back end: greets it, then carries frames both ways until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.runtime.engine_link.correlation import Correlation
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.handshake import HANDSHAKE_FRAME_BYTES, ClientHandshake, HandshakeError
from penstock.wire.messages import Request

JOIN_BYTES = 16 * limits.KIBIBYTE
"""Frames smaller than this together are joined into one write."""


class BackendConnection(asyncio.Protocol):
    """Frames of one turn of the event loop are written together, so that the back end writes them to disk once."""

    def __init__(
        self,
        correlation: Correlation,
        loop: asyncio.AbstractEventLoop,
        lost: Callable[[BackendConnection, str], None],
        handshake: ClientHandshake | None = None,
    ) -> None:
        self._correlation = correlation
        self._loop = loop
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._gathered: list[Buffer] = []
        self._handshake = handshake
        self._handshake_frames = FrameReader(HANDSHAKE_FRAME_BYTES)
        self._answered_challenge = False
        self.introduced: asyncio.Future[None] = loop.create_future()
        """Done when both sides have proven what they know, where they have to; cancelled when the connection ends."""
        if handshake is None:
            self.introduced.set_result(None)
        self.heard = True
        """Whether anything has arrived since this was last set to False."""
        self.ended_because: str | None = None
        """Why it has ended; None: it has not."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and no subclass of it

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._transport is None:
            return
        self.heard = True
        try:
            if self._handshake is not None:
                self._shake(self._handshake, data)
            else:
                self._correlation.feed(data)
        except PenstockError as error:
            self.end(error.message)
        except HandshakeError as error:
            self.end(str(error))

    def _shake(self, handshake: ClientHandshake, data: bytes) -> None:
        """The server speaks first, and says nothing more until it was greeted."""
        for frame in self._handshake_frames.feed(data):
            if not self._answered_challenge:
                self._answered_challenge = True
                self.write(encode_frame(0, handshake.prove(frame.head)))
            else:
                handshake.finish(frame.head)
                self._handshake = None
                if not self.introduced.done():
                    self.introduced.set_result(None)
                return

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        self.end(str(error) if error is not None else "it closed the connection")

    @property
    def peer(self) -> str:
        """The address of the other side, without its port; empty: it is gone."""
        name = self._transport.get_extra_info("peername") if self._transport is not None else None
        return str(name[0]) if name else ""

    def write(self, frame: list[Buffer]) -> None:
        """Sends a frame when the turn of the loop ends."""
        if not self._gathered:
            self._loop.call_soon(self._turn_ended)
        self._gathered += frame

    def post(self, request: Request) -> None:
        """Sends a request whose answer nobody waits for."""
        _, frame = self._correlation.ask(request, b"", _ignored)
        self.write(frame)

    def end(self, reason: str) -> None:
        """Cuts the connection and tells its owner, once."""
        transport, self._transport = self._transport, None
        if transport is not None:
            self.ended_because = reason
            self._gathered.clear()
            self.introduced.cancel(reason)
            transport.abort()
            self._lost(self, reason)

    def _turn_ended(self) -> None:
        gathered, self._gathered = self._gathered, []
        if self._transport is None or not gathered:
            return
        if len(gathered) == 1:
            self._transport.write(gathered[0])
        elif sum(map(len, gathered)) <= JOIN_BYTES:
            self._transport.write(b"".join(gathered))
        else:
            self._transport.writelines(gathered)


def _ignored(outcome: object) -> None:
    pass

"""One end of the stream between two nodes: the handshake, then names, then frames.

Before the handshake has succeeded, nothing else from the other end is parsed. Then each end sends its name, so that an
address that was given to another node meanwhile is noticed before anything is trusted.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.streams.framed import write_together
from penstock.wire.frames import Frame, FrameReader, encode_frame
from penstock.wire.handshake import (
    HANDSHAKE_FRAME_BYTES,
    NONCE_BYTES,
    ClientHandshake,
    HandshakeError,
    ServerHandshake,
)

SERVICE = "peers"
HANDSHAKE_SECONDS = 5.0
_SIZE_BYTES = 4
UNANSWERED_MS = 5_000
"""If the other end acknowledges nothing for so long, the kernel ends the connection."""


class ConnectionOwner(Protocol):
    """Owns the connections of a node."""

    name: str
    secret: bytes
    place: str
    """The address at which other nodes reach this one."""

    def authenticated(self, connection: PeerConnection) -> bool:
        """The other end has said who it is; False: it is not wanted."""
        ...

    def arrived(self, connection: PeerConnection, frames: Sequence[Frame]) -> None: ...

    def ended(self, connection: PeerConnection, why: str) -> None: ...


class PeerConnection(asyncio.Protocol):
    """Made for every connection, from either side."""

    def __init__(self, owner: ConnectionOwner, expected: str | None, dialled: str = "") -> None:
        self._owner = owner
        self.expected = expected
        """The node that this node connects to; None: the peer connected to this node."""
        self._dialled = dialled
        """The address that this node connected to."""
        self.peer: str | None = None
        """The other end's name, once it has sent it."""
        self._transport: asyncio.Transport | None = None
        self._frames = FrameReader()
        self._begun = b""
        """The received part of an incomplete introduction frame."""
        self._steps: list[Callable[[Frame], None]] = []
        self._patience: asyncio.TimerHandle | None = None

    # -- called by the event loop ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=2**30)  # the node's windows bound the bytes in transit
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNANSWERED_MS)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1)
        nonce = os.urandom(NONCE_BYTES)
        if self.expected is None:
            server = ServerHandshake(self._owner.secret, SERVICE, nonce, self._owner.place)
            self._steps = [lambda frame: self._accept(server, frame), self._named]
            self._say(server.challenge())
        else:
            client = ClientHandshake(self._owner.secret, SERVICE, nonce, self._dialled)
            self._steps = [
                lambda frame: self._shake(client, frame),
                lambda frame: self._shake(client, frame),
                self._named,
            ]
        loop = asyncio.get_running_loop()
        self._patience = loop.call_later(HANDSHAKE_SECONDS, self.end, "it did not authenticate in time")

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        try:
            if self._steps:
                data = self._shake_hands(data)
            frames = self._frames.feed(data) if data else ()
        except PenstockError as error:
            self.end(error.message)
            return
        except HandshakeError as error:
            self.end(str(error))
            return
        if frames:
            self._owner.arrived(self, frames)

    def connection_lost(self, error: Exception | None) -> None:
        self.end(str(error) if error is not None else "it closed the connection")

    # -- the handshake ---------------------------------------------------------------------------------------

    def _shake_hands(self, data: bytes) -> bytes:
        """Takes one frame after the other, each of which must be short; returns what came behind the last."""
        self._begun += data
        while self._steps and self._transport is not None and len(self._begun) >= _SIZE_BYTES:
            size = _SIZE_BYTES + int.from_bytes(self._begun[:_SIZE_BYTES], "little")
            if size > HANDSHAKE_FRAME_BYTES:
                raise HandshakeError("the peer does not authenticate itself")
            if len(self._begun) < size:
                break
            whole, self._begun = self._begun[:size], self._begun[size:]
            for frame in FrameReader(HANDSHAKE_FRAME_BYTES).feed(whole):
                self._steps.pop(0)(frame)
        if self._steps or self._transport is None:
            return b""
        rest, self._begun = self._begun, b""
        return rest

    def _say(self, head: bytes) -> None:
        self.write(encode_frame(0, head))

    def _accept(self, handshake: ServerHandshake, frame: Frame) -> None:
        self._say(handshake.accept(frame.head))
        self._say(self._owner.name.encode())

    def _shake(self, handshake: ClientHandshake, frame: Frame) -> None:
        said = handshake.take(frame.head)
        self._say(said if said is not None else self._owner.name.encode())

    def _named(self, frame: Frame) -> None:
        self.peer = bytes(frame.head).decode("utf-8", "replace")
        if self.expected is not None and self.peer != self.expected:
            self.end(f"{self.peer} connected, but {self.expected} was expected")
            return
        if self._patience is not None:
            self._patience.cancel()
        if not self._owner.authenticated(self):
            self.end(f"{self.peer} is not wanted")

    # -- called by the owner ---------------------------------------------------------------------------------

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Sends, in the order of calls."""
        if self._transport is not None:
            write_together(self._transport, buffers, sum(map(len, buffers)))

    def end(self, why: str) -> None:
        """Closes the connection and tells its owner, once."""
        transport, self._transport = self._transport, None
        if self._patience is not None:
            self._patience.cancel()
        if transport is not None:
            transport.abort()
            self._owner.ended(self, why)

"""The streams of a node to all others: it listens, and connects to those whose name is after its own in the alphabet.

So there is one stream for each pair. A broken stream is reconnected, soon at first and then more slowly. A node that is no
longer in the layout is disconnected.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Mapping, Sequence
from typing import Protocol

from penstock.config.address import Address
from penstock.model.batch import Buffer
from penstock.runtime.cluster.peers.peer_connection import PeerConnection
from penstock.runtime.cluster.streams import Listener, dial, listen
from penstock.runtime.cluster.tls import ClusterTls
from penstock.runtime.native.bad_connections import BadConnections
from penstock.wire.frames import Frame
from penstock.wire.handshake import HandshakeError
from penstock.wire.peer_streams import PeerAttempts, PeerStreams

logger = logging.getLogger(__name__)

DIAL_SECONDS = 2.0
BACKLOG = 64


class Handler(Protocol):
    """Handles messages of other nodes: the driver."""

    def peer_connected(self, node: str) -> None: ...
    def peer_disconnected(self, node: str) -> None: ...
    def peer_frames(self, node: str, frames: Sequence[Frame]) -> str | None:
        """Frames arrived; why the stream is to be cut, if it is."""
        ...


class PeerLinks:
    """All streams of a node."""

    def __init__(
        self,
        name: str,
        secret: bytes,
        handler: Handler,
        place: str,
        tls: ClusterTls | None = None,
    ) -> None:
        self._tls = tls
        """With it the streams are encrypted, and each end asks for the other's certificate."""
        self.name = name
        self.secret = secret
        self.place = place
        """The address of this node in its entry."""
        self._handler = handler
        self._streams: PeerStreams[PeerConnection] = PeerStreams(name)
        self._dialling: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, asyncio.Event] = {}
        """By node that is dialled: set when its stream has ended."""
        self._server: Listener | None = None
        self._bad = BadConnections(logger)

    async def listen(self, listener: socket.socket) -> None:
        """Takes connections of other nodes from now on."""
        self._server = await listen(
            lambda: self._new(None), listener, self._tls, "the streams of nodes", BACKLOG
        )

    @property
    def connected(self) -> list[str]:
        """The nodes to which there is a stream."""
        return self._streams.nodes

    def _new(self, expected: str | None, dialled: str = "") -> PeerConnection:
        connection = PeerConnection(self, expected, dialled)
        oldest = self._streams.opened(connection, dialled=expected is not None)
        if oldest is not None:
            oldest.end("it was not authenticated, and new connections needed room")
        return connection

    def know(self, addresses: Mapping[str, str]) -> None:
        """Where the other nodes that live listen, by name."""
        for name in self._streams.know(addresses):
            self._dialling[name] = asyncio.create_task(self._keep(name), name=f"peer {name}")

    async def _keep(self, name: str) -> None:
        """Keeps a stream to a node for as long as it is in the layout."""
        attempts = PeerAttempts()
        ended = self._wanted[name] = asyncio.Event()
        try:
            while (address := self._streams.address(name)) is not None:
                why = await self._dial(name, address, ended)
                if why is None:
                    attempts.succeeded()
                    await ended.wait()
                elif attempts.failed():
                    logger.warning(
                        "cannot reach node %(node)s at %(address)s: %(error)s",
                        {"node": name, "address": address, "error": why},
                    )
                await asyncio.sleep(attempts.pause())
        finally:
            self._streams.left_alone(name)
            self._dialling.pop(name, None)
            self._wanted.pop(name, None)

    async def _dial(self, name: str, place: str, ended: asyncio.Event) -> str | None:
        """Connects; None once the other end has sent its name, otherwise the reason."""
        address = Address.parse(place, default_port=0)
        ended.clear()
        connection: PeerConnection | None = None
        try:
            async with asyncio.timeout(DIAL_SECONDS):
                connection = await dial(
                    lambda: self._new(name, str(address)), address.host, address.port, self._tls
                )
                while self._streams.find(name) is not connection:
                    if not self._streams.is_unnamed(connection):
                        return "it closed the connection before it was authenticated"
                    await asyncio.sleep(0.005)
        except TimeoutError:
            if connection is not None:
                connection.end("it does not answer")  # lest it answers when another one has
            return "it does not answer"
        except OSError as error:
            return error.strerror or str(error)
        except HandshakeError as error:
            return str(error)
        return None

    # -- connections -----------------------------------------------------------------------------------------

    def authenticated(self, connection: PeerConnection) -> bool:
        """Both ends have proven who they are."""
        name = connection.peer
        if not self._streams.named(connection, name) or name is None:
            return False
        older = self._streams.find(name)
        if older is not None:
            self._handler.peer_disconnected(name)
        self._streams.began(connection, name)  # before the older one ends: there is always one
        if older is not None:
            older.end("it has reconnected")
        logger.info("connected to node %(node)s", {"node": name})
        self._handler.peer_connected(name)
        return True

    def arrived(self, connection: PeerConnection, frames: Sequence[Frame]) -> None:
        """Frames of a node."""
        name = connection.peer
        if name is not None and self._streams.find(name) is connection:
            why = self._handler.peer_frames(name, frames)
            if why is not None:
                connection.end(why)

    def ended(self, connection: PeerConnection, why: str) -> None:
        """A connection is gone."""
        name = connection.peer
        was_stream = self._streams.ended(connection, name)
        if name is None:
            if not self._streams.is_closed and connection.expected is None:
                self._bad.tell("stranger", "refused a connection of a node: %(reason)s", reason=why)
            return
        if was_stream:
            logger.info("lost the connection to node %(node)s: %(error)s", {"node": name, "error": why})
            if not self._streams.is_closed:
                self._handler.peer_disconnected(name)
        if name in self._wanted and self._streams.find(name) is None:
            self._wanted[name].set()

    def write(self, name: str, buffers: Sequence[Buffer]) -> None:
        """Sends to a node, if it is connected."""
        connection = self._streams.find(name)
        if connection is not None:
            connection.write(buffers)

    async def close(self) -> None:
        """Ends all streams."""
        self._streams.is_closed = True
        if self._server is not None:
            self._server.close()
        tasks = list(self._dialling.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in self._streams:
            connection.end("this node stops")

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
from penstock.wire.backoff import PEER_STREAM
from penstock.wire.frames import Frame
from penstock.wire.handshake import HandshakeError
from penstock.wire.strangers import Strangers

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
        self._addresses: dict[str, str] = {}
        self._connections: dict[str, PeerConnection] = {}
        self._unnamed: set[PeerConnection] = set()
        self._strangers: Strangers[PeerConnection] = Strangers()
        """Those of them that have connected to this node."""
        self._dialling: dict[str, asyncio.Task[None]] = {}
        self._wanted: dict[str, asyncio.Event] = {}
        """By node that is dialled: set when its stream has ended."""
        self._server: Listener | None = None
        self._bad = BadConnections(logger)
        self._closed = False

    async def listen(self, listener: socket.socket) -> None:
        """Takes connections of other nodes from now on."""
        self._server = await listen(
            lambda: self._new(None), listener, self._tls, "the streams of nodes", BACKLOG
        )

    @property
    def connected(self) -> list[str]:
        """The nodes to which there is a stream."""
        return sorted(self._connections)

    def _new(self, expected: str | None, dialled: str = "") -> PeerConnection:
        connection = PeerConnection(self, expected, dialled)
        self._unnamed.add(connection)
        oldest = self._strangers.enter(connection) if expected is None else None
        if oldest is not None:
            oldest.end("it was not authenticated, and new connections needed room")
        return connection

    def know(self, addresses: Mapping[str, str]) -> None:
        """The addresses of the other living nodes, by name."""
        self._addresses = {name: place for name, place in addresses.items() if name != self.name}
        for name in self._addresses:
            if name > self.name and name not in self._dialling and not self._closed:
                self._dialling[name] = asyncio.create_task(self._keep(name), name=f"peer {name}")

    async def _keep(self, name: str) -> None:
        """Keeps a stream to a node for as long as it is in the layout."""
        pauses, failing = PEER_STREAM.begin(), False
        ended = self._wanted[name] = asyncio.Event()
        try:
            while name in self._addresses:
                why = await self._dial(name, self._addresses[name], ended)
                if why is None:
                    pauses.reset()
                    failing = False
                    await ended.wait()
                elif not failing:
                    failing = True
                    logger.warning(
                        "cannot reach node %(node)s at %(address)s: %(error)s",
                        {"node": name, "address": self._addresses.get(name), "error": why},
                    )
                await asyncio.sleep(pauses.pause())
        finally:
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
                while self._connections.get(name) is not connection:
                    if connection not in self._unnamed:
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

    def introduced(self, connection: PeerConnection) -> bool:
        """Both ends have proven who they are."""
        name = connection.peer
        self._unnamed.discard(connection)
        self._strangers.leave(connection)
        if name is None or name == self.name or self._closed:
            return False
        older = self._connections.get(name)
        if older is not None:
            self._handler.peer_disconnected(name)
        self._connections[name] = connection  # before the older one ends, so that there is never none
        if older is not None:
            older.end("it has reconnected")
        logger.info("connected to node %(node)s", {"node": name})
        self._handler.peer_connected(name)
        return True

    def arrived(self, connection: PeerConnection, frames: Sequence[Frame]) -> None:
        """Frames of a node."""
        name = connection.peer
        if name is not None and self._connections.get(name) is connection:
            why = self._handler.peer_frames(name, frames)
            if why is not None:
                connection.end(why)

    def ended(self, connection: PeerConnection, why: str) -> None:
        """A connection is gone."""
        self._unnamed.discard(connection)
        self._strangers.leave(connection)
        name = connection.peer
        if name is None:
            if not self._closed and connection.expected is None:
                self._bad.tell("stranger", "refused a connection of a node: %(reason)s", reason=why)
            return
        if self._connections.get(name) is connection:
            del self._connections[name]
            logger.info("lost the connection to node %(node)s: %(error)s", {"node": name, "error": why})
            if not self._closed:
                self._handler.peer_disconnected(name)
        if name in self._wanted and name not in self._connections:
            self._wanted[name].set()

    def write(self, name: str, buffers: Sequence[Buffer]) -> None:
        """Sends to a node, if it is connected."""
        connection = self._connections.get(name)
        if connection is not None:
            connection.write(buffers)

    async def close(self) -> None:
        """Ends all streams."""
        self._closed = True
        if self._server is not None:
            self._server.close()
        tasks = list(self._dialling.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in [*self._connections.values(), *self._unnamed]:
            connection.end("this node stops")

"""The streams between nodes, as one node decides about them: which nodes it connects to, when again, and which connection of two counts.

Of two nodes the one whose name comes first connects to the other, so there is one stream for each pair. A stream that breaks is
connected again, soon at first and then more slowly; a node that is not in the layout any more is left alone. Sockets are the hands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from penstock.wire.backoff import PEER_STREAM
from penstock.wire.strangers import Strangers

Connection = TypeVar("Connection")


class PeerStreams(Generic[Connection]):
    """All connections of one node to other nodes, from either side."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._addresses: Mapping[str, str] = {}
        self._connections: dict[str, Connection] = {}
        """By node, where both ends have proven who they are."""
        self._unnamed: set[Connection] = set()
        self._strangers: Strangers[Connection] = Strangers()
        """Those of them that have connected to this node."""
        self._sought: set[str] = set()
        """The nodes that are being connected to."""
        self.is_closed = False

    @property
    def nodes(self) -> list[str]:
        """The nodes to which there is a stream."""
        return sorted(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        """All connections, also those that have not said yet who they are."""
        return iter([*self._connections.values(), *self._unnamed])

    def find(self, node: str) -> Connection | None:
        """The stream to a node."""
        return self._connections.get(node)

    def is_unnamed(self, connection: Connection) -> bool:
        """Whether it is open and has not said yet who it is."""
        return connection in self._unnamed

    # -- connecting ------------------------------------------------------------------------------------------

    def know(self, addresses: Mapping[str, str]) -> list[str]:
        """Where the other nodes that live listen, by name; returns those to connect to from now on, until `address` is None."""
        self._addresses = {node: place for node, place in addresses.items() if node != self._name}
        if self.is_closed:
            return []
        begun = [node for node in self._addresses if node > self._name and node not in self._sought]
        self._sought.update(begun)
        return begun

    def address(self, node: str) -> str | None:
        """Where to connect to a node; None: it is not in the layout any more."""
        return self._addresses.get(node)

    def left_alone(self, node: str) -> None:
        """It is connected to no more."""
        self._sought.discard(node)

    # -- connections -----------------------------------------------------------------------------------------

    def opened(self, connection: Connection, *, dialled: bool) -> Connection | None:
        """A connection to or from somewhere; returns one that has to go for it."""
        self._unnamed.add(connection)
        return None if dialled else self._strangers.enter(connection)

    def named(self, connection: Connection, node: str | None) -> bool:
        """Both ends have proven who they are; whether this node wants the connection."""
        self._unnamed.discard(connection)
        self._strangers.leave(connection)
        return node is not None and node != self._name and not self.is_closed

    def began(self, connection: Connection, node: str) -> None:
        """From now on this is the stream to the node; an older one counts no more."""
        self._connections[node] = connection

    def ended(self, connection: Connection, node: str | None) -> bool:
        """A connection is gone; whether it was the stream to the node."""
        self._unnamed.discard(connection)
        self._strangers.leave(connection)
        if node is None or self._connections.get(node) is not connection:
            return False
        del self._connections[node]
        return True


class PeerAttempts:
    """The attempts to connect to one node, and when the next one is."""

    def __init__(self) -> None:
        self._pauses = PEER_STREAM.begin()
        self._is_failing = False

    def succeeded(self) -> None:
        """There is a stream; when it ends, the next attempt is soon."""
        self._pauses.reset()
        self._is_failing = False

    def failed(self) -> bool:
        """Whether to log it: the first failure after a success is."""
        was_failing, self._is_failing = self._is_failing, True
        return not was_failing

    def pause(self) -> float:
        """How long to wait before the next attempt."""
        return self._pauses.pause()

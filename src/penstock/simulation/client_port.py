"""The native port of a simulated machine: the counterpart of `runtime.native.server`, over simulated connections.

The product (`wire.client_session`) decides which input is accepted, which clients are refused and when reading stops. Here
are the sockets: each has a buffer, of which a turn reads a limited part. One port is one life of the process.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import count
from math import ceil
from typing import Protocol

from penstock.backend.node.node import Node
from penstock.model.batch import Buffer
from penstock.simulation.later import Cancellable
from penstock.simulation.network import Link
from penstock.simulation.schedule import Times
from penstock.wire.client_session import ClientSession, SessionTerms
from penstock.wire.client_sessions import ClientSessions
from penstock.wire.frames import PREFIX_BYTES, Frame

_READ_BYTES = 4096
"""The maximum read in one turn from a connection with held-back input."""
_ARRIVED_BYTES = 16 * 1024
"""The maximum read from a connection before the next turn."""
_TERMS = SessionTerms(max_connections=1_000, write_buffer_bytes=1024 * 1024, hello_timeout_seconds=10.0)


class Driver(Protocol):
    """Runs the node."""

    ended: bool
    taken_bytes: int

    @property
    def congested(self) -> bool:
        """Whether clients are not to be read from."""

    def call(self, call: Callable[[Node], None]) -> None:
        """Lets the node do something."""

    def wake(self) -> None:
        """Takes a turn soon."""

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        """Does something later, if the process still lives."""

    def came(self, requests: int) -> None:
        """So many requests arrived."""


class SimulatedSocket:
    """See `ClientSocket`: the server's end of a connection."""

    def __init__(self, port: ClientPort, link: Link) -> None:
        self.link = link
        self.waiting: deque[bytes] = deque()
        """Bytes that have arrived and were not read yet."""
        self.taken = 0
        """How many bytes were read since the last turn."""
        self.is_paused = False
        self.is_closing = False
        self.unread_bytes = 0
        self._port = port
        self.session = ClientSession(port.sessions, self)

    @property
    def peer(self) -> str:
        """The peer."""
        return f"client {self.link.number}"

    def say(self, frame: Sequence[Buffer]) -> None:
        """See `ClientSocket`."""
        if self._port.is_open and not self.is_closing:
            self.link.to_client(b"".join(frame))

    def end_output(self) -> None:
        """See `ClientSocket`: the client reads on until the connection ends."""

    def pause_reading(self) -> None:
        """See `ClientSocket`."""
        self.is_paused = True

    def resume_reading(self) -> None:
        """See `ClientSocket`."""
        self.is_paused = False
        if self.waiting:
            self._port.resumed()

    def abort(self) -> None:
        """See `ClientSocket`."""
        if self._port.is_open and not self.is_closing:
            self.is_closing = True
            self.link.break_off()


class ClientPort:
    """See `Handler`: passes frames to the node of one process."""

    def __init__(self, driver: Driver, schedule: Times, handle: Callable[[int, Frame, Node], None]) -> None:
        """`handle` hands a frame of a connection to the node."""
        self.is_open = True
        # No time passes within a turn here: each look at the clock takes a microsecond, so that turns end.
        self.sessions: ClientSessions[SimulatedSocket] = ClientSessions(
            _TERMS, self._later, _ignored, lambda: b"", count().__next__
        )
        self._driver = driver
        self._schedule = schedule
        self._handle = handle
        self._sockets: dict[Link, SimulatedSocket] = {}
        self._has_arrived = False
        """Whether something was read since `read_on` looked, or waits to be read."""
        self.sessions.start(self)

    # -- the network -----------------------------------------------------------------------------------------

    def opened(self, link: Link) -> None:
        """A client has connected."""
        socket = self._sockets[link] = SimulatedSocket(self, link)
        socket.session.opened()

    def lost(self, link: Link) -> None:
        """A client is gone."""
        if (socket := self._sockets.pop(link, None)) is not None:
            socket.is_closing = True
            socket.session.lost()

    def arrived(self, link: Link, data: bytes) -> None:
        """Bytes of a client."""
        if (socket := self._sockets.get(link)) is None:
            return
        self._has_arrived = True
        if socket.is_paused or socket.waiting:
            socket.waiting.append(data)
        elif socket.taken >= _ARRIVED_BYTES:
            socket.waiting.append(data)
            self._driver.wake()
        else:
            self._read(socket, data)

    def read_on(self) -> bool:
        """A turn is over: reads some of what waits; True if there is more."""
        if not self._has_arrived:
            return False
        for socket in list(self._sockets.values()):
            socket.taken = 0
            while socket.waiting and not socket.is_paused and socket.taken < _READ_BYTES:
                self._read(socket, socket.waiting.popleft())
        self._has_arrived = any(socket.waiting and not socket.is_paused for socket in self._sockets.values())
        return self._has_arrived

    def resumed(self) -> None:
        """Something that has arrived may be read now: the next turn does."""
        self._has_arrived = True
        self._driver.wake()

    def _read(self, socket: SimulatedSocket, data: bytes) -> None:
        socket.taken += len(data)
        socket.session.arrived(data)

    def write(self, connection: int, data: bytes) -> None:
        """Answers of the node, for a client that may be gone."""
        if (session := self.sessions.connections.get(connection)) is not None:
            session.socket.say((data,))

    def close(self) -> None:
        """The process is gone, and clients notice."""
        self.is_open = False
        for link in self._sockets:
            link.server_stopped()

    def _later(self, seconds: float, call: Callable[[], None]) -> Cancellable:
        later = Cancellable(call)
        self._driver.later(ceil(1000 * seconds), lambda: later.run() if self.is_open else None)
        return later

    # -- what sessions hand on -------------------------------------------------------------------------------

    @property
    def congested(self) -> bool:
        """See `Handler`."""
        return self._driver.congested

    def connected(self, connection: int) -> None:
        """See `Handler`."""
        self._driver.call(lambda node: node.connected(connection))

    def disconnected(self, connection: int) -> None:
        """See `Handler`."""
        self._driver.call(lambda node: node.disconnected(connection, self._schedule.now_ms))
        self._driver.wake()

    def behind(self, connection: int) -> None:
        """See `Handler`."""
        self._driver.call(lambda node: node.behind(connection))

    def caught_up(self, connection: int) -> None:
        """See `Handler`."""
        self._driver.call(lambda node: node.caught_up(connection))

    def handle(self, connection: int, frames: Iterable[Frame], stands_for: int = 1) -> None:
        """See `Handler`."""
        driver = self._driver
        for frame in frames:
            driver.taken_bytes += PREFIX_BYTES + len(frame.head) + len(frame.body)
            driver.came(stands_for)
            driver.call(partial(self._handle, connection, frame))
        driver.wake()


def _ignored(kind: str, sentence: str, **values: object) -> None:
    """There is no log of refused connections."""

"""Connections that are late, cut bytes into arbitrary pieces, and break.

Like TCP they never reorder, lose or change bytes in the middle: a direction delivers a prefix of its bytes, and then both
ends learn, at different times, that the connection is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import Protocol

from penstock.simulation.schedule import Schedule

_IMPATIENCE_MS = 10


class Acceptor(Protocol):
    """The server's end of the network."""

    def accepts(self) -> bool: ...
    def opened(self, link: Link) -> None: ...
    def arrived(self, link: Link, data: bytes) -> None: ...
    def lost(self, link: Link) -> None: ...


class Network:
    """Where clients find the server, and the delays."""

    def __init__(self, schedule: Schedule, random: Random, acceptor: Acceptor) -> None:
        self.schedule = schedule
        self.random = random
        self.acceptor = acceptor
        self.latency_ms = (0, 3)
        self.cut_share = 0.1
        """How often what is sent arrives in more than one piece."""
        self._next_number = 1
        self.open_links: dict[int, Link] = {}

    def connect(self, arrived: Callable[[bytes], None], lost: Callable[[], None]) -> Link | None:
        """A connection, or None if no server listens."""
        if not self.acceptor.accepts():
            return None
        link = self._make_link(arrived, lost)
        self._next_number += 1
        self.open_links[link.number] = link
        self.acceptor.opened(link)
        return link

    def _make_link(self, arrived: Callable[[bytes], None], lost: Callable[[], None]) -> Link:
        return Link(self, self._next_number, arrived, lost)

    def delay_ms(self) -> int:
        """How long a piece is on its way."""
        return self.random.randint(*self.latency_ms)

    def pieces(self, data: bytes) -> list[bytes]:
        """The pieces of one write, as they arrive."""
        if len(data) < 2 or self.random.random() >= self.cut_share:
            return [data]
        cuts = sorted(self.random.randrange(1, len(data)) for _ in range(self.random.randint(1, 3)))
        return [
            data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True) if start < end
        ]


class Link:
    """One connection. `number` identifies it for the node."""

    def __init__(
        self, network: Network, number: int, arrived: Callable[[bytes], None], lost: Callable[[], None]
    ) -> None:
        self._network = network
        self.number = number
        self._arrived = arrived
        self._lost = lost
        self.broken = False
        self._client_knows = False
        self._server_knows = False
        self._to_server_ms = 0
        self._to_client_ms = 0
        self.is_given_up = False
        """Whether the client closes it soon after its next request."""

    def to_server(self, data: bytes) -> None:
        """The client sends."""
        self._to_server_ms = self._send(data, self._to_server_ms, self._at_server)
        if self.is_given_up and not self.broken:
            self._leave(0, _IMPATIENCE_MS)

    def to_client(self, data: bytes) -> None:
        """The server sends."""
        self._to_client_ms = self._send(data, self._to_client_ms, self._at_client)

    def _send(self, data: bytes, not_before_ms: int, arrive: Callable[[bytes], None]) -> int:
        """Sends pieces that arrive in order; returns when the last of them does."""
        schedule = self._network.schedule
        for piece in self._network.pieces(data):
            not_before_ms = max(not_before_ms, schedule.elapsed_ms + self._network.delay_ms())
            schedule.after(not_before_ms - schedule.elapsed_ms, partial(arrive, piece))
        return not_before_ms

    def _at_server(self, piece: bytes) -> None:
        if not self._server_knows:
            self._network.acceptor.arrived(self, piece)

    def _at_client(self, piece: bytes) -> None:
        if not self._client_knows:
            self._arrived(piece)

    def stall(self, duration_ms: int) -> None:
        """Delays everything sent from now on for so long."""
        until_ms = self._network.schedule.elapsed_ms + duration_ms
        self._to_server_ms = max(self._to_server_ms, until_ms)
        self._to_client_ms = max(self._to_client_ms, until_ms)

    def close(self) -> None:
        """The client closes it: sent bytes arrive all the same, even if there is another connection already."""
        if not self.broken and self._network.random.random() < 0.7:
            self._leave(self._network.delay_ms(), self._network.delay_ms())
        else:
            self.break_off()

    def _leave(self, server_ms: int, client_ms: int) -> None:
        schedule = self._network.schedule
        self.broken = True
        self._network.open_links.pop(self.number, None)
        left_ms = self._to_server_ms - schedule.elapsed_ms
        schedule.after(max(left_ms, server_ms), self._tell_server)
        schedule.after(client_ms, self._tell_client)

    def break_off(self, *, at_once: bool = False) -> None:
        """The connection is gone; both ends learn of it, some of what is on its way may still arrive before."""
        if self.broken:
            return
        self.broken = True
        self._network.open_links.pop(self.number, None)
        if at_once:
            self._tell_server()
            self._tell_client()
            return
        schedule = self._network.schedule
        schedule.after(self._network.delay_ms() + self._network.random.randint(0, 20), self._tell_server)
        schedule.after(self._network.delay_ms() + self._network.random.randint(0, 20), self._tell_client)

    def server_stopped(self) -> None:
        """The server is gone: only the client must be told."""
        self._server_knows = True
        self.break_off()

    def _tell_server(self) -> None:
        if not self._server_knows:
            self._server_knows = True
            self._network.acceptor.lost(self)

    def _tell_client(self) -> None:
        if not self._client_knows:
            self._client_knows = True
            self._lost()

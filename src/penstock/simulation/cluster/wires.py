"""Networks that can be cut, in one direction or both: data sent then waits, like TCP retransmissions.

Order is kept within a connection. A cut that lasts longer than the timeouts of the two ends breaks the connection; one
that is repaired before delivers everything that had accumulated.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from penstock.simulation.network import Acceptor, Link, Network
from penstock.simulation.schedule import Schedule

_PATIENCE_MS = (200, 2_500)
_SENT_AGAIN_MS = 200
"""After so long TCP sends again what was not confirmed, then after twice as long."""


class CutNetwork(Network):
    """The network from a client to a machine."""

    def __init__(self, schedule: Schedule, random: Random, acceptor: Acceptor) -> None:
        super().__init__(schedule, random, acceptor)
        self.cut_to_server = False
        self.cut_to_client = False
        self.loss = 0.0
        """How often a packet is lost; TCP sends it again, and what follows it on the connection waits."""

    def delay_ms(self) -> int:
        delay_ms = super().delay_ms()
        if self.loss:
            again_ms = _SENT_AGAIN_MS
            while self.random.random() < self.loss:
                delay_ms += again_ms
                again_ms *= 2
        return delay_ms

    @property
    def is_cut(self) -> bool:
        """Whether no connection is possible."""
        return self.cut_to_server or self.cut_to_client

    def connect(self, arrived: Callable[[bytes], None], lost: Callable[[], None]) -> Link | None:
        """A connection needs both directions."""
        return None if self.is_cut else super().connect(arrived, lost)

    def cut(self, *, to_server: bool, to_client: bool) -> None:
        """Cuts it now; connections break when a timeout ends."""
        self.cut_to_server |= to_server
        self.cut_to_client |= to_client
        for link in list(self.open_links.values()):
            self.schedule.after(self.random.randint(*_PATIENCE_MS), lambda link=link: self._give_up(link))  # type: ignore[misc]  # a lambda with its own value

    def hold(self, *, to_server: bool) -> None:
        """Delays everything in one direction from now on, without timeouts."""
        self.cut_to_server |= to_server
        self.cut_to_client |= not to_server

    def mend(self) -> None:
        """Everything passes again, first what was held up."""
        self.cut_to_server = self.cut_to_client = False
        for link in list(self.open_links.values()):
            assert isinstance(link, CutLink)
            link.pass_on()

    def _give_up(self, link: Link) -> None:
        if self.is_cut:
            link.break_off()

    def _make_link(self, arrived: Callable[[bytes], None], lost: Callable[[], None]) -> Link:
        return CutLink(self, self._next_number, arrived, lost)


class CutLink(Link):
    """One connection over such a network."""

    def __init__(
        self, network: CutNetwork, number: int, arrived: Callable[[bytes], None], lost: Callable[[], None]
    ) -> None:
        super().__init__(network, number, arrived, lost)
        self._way = network
        self._held_to_server: list[bytes] = []
        self._held_to_client: list[bytes] = []

    def pass_on(self) -> None:
        """Delivers delayed data."""
        held, self._held_to_server = self._held_to_server, []
        for piece in held:
            super()._at_server(piece)
        held, self._held_to_client = self._held_to_client, []
        for piece in held:
            super()._at_client(piece)

    def _at_server(self, piece: bytes) -> None:
        if self._way.cut_to_server:
            self._held_to_server.append(piece)
        elif not self.broken or not self._held_to_server:
            super()._at_server(piece)

    def _at_client(self, piece: bytes) -> None:
        if self._way.cut_to_client:
            self._held_to_client.append(piece)
        elif not self.broken or not self._held_to_client:
            super()._at_client(piece)

"""A scripted server with a clock of its own, and a client whose clocks a test holds in its hands."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import msgspec

import penstock
from penstock import Client, LocalClock, QueueSettings
from penstock.ordering.clock_interval import ClockInterval
from penstock.wire.messages import ClockReading, QueueDescription, ReadClock, Request
from tests.client.peer import Peer, Seen, closing

TRUE_US = 1_700_000_000_000_000
WALL_US = TRUE_US - 3_600_000_000
"""The client's wall clock is an hour behind."""


class Hands:
    """A client's clocks; they stand still but for exchanges, which take `ClockPeer.round_trip_us`."""

    def __init__(self) -> None:
        self.reading_us = 5_000_000
        self.local = LocalClock(lambda: WALL_US + self.reading_us - 5_000_000, lambda: self.reading_us)


class ClockPeer(Peer):
    """Answers readings of the clock by itself."""

    def __init__(self, hands: Hands) -> None:
        super().__init__()
        self.settings = QueueSettings()
        self.hands = hands
        self.round_trip_us = 200
        self.error_us: int | None = 0
        self.lead_us = 0
        """By how much more it takes the time for later than for earlier."""
        self.drift_ppm = 200
        self.readings = 0

    def true_us(self) -> int:
        return TRUE_US + self.hands.reading_us - 5_000_000

    def _take(self, seen: Seen[Request]) -> None:
        if not isinstance(seen.request, ReadClock):
            super()._take(seen)
            return
        self.readings += 1
        self.hands.reading_us += self.round_trip_us // 2
        if self.error_us is None:
            seen.answer(ClockReading(0, 0, 0, 0, self.drift_ppm, "chrony"))
        else:
            known = ClockInterval(
                self.true_us() - self.error_us, self.true_us() + self.error_us + self.lead_us
            )
            seen.answer(ClockReading(*known, *known, self.drift_ppm, "chrony"))
        self.hands.reading_us += self.round_trip_us - self.round_trip_us // 2

    def description(self, name: str) -> QueueDescription:
        return msgspec.structs.replace(super().description(name), settings=self.settings)


@contextlib.asynccontextmanager
async def clocked() -> AsyncIterator[tuple[ClockPeer, Client]]:
    """A peer and a client of it, whose clocks are in the peer's hands."""
    hands = Hands()
    async with ClockPeer(hands) as peer:
        client = await penstock.connect(peer.url, local_clock=hands.local)
        async with closing(peer, client):
            yield peer, client

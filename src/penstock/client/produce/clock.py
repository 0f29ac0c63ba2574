"""The client's clock: the server's time as an interval, from exchanges with the server.

The client asks only when the time is first needed. Then there are a few exchanges, because the quickest of them gives the
best bounds, and from then on one now and then for as long as the time is in use.
"""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import datetime, timedelta
from typing import NamedTuple

from penstock.client.connection.call import FutureCall
from penstock.client.connection.link import Link
from penstock.client.duration import moment_us
from penstock.client_core.call import unexpected
from penstock.model.errors import ErrorCode, PenstockError
from penstock.ordering.clock_estimator import DRIFT_PPM, ClockEstimator, Exchange
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.local_clock import LocalClock
from penstock.wire.messages import Answer, ClockReading, ReadClock

logger = logging.getLogger("penstock.client")

FIRST_EXCHANGES = 4
REFRESH_SECONDS = 5.0
"""At the usual drift the time becomes uncertain by 1 ms meanwhile; it is refreshed sooner if it must be more certain."""
SOONEST_SECONDS = 0.05
IDLE_SECONDS = 60.0
"""If the time was not needed for so long, the exchanges stop until it is."""

_UNBENT = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)
LOCAL_CLOCK = LocalClock(
    lambda: time.time_ns() // 1000,
    lambda: time.clock_gettime_ns(_UNBENT) // 1000,
)
"""This computer's."""


class ClockStatus(NamedTuple):
    """A client's knowledge of the server's time; made by `client.clock()`."""

    earliest_us: int
    latest_us: int
    """The server's time is between these, in microseconds since 1970."""
    offset_us: int
    """How far the server's time is ahead of this computer's wall clock; below 0: behind."""
    uncertainty_us: int
    """How far the offset may be off."""
    round_trip_us: int
    """How long the quickest of the last exchanges took."""
    drift_ppm: int
    """How fast this computer's clock is taken to run wrong at most."""
    source: str
    """The source of the server's time: `own`, `chrony` or `clockbound`."""
    server_uncertainty_us: int
    """How far the server's own time may be off; part of the uncertainty."""

    @property
    def now(self) -> datetime:
        """The server's time, as nearly as it is known."""
        return moment_us((self.earliest_us + self.latest_us) // 2)

    @property
    def offset(self) -> timedelta:
        """How far the server's time is ahead of this computer's wall clock."""
        return timedelta(microseconds=self.offset_us)

    @property
    def uncertainty(self) -> timedelta:
        """How far the offset may be off."""
        return timedelta(microseconds=self.uncertainty_us)


class ClientClock:
    """The server's time, for one link."""

    def __init__(self, link: Link, local: LocalClock = LOCAL_CLOCK, drift_ppm: int = DRIFT_PPM) -> None:
        self.local = local
        self.drift_ppm = drift_ppm
        self._link = link
        self._estimator = ClockEstimator(drift_ppm)
        self._contradictions = 0
        self._source = "nobody"
        self._reading: ClockReading | None = None
        """The last one in which the server knew the time."""
        self._asking = asyncio.Lock()
        self._used_until = 0.0
        self._refresh_seconds = REFRESH_SECONDS
        self._refreshing: asyncio.Task[None] | None = None
        link.background.add(self)

    def interval(self) -> tuple[ClockInterval | None, int]:
        """The server's time, None while it is not known, and the reading of the local clock at which it is that."""
        reading_us = self.local.reading_us()
        return self._estimator.interval(reading_us), reading_us

    async def within(self, limit_us: int | None) -> ClockInterval | None:
        """The time, known to within `limit_us` if a few exchanges can achieve that; None if it is unknown."""
        self._keep_fresh(limit_us)
        if not self._known(limit_us):
            async with self._asking:
                first = self._reading is None
                for _ in range(FIRST_EXCHANGES):
                    if self._known(limit_us) and not first:
                        break
                    await self._exchange()
        return self.interval()[0]

    async def status(self) -> ClockStatus:
        """The time after a few more exchanges; raises where the server does not know it."""
        self._keep_fresh(None)
        async with self._asking:
            round_trip_us = min([await self._exchange() for _ in range(FIRST_EXCHANGES)])
        known, reading = self.interval()[0], self._reading
        if known is None or reading is None:
            raise self.unknown()
        return ClockStatus(
            *known,
            known.middle_us - self.local.wall_us(),
            known.uncertainty_us,
            round_trip_us,
            self.drift_ppm,
            reading.source,
            (reading.sent_latest_us - reading.sent_earliest_us + 1) // 2,
        )

    def unknown(self) -> PenstockError:
        """Why the time is unknown."""
        return PenstockError(
            ErrorCode.CLOCK_UNCERTAIN,
            f"the server does not know the time yet: {self._source} has not answered yet (the server's clock.source)",
        )

    def is_within(self, limit_us: int | None) -> bool:
        """Whether the time is known to within that limit, without an exchange."""
        self._keep_fresh(limit_us)
        return self._known(limit_us)

    def _known(self, limit_us: int | None) -> bool:
        known = self.interval()[0]
        return known is not None and (limit_us is None or known.uncertainty_us <= limit_us)

    # -- exchanges -------------------------------------------------------------------------------------------

    async def _exchange(self) -> int:
        """Asks the server; returns how long that took."""
        sent_us = self.local.reading_us()

        def convert(_call: FutureCall[int], answer: Answer, _body: memoryview) -> int:
            # at once: an awaiting caller would be called in a later turn
            returned_us = self.local.reading_us()
            if not isinstance(answer, ClockReading):
                raise unexpected(answer)
            self._learn(sent_us, answer, returned_us)
            return returned_us - sent_us

        call = FutureCall(self._link.loop, convert)
        self._link.start(call, ReadClock())
        return await call.future

    def _learn(self, sent_us: int, reading: ClockReading, returned_us: int) -> None:
        self._source = reading.source
        if not reading.sent_latest_us:
            return  # the server does not know the time itself
        if reading.drift_ppm > self.drift_ppm:
            # Time itself passes as unevenly as the server's clock does.
            self.drift_ppm = reading.drift_ppm
            self._estimator = ClockEstimator(reading.drift_ppm)
            self._contradictions = 0
        received = ClockInterval(reading.received_earliest_us, reading.received_latest_us)
        sent = ClockInterval(reading.sent_earliest_us, reading.sent_latest_us)
        self._estimator.learn(Exchange(sent_us, received, sent, returned_us))
        self._reading = reading
        if self._estimator.contradictions > self._contradictions:
            self._contradictions = self._estimator.contradictions
            logger.warning(
                "the server's time contradicts its earlier time: a clock was stepped, or its rate is "
                "wrong by more than %(drift_ppm)d ppm. The time is less certain until the clocks agree "
                "again",
                {"drift_ppm": self.drift_ppm},
            )

    # -- keeping it fresh ------------------------------------------------------------------------------------

    def _keep_fresh(self, limit_us: int | None) -> None:
        self._used_until = self._link.loop.time() + IDLE_SECONDS
        if limit_us is not None:
            # A quarter of what is allowed may be lost to drift between two exchanges.
            needed = limit_us / (4 * self.drift_ppm)
            self._refresh_seconds = max(SOONEST_SECONDS, min(needed, self._refresh_seconds))
        if self._refreshing is None:
            self._refreshing = self._link.loop.create_task(self._refresh(), name="penstock clock")

    async def _refresh(self) -> None:
        try:
            while self._link.loop.time() < self._used_until:
                await asyncio.sleep(self._refresh_seconds)
                try:
                    async with self._asking:
                        await self._exchange()
                except PenstockError as error:
                    logger.debug(
                        "could not measure the server's time more precisely: %(error)s", {"error": error}
                    )
        finally:
            self._refreshing = None

    async def close(self) -> None:
        """Stops the exchanges."""
        if self._refreshing is not None:
            self._refreshing.cancel()

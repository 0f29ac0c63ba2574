"""Reads the maximum error of the wall clock from ClockBound's shared memory (version 2 of its protocol).

The daemon writes the bound about once a second, with the monotonic time at which it held and the rate at which it grows.
Its generation is odd while it writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.ordering.clock_estimator import Exchange, host_reading
from penstock.ordering.clock_interval import around
from penstock.ordering.clockbound_page import LAYOUT, PageError, PageReads, error_bound_us
from penstock.ordering.local_clock import LocalClock
from penstock.runtime.clocks.host_clock import LOCAL_CLOCK, HostClockError

SEGMENT = "/var/run/clockbound/shm0"


class ClockBound:
    """The ClockBound daemon of this computer."""

    name = "clockbound"

    def __init__(
        self,
        segment: str = SEGMENT,
        local: LocalClock = LOCAL_CLOCK,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._segment = segment
        self._local = local
        self._monotonic_ns = monotonic_ns

    def read(self) -> Exchange:
        """Reads the bound, and the clocks after it."""
        try:
            page = self._page()
            before_us = self._local.reading_us()
            wall_us = self._local.wall_us()
            known = around(wall_us, error_bound_us(page, self._monotonic_ns()))
        except PageError as error:
            raise HostClockError(str(error)) from None
        return host_reading(before_us, known, self._local.reading_us())

    def _page(self) -> bytes:
        """What the daemon wrote, whole."""
        reads = PageReads()
        try:
            with open(self._segment, "rb", buffering=0) as file:
                while True:
                    file.seek(0)
                    page = reads.take(file.read(LAYOUT.size))
                    if page is not None:
                        return page
        except OSError as error:
            raise HostClockError(f"ClockBound is not there: {error.strerror or error}") from None

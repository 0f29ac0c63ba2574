"""Reads the maximum error of the wall clock from ClockBound's shared memory (version 2 of its protocol).

The daemon writes the bound about once a second, with the monotonic time at which it held and the rate at which it grows.
Its generation is odd while it writes.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from penstock.ordering.clock_estimator import Exchange, host_reading
from penstock.ordering.clock_interval import around
from penstock.ordering.local_clock import LocalClock
from penstock.runtime.clocks.host_clock import LOCAL_CLOCK, HostClockError

SEGMENT = "/var/run/clockbound/shm0"
MAGIC = (0x414D5A4E, 0x43420200)
VERSION = 2
SYNCHRONIZED, FREE_RUNNING = 1, 2
LAYOUT = struct.Struct("=IIIHHqqqqqQIiB7x")
"""Magic, size, version, generation; as of, void after (seconds, nanoseconds); bound, disruptions, drift, status."""
_TRIES = 10
_SECOND_NS = 1_000_000_000


def error_bound_us(segment: bytes, monotonic_ns: int) -> int:
    """How far the wall clock may be off at a monotonic time; raises `HostClockError`."""
    if len(segment) < LAYOUT.size:
        raise HostClockError("ClockBound's shared memory is too short")
    first, second, _, version, _, as_of_s, as_of_ns, void_s, void_ns, bound_ns, _, drift_ppb, status, _ = (
        LAYOUT.unpack_from(segment)
    )
    if (first, second) != MAGIC or version != VERSION:
        raise HostClockError(f"ClockBound's shared memory is not of version {VERSION}")
    if status not in (SYNCHRONIZED, FREE_RUNNING) or monotonic_ns >= void_s * _SECOND_NS + void_ns:
        raise HostClockError("ClockBound does not guarantee the time at the moment")
    # Its monotonic clock is a coarse one, which may be a little ahead of what we read.
    elapsed_ns: int = max(0, monotonic_ns - (as_of_s * _SECOND_NS + as_of_ns))
    grown_ns: int = bound_ns + elapsed_ns * drift_ppb // _SECOND_NS
    return grown_ns // 1000 + 1


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
        segment = self._snapshot()
        before_us = self._local.reading_us()
        wall_us = self._local.wall_us()
        known = around(wall_us, error_bound_us(segment, self._monotonic_ns()))
        return host_reading(before_us, known, self._local.reading_us())

    def _snapshot(self) -> bytes:
        """A consistent copy of the daemon's data."""
        try:
            with open(self._segment, "rb", buffering=0) as file:
                before = file.read(LAYOUT.size)
                for _ in range(_TRIES):
                    file.seek(0)
                    after = file.read(LAYOUT.size)
                    if before == after and (len(after) < LAYOUT.size or _finished(after)):
                        return after
                    before = after
        except OSError as error:
            raise HostClockError(f"ClockBound is not there: {error.strerror or error}") from None
        raise HostClockError("ClockBound is in the middle of an update, or has not begun")


def _finished(segment: bytes) -> bool:
    generation: int = LAYOUT.unpack_from(segment)[4]
    return generation > 0 and generation % 2 == 0

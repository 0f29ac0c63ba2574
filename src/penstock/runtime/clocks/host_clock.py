"""The computer's own clocks, and the interface of a daemon that synchronizes them."""

from __future__ import annotations

import time
from typing import Protocol

from penstock.ordering.clock_estimator import Exchange
from penstock.ordering.local_clock import LocalClock

# No program adjusts this clock; systems other than Linux lack it and use the most similar one.
_UNBENT = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)


def wall_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def reading_us() -> int:
    """Microseconds of the clock that no program corrects."""
    return time.clock_gettime_ns(_UNBENT) // 1000


LOCAL_CLOCK = LocalClock(wall_us, reading_us)


class HostClockError(Exception):
    """The daemon is not running, or does not know the time; the message says which."""


class HostClock(Protocol):
    """A daemon that synchronizes the wall clock and knows its maximum error."""

    @property
    def name(self) -> str:
        """The name in the setting."""
        ...

    def read(self) -> Exchange:
        """The time by now, with the daemon's error bound. May take a moment; raises `HostClockError`."""
        ...

"""The computer's own clocks, and what a daemon that keeps them right has to be able to say."""

from __future__ import annotations

import time
from typing import Protocol

from penstock.ordering.clock_estimator import Exchange
from penstock.ordering.local_clock import LocalClock

# Nobody bends this one; where it is missing (not on Linux), what comes nearest.
_UNBENT = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)


def wall_us() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def reading_us() -> int:
    """Microseconds of the clock that nobody corrects."""
    return time.clock_gettime_ns(_UNBENT) // 1000


LOCAL_CLOCK = LocalClock(wall_us, reading_us)


class HostClockError(Exception):
    """The daemon is not there, or does not know the time; says which."""


class HostClock(Protocol):
    """A daemon that keeps the wall clock right and knows how wrong it can be."""

    @property
    def name(self) -> str:
        """What the setting calls it."""
        ...

    def read(self) -> Exchange:
        """The time by now, with the daemon's error bound. May take a moment; raises `HostClockError`."""
        ...

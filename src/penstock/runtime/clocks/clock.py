"""The real clock: wall time in milliseconds that never goes back, within the process and behind recorded times.

Forward steps of the system's clock are taken over at once. After a step backward time runs at nine tenths of its pace
until the system's clock has caught up: meanwhile leases end a little late, never early, and nothing stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.model.limits import SLOWEST_CLOCK_PERCENT


class WallClock:
    """Milliseconds since 1970, never less than the last answer."""

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._last_ns = wall_ns()
        self._last_monotonic_ns = monotonic_ns()

    def begin_after(self, last_ms: int) -> None:
        """Continues after the time that an earlier process recorded, even if the system's clock was set back since."""
        self._last_ns = max(self._last_ns, last_ms * 1_000_000)

    def now_ms(self) -> int:
        """The time now."""
        wall_ns, monotonic_ns = self._wall_ns(), self._monotonic_ns()
        least_ns = self._last_ns + (monotonic_ns - self._last_monotonic_ns) * SLOWEST_CLOCK_PERCENT // 100
        now_ns = wall_ns if wall_ns > least_ns else least_ns
        self._last_ns, self._last_monotonic_ns = now_ns, monotonic_ns
        return now_ns // 1_000_000


def wall_ms() -> int:
    """The wall clock, which may go back; signatures are compared with it."""
    return time.time_ns() // 1_000_000


def timer_us() -> int:
    """For how long something takes; it means nothing else."""
    return time.perf_counter_ns() // 1000

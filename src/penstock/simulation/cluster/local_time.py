"""The clock of one node of a cluster, the counterpart of `runtime.clocks.clock`: set differently from the others, and
disturbed.

The promises of nodes about durations hold by their own clocks, and a partition may change its node: so leases and delays
may end earlier or later by the difference of clocks (`History.skew_ms`). Commits and elections must not depend on these
clocks at all.
"""

from __future__ import annotations

from random import Random

from penstock.model.limits import SLOWEST_CLOCK_PERCENT
from penstock.simulation.schedule import Call, Schedule

FREEZE_MS = (300, 1_500)


class LocalTime:
    """Milliseconds as one node reads them: never less than before."""

    def __init__(self, schedule: Schedule, spread_ms: int, random: Random) -> None:
        self._schedule = schedule
        self._spread_ms = spread_ms
        self._random = random
        self._offset_ms = self._drawn_ms()
        self._frozen_ms: int | None = None
        self._last_us = 0
        self._last_elapsed_ms = 0

    def _drawn_ms(self) -> int:
        return self._random.randint(-self._spread_ms // 2, self._spread_ms // 2)

    @property
    def now_ms(self) -> int:
        """The clock."""
        schedule = self._schedule
        elapsed_ms = schedule.elapsed_ms
        wall_ms = self._frozen_ms if self._frozen_ms is not None else schedule.now_ms + self._offset_ms
        time_us = wall_ms * 1_000
        least_us = self._last_us + (elapsed_ms - self._last_elapsed_ms) * 10 * SLOWEST_CLOCK_PERCENT
        if time_us < least_us:
            time_us = least_us
        self._last_us, self._last_elapsed_ms = time_us, elapsed_ms
        return time_us // 1_000

    @property
    def elapsed_ms(self) -> int:
        """The time that orders events."""
        return self._schedule.elapsed_ms

    @property
    def is_within(self) -> bool:
        """Whether an event is under way that lets time pass."""
        return self._schedule.is_within

    def after(self, delay_ms: int, call: Call) -> None:
        """Plans a call."""
        self._schedule.after(delay_ms, call)

    def pass_within(self, duration_ms: int) -> None:
        """Lets time pass in the middle of an event."""
        self._schedule.pass_within(duration_ms)

    # -- what happens to it ----------------------------------------------------------------------------------

    def disturb(self) -> str:
        """Sets it or stops it; returns a description."""
        if self._random.random() < 0.5:
            before_ms, self._offset_ms = self._offset_ms, self._drawn_ms()
            return f"its clock is set by {self._offset_ms - before_ms} ms"
        duration_ms = self._random.randint(*FREEZE_MS)
        self._frozen_ms = self._schedule.now_ms + self._offset_ms
        self._schedule.after(duration_ms, self.heal)
        return f"its clock stands still for {duration_ms} ms"

    def heal(self) -> None:
        """It runs."""
        self._frozen_ms = None

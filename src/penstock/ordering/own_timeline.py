"""The time of a node without other sources: its own clock defines time, so it knows it exactly.

The wall clock may be set by hand or stepped; time may not go back. So time follows the monotonic clock, is slowly adjusted
to the wall clock, and begins after all recorded times of the node.
"""

from __future__ import annotations

from penstock.ordering.clock_interval import ClockInterval

SLEW_PPM = 100
"""How fast time is bent towards the wall clock; part of the drift that clients allow for."""
JUMP_US = 1_000_000
"""A wall clock so far ahead is believed at once: to go forward breaks no order."""


class OwnTimeline:
    """Time that never goes back; `last_us` is the last recorded stamp."""

    def __init__(self, wall_us: int, reading_us: int, last_us: int = 0) -> None:
        self._reading_us = reading_us
        self._time_us = max(wall_us, last_us + 1)
        self._slew_left = 0
        """Millionths of a microsecond by which time may still be bent: short steps must not round it away."""

    def interval(self, wall_us: int, reading_us: int) -> ClockInterval:
        """Now, by a wall clock and a monotonic clock read together."""
        elapsed_us = max(0, reading_us - self._reading_us)
        self._reading_us = max(reading_us, self._reading_us)
        self._time_us += elapsed_us
        behind_us = wall_us - self._time_us
        if behind_us >= JUMP_US:
            self._time_us = wall_us
            self._slew_left = 0
        else:
            allowed = elapsed_us * SLEW_PPM
            self._slew_left = min(self._slew_left + allowed, max(allowed, 1_000_000))
            bend_us = min(abs(behind_us), self._slew_left // 1_000_000, elapsed_us)
            self._slew_left -= bend_us * 1_000_000
            self._time_us += bend_us if behind_us > 0 else -bend_us
        return ClockInterval(self._time_us, self._time_us)

    def ahead_us(self, wall_us: int) -> int:
        """How far time is ahead of the wall clock: a stepped clock, which an operator should know about."""
        return self._time_us - wall_us

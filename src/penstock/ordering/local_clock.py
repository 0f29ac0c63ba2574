"""The two clocks of a computer that time is told by; whoever may touch the world hands them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class LocalClock(NamedTuple):
    """A wall clock and a monotonic one, in whole microseconds."""

    wall_us: Callable[[], int]
    """Since 1970, by a clock that people and programs set."""
    reading_us: Callable[[], int]
    """Since whenever, by a clock that nobody corrects."""

"""The two clocks of a computer, passed in by the packages that may read them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class LocalClock(NamedTuple):
    """A wall clock and a monotonic one, in whole microseconds."""

    wall_us: Callable[[], int]
    """Since 1970, by a clock that people and programs set."""
    reading_us: Callable[[], int]
    """Microseconds from any origin, by a clock that no program corrects."""

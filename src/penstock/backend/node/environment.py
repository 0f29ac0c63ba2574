"""What a node is told about where it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.ordering.clock_interval import ClockInterval


def not_synchronized() -> ClockInterval | None:
    """The clock of a node that was given none: queues ordered by time take nothing in."""
    return None


class Environment(NamedTuple):
    """The clock that orders by time, and what is for operators' eyes only."""

    version: str
    data_directory: str
    usage: Callable[[], tuple[float, int]]
    """CPU seconds and resident bytes of the process."""
    clock: Callable[[], ClockInterval | None] = not_synchronized
    """What time it may be, for order by time; None: nobody can tell."""
    clock_source: str = "own"
    """Where that clock has the time from."""
    clock_drift_ppm: int = 200
    process: int = 0
    """Of the sequencer's ids: drawn anew for each start."""

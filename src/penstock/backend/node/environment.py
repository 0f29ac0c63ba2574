"""What a node knows about the machine and process in which it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.ordering.clock_interval import ClockInterval


def not_synchronized() -> ClockInterval | None:
    """The clock of a node that was given none: queues ordered by time take nothing in."""
    return None


class Environment(NamedTuple):
    """The clock for order by time, and facts for operators."""

    version: str
    data_directory: str
    usage: Callable[[], tuple[float, int]]
    """CPU seconds and resident bytes of the process."""
    clock: Callable[[], ClockInterval | None] = not_synchronized
    """The clock interval, for order by time; None: it is unknown."""
    clock_source: str = "own"
    """The source of that clock."""
    clock_drift_ppm: int = 200
    process: int = 0
    """The process number in ids of the sequencer: random for each start."""

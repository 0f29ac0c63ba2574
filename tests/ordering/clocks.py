"""Simulated clocks: true time as exact fractions, and clocks that keep to their bounds, or break them when told to."""

from __future__ import annotations

from fractions import Fraction
from math import floor

MILLION = 1_000_000


class TrueTime:
    """The time that nobody in the tests can read but the tests."""

    def __init__(self, now_us: int = 1_700_000_000_000_000) -> None:
        self.now_us = Fraction(now_us)


class LocalClock:
    """A monotonic clock, read in whole microseconds. While it shows `d`, true time passes by `d` × (1 ± drift)."""

    def __init__(self, true: TrueTime, drift_ppm: int, start_us: int = 5_000) -> None:
        self._true = true
        self._shows_us = Fraction(start_us)
        self._drift_ppm = drift_ppm

    def run(self, shown_us: int | Fraction, bend: float) -> None:
        """Lets the clock show `shown_us` more; `bend` in [-1, 1] says how it drifts meanwhile."""
        rate = 1 + Fraction(round(bend * self._drift_ppm * 1_000), MILLION * 1_000)
        self._shows_us += shown_us
        self._true.now_us += shown_us * rate

    def freeze(self, true_us: int) -> None:
        """True time goes on, the clock does not."""
        self._true.now_us += true_us

    def step(self, shown_us: int) -> None:
        """The clock jumps, true time does not."""
        self._shows_us += shown_us

    def read_us(self) -> int:
        return floor(self._shows_us)

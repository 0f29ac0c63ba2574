"""Turns readings of a producer's monotonic clock into the timestamp ids of its messages.

A message is stamped with the time at which it was made, although the time is determined once a batch: the readings give
the difference. Later messages of one process never get a smaller id, even if the time was corrected in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub
from typing import NamedTuple

from penstock.ordering.clock_estimator import DRIFT_PPM
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.timestamp_id import IdRange, Sequencer, TimestampId


class Stamps(NamedTuple):
    """The ids of a batch: one process, counters that continue from the first, and times."""

    process: int
    counter: int
    times_us: list[int]
    """One a message."""
    uncertainty_us: int
    """How far a time may be off."""

    def at(self, index: int) -> TimestampId:
        """The id of one message."""
        return TimestampId(self.times_us[index], self.process, self.counter + index)


class Stamper:
    """The ids of one process. Readings and intervals are in microseconds."""

    def __init__(self, process: int, drift_ppm: int = DRIFT_PPM) -> None:
        self.process = process
        self._drift_ppm = drift_ppm
        self._sequencer = Sequencer(process)
        self._counter = -1
        """The last one that was given out."""
        self._reading_us = self._time_us = -(2**63)
        """The latest reading that was stamped, and with what."""

    def stamp(self, now: ClockInterval, reading_us: int, readings_us: Sequence[int]) -> Stamps:
        """Ids for messages made at `readings_us`, by what is known of the time at `reading_us`, which is not earlier."""
        shift_us = now.middle_us - reading_us
        exact_us = [reading + shift_us for reading in readings_us]
        if self._follow(readings_us, exact_us):
            times_us = exact_us
            self._reading_us, self._time_us = readings_us[-1], exact_us[-1]
        else:
            times_us = [self._time_at(reading, shift_us) for reading in readings_us]
        counter, times_us = self._count(times_us)
        moved_us = 0 if times_us is exact_us else max(map(abs, map(sub, times_us, exact_us)))
        oldest_us = max(0, reading_us - min(readings_us))
        drifted_us = -(-oldest_us * self._drift_ppm // 1_000_000)
        return Stamps(self.process, counter, times_us, now.uncertainty_us + drifted_us + moved_us)

    def ahead_us(self, now: ClockInterval) -> int:
        """How far the last stamp, and so the next one, is ahead of now: the effect of a clock that went back."""
        return max(0, self._time_us - now.middle_us)

    def _follow(self, readings_us: Sequence[int], times_us: list[int]) -> bool:
        """Whether the messages were made one after the other, after all before, and need not be moved for it."""
        if readings_us[0] < self._reading_us or times_us[0] < self._time_us:
            return False
        return sorted(times_us) == times_us

    def take(self, now: ClockInterval, reading_us: int, count: int) -> IdRange:
        """Ids of one time: now."""
        time_us = self._time_at(reading_us, now.middle_us - reading_us)
        first, size = self._sequencer.take(ClockInterval(time_us, time_us), count)
        if first.counter <= self._counter:
            time_us = first.time_us
            self._time_us = max(time_us, self._time_us)
        self._counter = first.counter + count - 1
        return IdRange(TimestampId(time_us, self.process, first.counter), size)

    def given(self, times_us: Sequence[int]) -> Stamps:
        """Ids for messages that bring their times; their error is unknown here."""
        counter = self._sequencer.take(ClockInterval(0, 0), len(times_us)).first.counter
        self._counter = counter + len(times_us) - 1
        return Stamps(self.process, counter, list(times_us), 0)

    def _time_at(self, reading_us: int, shift_us: int) -> int:
        time_us = reading_us + shift_us
        if reading_us < self._reading_us:  # another producer of the process stamped a later one before
            return min(time_us, self._time_us)
        self._reading_us = reading_us
        self._time_us = max(time_us, self._time_us)
        return self._time_us

    def _count(self, times_us: list[int]) -> tuple[int, list[int]]:
        """The first counter; once counters come round, all times are later than any before."""
        latest_us = max(times_us)
        first, size = self._sequencer.take(ClockInterval(latest_us, latest_us), len(times_us))
        if first.counter <= self._counter:
            times_us = [max(time_us, first.time_us) for time_us in times_us]
            self._time_us = max(first.time_us, self._time_us)
        self._counter = first.counter + size - 1
        return first.counter, times_us

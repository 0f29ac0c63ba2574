"""Stamps of producers: each has an oscillator, compares it with the node over the wire, and makes ids."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

from penstock.ordering.clock_estimator import ClockEstimator, Exchange
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.timestamp_id import Sequencer, TimestampId, draw_process
from penstock.simulation.clocks import LocalClock, break_clock
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.stage import Stage
from penstock.wire.clock_messages import ClockReading, ReadClock

_ACROSS_US = 30_000
"""The messages of a batch were made over at most so long a time."""
_LIE_US = 600_000_000
_OLD_US = 2_000_000


class BatchStamp(NamedTuple):
    """The ids of a batch."""

    first: TimestampId
    times_us: list[int] | None
    """One a message; None: all have that of the first."""
    uncertainty_us: int
    synchronized: bool
    """Whether the ids are what the producer honestly takes for true time."""

    def identifier(self, index: int) -> TimestampId:
        """Of one message."""
        time_us = self.first.time_us if self.times_us is None else self.times_us[index]
        return TimestampId(time_us, self.first.process, self.first.counter + index)


class Stamper:
    """The clock and the ids of one producer."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._client = stage.client(f"clock of {name}")
        self._clock = LocalClock(stage.schedule, stage.random)
        self._estimator = ClockEstimator()
        self._process = draw_process(stage.random)
        self._sequencer = Sequencer(self._process)
        self._private = Sequencer(draw_process(stage.random))
        """Ids by the local clock alone, for an order that needs no other clock."""

    def run(self) -> Steps[None]:
        """Compares clocks until the run ends."""
        stage, random = self._stage, self._stage.random
        pace_ms = random.choice((150, 600, 2_000))
        broken = stage.scenario.clocks.producers_break
        while not stage.stopping:
            yield from self._compare()
            yield Pause(random.randint(1, 2 * pace_ms))
            if broken and random.random() < 0.2:
                stage.trace.add("faults", break_clock(self._clock, random, self._name))

    def _compare(self) -> Steps[None]:
        sent_us = self._clock.read_us()
        reply = yield Ask(self._client, ReadClock())
        if reply is None or not isinstance(reply.answer, ClockReading) or not reply.answer.sent_latest_us:
            return
        reading = reply.answer
        received = ClockInterval(reading.received_earliest_us, reading.received_latest_us)
        answered = ClockInterval(reading.sent_earliest_us, reading.sent_latest_us)
        self._estimator.learn(Exchange(sent_us, received, answered, self._clock.read_us()))

    def stamp(self, count: int, *, private: bool) -> BatchStamp | None:
        """Ids for messages made now; None while the time is not known. `private`: by the local clock alone."""
        random = self._stage.random
        now_us = self._clock.read_us()
        known = ClockInterval(now_us, now_us) if private else self._estimator.interval(now_us)
        if known is None:
            return None
        first = (self._private if private else self._sequencer).take(known, count).first
        uncertainty_us = known.furthest_us(first.time_us)
        times_us = _times(random, first.time_us, count)
        shift_us = _shift(random)
        first = first._replace(time_us=first.time_us + shift_us)
        if times_us is not None:
            times_us = [time_us + shift_us for time_us in times_us]
        synchronized = not private and not shift_us and times_us is None
        return BatchStamp(first, times_us, uncertainty_us, synchronized)


def _times(random: Random, last_us: int, count: int) -> list[int] | None:
    """When each message was made: all at once, one after the other, or not in the order of the batch."""
    if random.random() < 0.5:
        return None
    times_us = [last_us - random.randint(0, _ACROSS_US) for _ in range(count)]
    return times_us if random.random() < 0.2 else sorted(times_us)


def _shift(random: Random) -> int:
    """A few stamps are far from the truth: messages that lay about for long, and clocks that are far ahead."""
    chance = random.random()
    if chance < 0.02:
        return _LIE_US
    return -_OLD_US if chance < 0.05 else 0

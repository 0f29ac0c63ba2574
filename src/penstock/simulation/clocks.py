"""Clocks of simulated computers: oscillators that drift, stop and jump, and the interval of true time that follows from them.

True time is the schedule's; no simulated process can read it. A process has a `LocalClock` and an interval from comparing
it with others, made by the real `ClockEstimator`: the node compares with a reference that states its error, as chrony
does; producers compare with the node over the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from penstock.ordering.clock_estimator import DRIFT_PPM, ClockEstimator, host_reading
from penstock.ordering.clock_interval import ClockInterval, around
from penstock.ordering.own_timeline import OwnTimeline
from penstock.simulation.schedule import Schedule

NodeClockKind = Literal["own", "bounded", "broken"]


@dataclass(slots=True)
class ClockPlan:
    """The clocks of a run."""

    node: NodeClockKind = "own"
    """`own`: the node has no time source; `bounded`: it has one, and its oscillator keeps to its drift; `broken`: the
    oscillator also stops and jumps.
    """
    producers_break: bool = False
    """Whether the oscillators of producers stop and jump."""
    faults_ms: int = 0
    """Between two things that happen to clocks."""

    @property
    def true(self) -> bool:
        """Whether every interval holds true time: the bounds are kept by all who state them."""
        return self.node == "bounded" and not self.producers_break


class LocalClock:
    """A monotonic clock that no program corrects. Its origin has no meaning; only differences do."""

    def __init__(self, schedule: Schedule, random: Random, drift_ppm: int = DRIFT_PPM) -> None:
        self._schedule = schedule
        self._rate_ppm = 1_000_000 + random.randint(-drift_ppm, drift_ppm)
        self._from_us = schedule.true_us
        self._shown_us = random.randrange(10**9)
        self._frozen = False

    def read_us(self) -> int:
        """Its present reading."""
        if self._frozen:
            return self._shown_us
        return self._shown_us + (self._schedule.true_us - self._from_us) * self._rate_ppm // 1_000_000

    def step(self, by_us: int) -> None:
        """It jumps, as that of a machine which was suspended or moved."""
        self._shown_us = self.read_us() + by_us
        self._from_us = self._schedule.true_us

    def freeze(self, duration_ms: int) -> None:
        """It stops for a while."""
        self.step(0)
        self._frozen = True
        self._schedule.after(duration_ms, self._thaw)

    def _thaw(self) -> None:
        if self._frozen:
            self._frozen = False
            self._from_us = self._schedule.true_us


class NodeClock:
    """The clock of the simulated machine; one life of the process is one `started`."""

    def __init__(self, plan: ClockPlan, schedule: Schedule, random: Random) -> None:
        self._plan = plan
        self._schedule = schedule
        self._random = random
        self._local = LocalClock(schedule, random)
        self._wall_offset_us = 0
        self._own = OwnTimeline(self._wall_us(), self._local.read_us())
        self._estimator = ClockEstimator()
        self._next_reading_ms = 0
        self._sharpest_us = 0

    def started(self, last_us: int = 0) -> None:
        """The process starts, and knows nothing but what it reads now and the last stamp on record."""
        random = self._random
        self._own = OwnTimeline(self._wall_us(), self._local.read_us(), last_us)
        self._estimator = ClockEstimator()
        self._sharpest_us = random.choice((0, 300, 4_000, 30_000))
        self._next_reading_ms = self._schedule.elapsed_ms + random.choice((0, 0, 0, 50, 700))

    def interval(self) -> ClockInterval | None:
        """The node's interval of true time now; None: unknown."""
        if self._plan.node == "own":
            return self._own.interval(self._wall_us(), self._local.read_us())
        if self._schedule.elapsed_ms >= self._next_reading_ms:
            self._compare()
        return self._estimator.interval(self._local.read_us())

    def _compare(self) -> None:
        """Reads the reference clock, which knows how wrong it may be and is so wrong."""
        random = self._random
        error_us = self._sharpest_us + random.choice((0, 0, 2_000, 60_000, 300_000))
        stated = around(self._schedule.true_us + random.randint(-error_us, error_us), error_us)
        reading_us = self._local.read_us()
        self._estimator.learn(host_reading(reading_us, stated, reading_us), "reference")
        self._next_reading_ms = self._schedule.elapsed_ms + random.randint(100, 1_500)

    def _wall_us(self) -> int:
        return self._schedule.now_ms * 1_000 + self._wall_offset_us

    # -- what happens to it ----------------------------------------------------------------------------------

    def disturb(self) -> str:
        """Does something to it that its plan allows; says what."""
        random = self._random
        if self._plan.node == "own":
            by_ms = random.choice((-5_000, -300, 40, 900, 3_000))
            self._wall_offset_us += by_ms * 1_000
            return f"the node's wall clock is set by {by_ms} ms"
        if self._plan.node == "bounded" or random.random() < 0.3:
            self._estimator.forget("reference")
            self._next_reading_ms = self._schedule.elapsed_ms + random.choice((30, 400, 2_000))
            return "the node loses its reference clock"
        return break_clock(self._local, random, "the node")

    def heal(self) -> None:
        """Sharp from now on, and never without a reference."""
        self._sharpest_us = 0
        self._next_reading_ms = 0


def break_clock(clock: LocalClock, random: Random, whose: str) -> str:
    """Makes an oscillator break its bounds; says how."""
    if random.random() < 0.5:
        duration_ms = random.choice((5, 200, 1_500))
        clock.freeze(duration_ms)
        return f"the clock of {whose} stands still for {duration_ms} ms"
    by_us = random.choice((-700_000, -20_000, 15_000, 400_000, 3_000_000))
    clock.step(by_us)
    return f"the clock of {whose} jumps by {by_us} µs"

"""Producers in a test: batches of stamped messages, as they would arrive, and the plain order to compare with."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import strategies as st

from penstock.model.runs import Runs
from penstock.ordering.stamped_run import StampedRun, run_of
from penstock.ordering.timestamp_id import TimestampId


class SentBatch(NamedTuple):
    """A batch on its way; `delay_us` is how long after its last stamp it arrives."""

    times: list[int]
    process: int
    counter: int
    delay_us: int

    def arrival_us(self) -> int:
        return max(self.times) + self.delay_us

    def run(self, base: int) -> StampedRun:
        return run_of(self.times, self.process, self.counter, base)

    def ids(self, base: int) -> dict[int, TimestampId]:
        """The id of each message by its sequence number."""
        return {
            base + i: TimestampId(time_us, self.process, self.counter + i)
            for i, time_us in enumerate(self.times)
        }


def expand(runs: Runs) -> list[int]:
    return [sequence for first, count in runs for sequence in range(first, first + count)]


@st.composite
def batches(
    draw: st.DrawFn, *, longest_delay_us: int, processes: int = 4, tidy: bool = False
) -> list[SentBatch]:
    """Batches of some producers in the order of arrival; few distinct times, so that many are equal.

    `tidy`: the stamps of a producer rise; otherwise they are in any order.
    """
    made: list[SentBatch] = []
    counters = [0] * processes
    clocks = [0] * processes
    for _ in range(draw(st.integers(1, 25))):
        process = draw(st.integers(0, processes - 1))
        if tidy:
            steps = draw(st.lists(st.integers(0, 6), min_size=1, max_size=6))
            times = [clocks[process] + sum(steps[: i + 1]) for i in range(len(steps))]
            clocks[process] = times[-1]
        else:
            times = draw(st.lists(st.integers(0, 60), min_size=1, max_size=6))
        delay_us = draw(st.integers(0, longest_delay_us))
        made.append(SentBatch(times, process, counters[process], delay_us))
        counters[process] += len(times)
    return sorted(made, key=SentBatch.arrival_us)

"""A stamped run: the messages of one batch, in the order of their producer's ids, as columns.

A batch has one process and counters that continue from its first, so only times are a column. A batch with rising times,
the usual case, keeps its sequence numbers implicit; another one is sorted once, and then its sequence numbers are a column
too.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import Runs, runs_in_order
from penstock.ordering.timestamp_id import COUNTERS, PROCESS_MAX, TIME_MAX, TimestampId

if TYPE_CHECKING:
    Column = array[int]


class RunImage(msgspec.Struct, frozen=True, array_like=True):
    """A run, or the rest of it, in a snapshot."""

    process: int
    counter: int
    base: int
    times: bytes
    sequences: bytes | None


class StampedRun:
    """Times in rising order; message i has sequence number `base + i`, or `sequences[i]` where they were sorted.

    The counter of the message with sequence number `s` is `counter + s - base`, so equal times are in the order of
    their counters, and ids rise strictly along the run.
    """

    __slots__ = ("base", "counter", "process", "sequences", "times")

    def __init__(
        self, times: Column, process: int, counter: int, base: int, sequences: Column | None = None
    ) -> None:
        self.times = times
        self.process = process
        self.counter = counter
        self.base = base
        self.sequences = sequences

    def __len__(self) -> int:
        return len(self.times)

    def id_at(self, place: int) -> TimestampId:
        """The id of a message of the run."""
        return TimestampId(self.times[place], self.process, self._counter_at(place))

    def _counter_at(self, place: int) -> int:
        if self.sequences is not None:
            place = self.sequences[place] - self.base
        return self.counter + place

    def first_after(self, floor: TimestampId) -> int:
        """How many messages at the front of the run have an id at or below `floor`."""
        low = bisect_left(self.times, floor.time_us)
        if self.process > floor.process:
            return low
        high = bisect_right(self.times, floor.time_us, low)
        if self.process < floor.process:
            return high
        ties = range(low, high)
        return low + bisect_right(ties, floor.counter, key=self._counter_at)

    def runs(self, start: int, stop: int) -> Runs:
        """The sequence numbers of a part of the run, in its order."""
        if self.sequences is None:
            return [(self.base + start, stop - start)]
        return runs_in_order(self.sequences[start:stop])

    def numbers(self, start: int, stop: int) -> Iterable[int]:
        """The sequence numbers of a part of the run, one by one."""
        if self.sequences is None:
            return range(self.base + start, self.base + stop)
        return self.sequences[start:stop]

    def image(self, start: int) -> RunImage:
        """The rest of the run from `start` on."""
        times = self.times[start:].tobytes()
        if self.sequences is None:
            return RunImage(self.process, self.counter + start, self.base + start, times, None)
        return RunImage(self.process, self.counter, self.base, times, self.sequences[start:].tobytes())


def run_of(times: Iterable[int], process: int, counter: int, base: int) -> StampedRun:
    """A batch as it came: the times of its messages, the id of its first, the sequence number of its first.

    The column of times is not copied: it belongs to the run from then on.
    """
    column = times if isinstance(times, array) else array("Q", times)
    if len(column) == 1:
        return StampedRun(column, process, counter, base)
    ordered = sorted(column)
    if array("Q", ordered) == column:  # 5 times as fast as looking at each pair
        return StampedRun(column, process, counter, base)
    # Sorting is stable, so equal times stay in the order of their counters.
    places = sorted(range(len(column)), key=column.__getitem__)
    sequences = array("Q", [base + place for place in places])
    return StampedRun(array("Q", ordered), process, counter, base, sequences)


def check_ids(times: Column, process: int, counter: int) -> None:
    """Raises unless the ids of a batch are valid; for batches that come from outside."""
    if process > PROCESS_MAX or counter + len(times) > COUNTERS or max(times, default=0) > TIME_MAX:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"bad stamps: process {process}, counters from {counter}, {len(times)} times up to {max(times, default=0)}; "
            f"at most {PROCESS_MAX}, {COUNTERS - 1} and {TIME_MAX}",
        )


def run_of_range(first: TimestampId, count: int, base: int) -> StampedRun:
    """A batch that took its ids at once: all of one time."""
    return StampedRun(array("Q", (first.time_us,)) * count, first.process, first.counter, base)


def run_from_image(image: RunImage) -> StampedRun:
    """From the snapshot."""
    sequences = array("Q", image.sequences) if image.sequences is not None else None
    return StampedRun(array("Q", image.times), image.process, image.counter, image.base, sequences)

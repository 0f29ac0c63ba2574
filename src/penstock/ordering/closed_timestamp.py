"""Closed timestamps: how several partitions deliver in one order of time.

A partition closes a time: it promises, in a record, never again to accept anything at or below it. What all of them have
closed is complete, so it can be delivered in one order; later messages wait. An idle partition closes with its clock and
delays no other. A disconnected one delays all, which strict order requires, and `slowest` names it. A closed time only
rises, also through failover, because the next primary reads it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import msgspec

from penstock.model.runs import Run
from penstock.ordering.stamped_run import StampedRun
from penstock.ordering.timestamp_id import TimestampId

SEALED = 2**63 - 1
"""The closed time of a partition that will never accept anything again."""


class ClosedTimestamps:
    """The closed time of each partition of a queue, and their minimum."""

    def __init__(self, closed: dict[int, int] | None = None) -> None:
        self._closed = dict(closed or {})

    def join(self, partition: int, closed_us: int) -> None:
        """A partition begins. The child of a split begins where its parent ends, so the minimum cannot fall."""
        if partition in self._closed:
            raise ValueError(f"partition {partition} is there already")
        if self._closed and closed_us < self.minimum_us():
            raise ValueError(
                f"partition {partition} would begin at {closed_us}, before {self.minimum_us()}, up to which all is closed"
            )
        self._closed[partition] = closed_us

    def publish(self, partition: int, closed_us: int) -> bool:
        """A partition closed a time; says whether that is news. Word that comes late or twice changes nothing."""
        known_us = self._closed.get(partition)
        if known_us is None or closed_us <= known_us:
            return False
        self._closed[partition] = closed_us
        return True

    def leave(self, partition: int) -> None:
        """A partition no longer exists. It must have been sealed: otherwise its remaining messages would be skipped."""
        if self._closed.get(partition) != SEALED:
            raise ValueError(f"partition {partition} is not sealed")
        del self._closed[partition]

    def minimum_us(self) -> int:
        """Up to here everything is complete. Without partitions nothing is."""
        return min(self._closed.values(), default=-1)

    def slowest(self) -> int | None:
        """The partition for which all others wait; the lowest number of several."""
        return min(self._closed, key=lambda number: (self._closed[number], number), default=None)

    def dump(self) -> dict[int, int]:
        """For the snapshot."""
        return dict(sorted(self._closed.items()))


class Slice(NamedTuple):
    """Neighbours of one partition."""

    partition: int
    run: Run


class PartitionRun(msgspec.Struct, frozen=True, array_like=True):
    """The rest of a partition's run in a snapshot: its id, the sequence number of its first, its times."""

    partition: int
    process: int
    counter: int
    base: int
    times: bytes


Entry = tuple[int, int, int, int, int, int, StampedRun]
"""Time, process, counter and partition of the next message, its sequence number, its place in the run, the run."""


class PartitionMerge:
    """Merges the releases of partitions, each in its own order, into one order up to the minimum of their closed times."""

    def __init__(self, closed: ClosedTimestamps) -> None:
        self._closed = closed
        self._heap: list[Entry] = []

    def add(self, partition: int, run: StampedRun) -> None:
        """A run in order that a partition let out; its sequence numbers follow each other."""
        if run.sequences is not None:
            raise ValueError("a partition lets out its messages in order, so they need no sorting here")
        if len(run):
            heappush(self._heap, _entry(partition, run, 0))

    def take(self) -> list[Slice]:
        """The complete part, in order: slices as long as no other partition has anything in between."""
        limit_us = self._closed.minimum_us()
        heap = self._heap
        taken: list[Slice] = []
        while heap and heap[0][0] <= limit_us:
            _, _, _, partition, sequence, start, run = heappop(heap)
            stop = bisect_right(run.times, limit_us, start)
            if heap and heap[0][0] <= limit_us:
                stop = min(stop, run.first_after(TimestampId(*heap[0][:3])))
            if stop < len(run):
                heappush(heap, _entry(partition, run, stop))
            taken.append(Slice(partition, (sequence, stop - start)))
        return taken

    def dump(self) -> list[PartitionRun]:
        """For the snapshot."""
        return [
            PartitionRun(partition, process, counter, sequence, run.times[start:].tobytes())
            for _, process, counter, partition, sequence, start, run in sorted(self._heap, key=_order)
        ]

    def load(self, images: Iterable[PartitionRun]) -> None:
        """From the snapshot."""
        self._heap = [
            _entry(
                image.partition,
                StampedRun(array("Q", image.times), image.process, image.counter, image.base),
                0,
            )
            for image in images
        ]
        heapify(self._heap)


def _entry(partition: int, run: StampedRun, start: int) -> Entry:
    return run.times[start], run.process, run.counter + start, partition, run.base + start, start, run


def _order(entry: Entry) -> tuple[int, int]:
    return entry[3], entry[4]

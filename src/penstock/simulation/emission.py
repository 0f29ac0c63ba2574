"""A simple model of a queue sorted by its producers' stamps: its records, a list, and Python's own sort.

It is independent of the engine's sorter; it takes the records as given and computes the order in which messages left the
window, and contradictions in the records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.model import records
from penstock.model.batch import STAMPS, Batch
from penstock.model.origin import Lateness
from penstock.ordering.timestamp_id import BEFORE_ALL, TimestampId, from_text
from penstock.simulation.observed_store import AppendedRecord


class LateMessage(NamedTuple):
    """A message that came too late, and the watermark at that time."""

    sequence: int
    identifier: TimestampId
    floor: TimestampId
    sent_ms: int


class _Pending(NamedTuple):
    identifier: TimestampId
    sequence: int


class _Arrival(NamedTuple):
    sequence: int
    process: int
    greatest_us: int


@dataclass(slots=True)
class Emission:
    """The result of one queue's records."""

    causal: bool
    order: list[int] = field(default_factory=list)
    """Sequence numbers as they left the window."""
    late: dict[int, LateMessage] = field(default_factory=dict)
    moved_as_late: dict[int, Lateness | None] = field(default_factory=dict)
    problems: list[tuple[int, str]] = field(default_factory=list)
    """(when, what) in the records cannot be."""
    floors: dict[int, TimestampId] = field(default_factory=dict)
    """The last id that left; of each session, or of all (0)."""
    _pending: list[_Pending] = field(default_factory=list)
    _arrivals: list[_Arrival] = field(default_factory=list)
    _left: set[TimestampId] = field(default_factory=set)

    def sent(self, record: records.Sent, batch: Batch) -> None:
        """A batch arrived."""
        # messages that come back from elsewhere were in order before, and join at the end
        if record.origin is not None:
            self.order += range(record.first, record.first + record.count)
            return
        stamps = batch.integers(STAMPS)
        times = [record.stamp_us] * record.count if stamps is None else list(stamps)
        arrived = sorted(
            _Pending(TimestampId(time_us, record.process, record.counter + index), record.first + index)
            for index, time_us in enumerate(times)
        )
        floor = self._floor(record.process)
        for index, (identifier, sequence) in enumerate(arrived):
            if index < record.late:
                self.late[sequence] = LateMessage(sequence, identifier, floor, record.sent_ms)
            if identifier <= floor and index >= record.late:
                self.problems.append(
                    (
                        record.sent_ms,
                        f"{sequence} ({identifier}) was taken in at or below what had left ({floor})",
                    )
                )
            elif identifier > floor and index < record.late:
                self.problems.append(
                    (
                        record.sent_ms,
                        f"{sequence} ({identifier}) is said to be late, and nothing after it had left",
                    )
                )
        in_time = arrived[record.late :]
        self._pending += in_time
        if in_time:
            self._arrivals.append(_Arrival(record.first, record.process, max(times)))

    def move_started(self, record: records.MoveStarted) -> None:
        """Messages are on their way; the late ones must say how late they are."""
        if record.reason != "late":
            return
        for sequence in (s for first, count in record.runs for s in range(first, first + count)):
            self.moved_as_late[sequence] = record.late
            late = self.late.get(sequence)
            if late is None:
                self.problems.append((record.at_ms, f"{sequence} was moved as late and is not"))
            elif record.late is None:
                self.problems.append((record.at_ms, f"{sequence} was moved as late without its lateness"))
            elif record.late.floor_us != late.floor.time_us:
                self.problems.append(
                    (
                        record.at_ms,
                        f"{sequence} is said to be behind {record.late.floor_us}, it is behind {late.floor.time_us}",
                    )
                )
            elif record.late.precedes is not None and from_text(record.late.precedes) not in self._left:
                self.problems.append(
                    (
                        record.at_ms,
                        f"{sequence} should have preceded {record.late.precedes}, which never left",
                    )
                )

    def sorted(self, record: records.Sorted) -> None:
        """Messages left the window."""
        if not self.causal:
            self._emit(p for p in self._pending if p.identifier.time_us <= record.through)
            return
        while self._arrivals and self._arrivals[0].sequence <= record.through:
            _, process, greatest_us = self._arrivals.pop(0)
            self._emit(
                p
                for p in self._pending
                if p.identifier.process == process and p.identifier.time_us <= greatest_us
            )

    def purged(self) -> None:
        """Nothing waits any more."""
        self._pending.clear()
        self._arrivals.clear()

    def _emit(self, leaving: Iterator[_Pending]) -> None:
        left = sorted(leaving)
        if not left:
            return
        self.order += [sequence for _, sequence in left]
        self._left.update(identifier for identifier, _ in left)
        last = left[-1].identifier
        self.floors[last.process if self.causal else 0] = last
        gone = set(left)
        self._pending = [pending for pending in self._pending if pending not in gone]

    def _floor(self, process: int) -> TimestampId:
        return self.floors.get(process if self.causal else 0, BEFORE_ALL)


def replay(appended: Sequence[AppendedRecord], *, causal: bool) -> Emission:
    """The result of a queue's records."""
    emission = Emission(causal)
    for entry in appended:
        match records.decode_record(entry.head):
            case records.Sent() as record:
                emission.sent(record, Batch(entry.payload))
            case records.MoveStarted() as record:
                emission.move_started(record)
            case records.Sorted() as record:
                emission.sorted(record)
            case records.Purged():
                emission.purged()
            case _:
                pass
    return emission

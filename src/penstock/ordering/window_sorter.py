"""The window sorter: messages in the order of their producers' synchronized stamps, sorted online.

A message waits until its stamp is certainly a window W in the past (`earliest - W` has reached it) and then leaves, in the
order of ids. So messages that arrive less than W after their stamp, by true time, are always in order. The watermark is
the last id that left, or that `close` has excluded; it only rises, and no message at or below it is accepted: it is late.
Only time releases messages, so a silent producer delays no other; and a stamp beyond the possible time is refused, so no
producer can push the watermark into the future.

Deciding and applying are separate: `judge` and `due_through` change nothing; `insert` and `emit_through` apply the records
of a send and of a release, here, after a restart and on every replica.

Memory: 8 bytes a waiting message (16 if its batch had to be sorted) and about 430 a batch. The waiting messages are those
that arrive in W + the uncertainty + the allowed advance; the queue's own limits bound them if producers do not.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from penstock.model.runs import Runs
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.pending_runs import HEADS_REMEMBERED, PendingRuns, images_in_order
from penstock.ordering.stamped_run import RunImage, StampedRun
from penstock.ordering.timestamp_id import BEFORE_ALL, TimestampId, last_of


class Accepted(NamedTuple):
    """All of the batch is in time."""

    messages: int


class Late(NamedTuple):
    """The first `messages` messages of the run (in the order of ids) are late; the rest is in time."""

    messages: int
    lateness_us: int
    """How far the oldest of them is behind what has left already."""
    window_needed_us: int | None
    """The window that would have been wide enough; None if the producer uses its own clock, so it is unknown."""
    precedes: TimestampId | None
    """The nearest id known to have left that the oldest of them should have preceded; None: nothing left, the time
    was closed."""


class Refused(NamedTuple):
    """A stamp of the batch is in the future: nothing of it is accepted."""

    stamp_us: int
    limit_us: int

    def explain(self) -> str:
        """Why, for the one who sent it."""
        return (
            f"a message is stamped {self.stamp_us - self.limit_us} µs after the latest possible time according to "
            "this server: the producer's clock is ahead; compare it with the server's again"
        )


Verdict = Accepted | Late | Refused


class Emitted(NamedTuple):
    """The released messages: sequence numbers in the order of delivery, and the id of the last."""

    runs: Runs
    messages: int
    last: TimestampId


class SorterImage(msgspec.Struct, frozen=True, array_like=True):
    """The sorter in a snapshot."""

    floor: TimestampId
    heads: list[TimestampId]
    runs: list[RunImage]


class WindowSorter:
    """The order of one partition of a queue. `window_us` may be changed at any time."""

    def __init__(self, window_us: int, allowed_ahead_us: int) -> None:
        self.window_us = window_us
        self.allowed_ahead_us = allowed_ahead_us
        """How far ahead of `latest` a stamp may be: the uncertainty that producers are allowed."""
        self.floor = BEFORE_ALL
        self._pending = PendingRuns()
        self._heads: deque[TimestampId] = deque(maxlen=HEADS_REMEMBERED)
        """Ids that left lately, rising, to tell a late message which it should have preceded."""

    @property
    def pending(self) -> int:
        """How many messages wait."""
        return self._pending.count

    # --- taking in ------------------------------------------------------------------------------------------

    def judge(self, run: StampedRun, now: ClockInterval) -> Verdict:
        """Whether the messages are in time, late or impossible; changes nothing."""
        times = run.times
        limit_us = now.latest_us + self.allowed_ahead_us
        if times[-1] > limit_us:
            return Refused(times[-1], limit_us)
        if times[0] > self.floor.time_us or (oldest := run.id_at(0)) > self.floor:
            return Accepted(len(times))
        return Late(
            messages=run.first_after(self.floor),
            lateness_us=self.floor.time_us - oldest.time_us,
            window_needed_us=max(0, now.latest_us - oldest.time_us),
            precedes=self._preceded_by(oldest),
        )

    def _preceded_by(self, identifier: TimestampId) -> TimestampId | None:
        heads = list(self._heads)
        place = bisect_right(heads, identifier)
        return heads[place] if place < len(heads) else None

    def insert(self, run: StampedRun, late: int = 0) -> None:
        """Inserts the messages of the run that are in time: all but the first `late`."""
        if late < len(run) and run.id_at(late) <= self.floor:
            raise ValueError(f"{run.id_at(late)} is at or below the floor {self.floor}")
        self._pending.insert(run, late)

    def add(self, run: StampedRun, now: ClockInterval) -> Verdict:
        """Judges, and inserts what is in time."""
        verdict = self.judge(run, now)
        if isinstance(verdict, Accepted):
            self._pending.insert(run)
        elif isinstance(verdict, Late):
            self._pending.insert(run, verdict.messages)
        return verdict

    # --- letting out ----------------------------------------------------------------------------------------

    def due_us(self) -> int | None:
        """When `earliest` reaches this the next message may leave; None where none waits."""
        head_us = self._pending.head_us()
        return None if head_us is None else head_us + self.window_us

    def due_through(self, now: ClockInterval, most: int | None = None) -> int | None:
        """Up to which time messages may leave now; None where none may. This is what the record holds. `most`: no later than about so
        many batches have left, or begun to: the others leave with the next record."""
        due_us = self.due_us()
        if due_us is None or due_us > now.earliest_us:
            return None
        through_us = now.earliest_us - self.window_us
        return through_us if most is None else self._pending.first_through(through_us, most)

    def emit_through(self, time_us: int) -> Emitted | None:
        """Lets everything up to and with a time leave. The same state and time give the same order, everywhere."""
        taken = self._pending.take_through(time_us)
        if taken is None:
            return None
        self.floor = taken.last
        self._heads.extend(taken.heads)
        if self._heads[-1] < taken.last:
            self._heads.append(taken.last)
        return Emitted(taken.runs, taken.messages, taken.last)

    def emit(self, now: ClockInterval) -> Emitted | None:
        """Lets leave what may."""
        through_us = self.due_through(now)
        return None if through_us is None else self.emit_through(through_us)

    def closable_us(self, now: ClockInterval) -> int:
        """Up to which time this partition may be closed now, for a merge with others."""
        return now.earliest_us - self.window_us

    def close(self, time_us: int) -> Emitted | None:
        """Promises that nothing at or below a time is accepted any more; releases everything up to there."""
        emitted = self.emit_through(time_us)
        self.floor = max(self.floor, last_of(time_us))
        return emitted

    def clear(self) -> list[object]:
        """The queue was purged: nothing waits; the floor stays where it is. Returns what waited."""
        before, self._pending = self._pending, PendingRuns()
        return [before]

    # --- snapshots ------------------------------------------------------------------------------------------

    def capture(self) -> tuple[TimestampId, list[TimestampId], Iterator[list[RunImage]]]:
        """The sorter as it is now: the floor, what left lately, and what waits, some at a time."""
        return self.floor, list(self._heads), images_in_order(self._pending.entries())

    def dump(self) -> SorterImage:
        """All of it at once."""
        floor, heads, parts = self.capture()
        return SorterImage(floor, heads, [run for part in parts for run in part])

    def load(self, image: SorterImage) -> None:
        """From the snapshot; more of what waits may follow."""
        self.floor = image.floor
        self._heads = deque(image.heads, maxlen=HEADS_REMEMBERED)
        self.load_runs(image.runs)

    def load_runs(self, runs: Iterable[RunImage]) -> None:
        """More of what waits."""
        self._pending.load(runs)

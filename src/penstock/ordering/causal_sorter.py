"""The causal sorter: each producer session's messages in the order of its own stamps, sessions merged by arrival.

A session's stamps come from its own clock, which need not agree with any other: they are compared only with each
other. So nothing here needs synchronized clocks, only a server clock that measures how long ago a batch arrived.

The rule: a window W after a batch has arrived, everything of its session up to its greatest stamp leaves, in the
order of stamps. What overtook it on the way and what it overtook by less than W is in order; what comes later than
that is late. Batches of different sessions leave in the order in which they arrived. A session that falls silent
holds up nobody; one whose clock leaps ahead makes only its own later messages late.

Deciding and applying are apart, as in the window sorter; the record of an emission holds the sequence number of the
last batch whose window is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from penstock.model import limits
from penstock.model.aged_map import AgedMap
from penstock.model.runs import Runs
from penstock.ordering.pending_runs import Entry, PendingRuns, images_in_order
from penstock.ordering.stamped_run import RunImage, StampedRun
from penstock.ordering.timestamp_id import BEFORE_ALL, TimestampId
from penstock.ordering.window_sorter import Accepted, Emitted, Late


class Arrival(NamedTuple):
    """A batch that has arrived."""

    arrived_us: int
    sequence: int
    """Of its first message."""
    session: int
    greatest_us: int


class SessionImage(msgspec.Struct, frozen=True, array_like=True):
    """A session in a snapshot."""

    session: int
    floor: TimestampId
    arrived_us: int
    runs: list[RunImage]


class CausalImage(msgspec.Struct, frozen=True, array_like=True):
    """The sorter in a snapshot."""

    sessions: list[SessionImage]
    arrivals: list[Arrival]


class Session:
    """One producer's."""

    __slots__ = ("arrived_us", "floor", "pending")

    def __init__(self) -> None:
        self.floor = BEFORE_ALL
        self.arrived_us = 0
        self.pending = PendingRuns()


_SessionRow = tuple[int, TimestampId, int, list[Entry]]
"""(session, floor, arrived, what waits)."""


class CausalSorter:
    """The order of one partition of a queue. A session is the process number of its ids."""

    def __init__(self, window_us: int, idle_us: int, most_sessions: int | None = None) -> None:
        self.window_us = window_us
        self.idle_us = idle_us
        """A session that has sent nothing for so long is forgotten; what it sends then begins a new one."""
        self.most_sessions = limits.PRODUCERS_PER_QUEUE if most_sessions is None else most_sessions
        """Of more, those without waiting messages that have been silent longest are forgotten earlier."""
        self.sessions: AgedMap[int, Session] = AgedMap()
        """In the order of their last arrival."""
        self._arrivals: deque[Arrival] = deque()

    @property
    def pending(self) -> int:
        """How many messages wait."""
        return sum(session.pending.count for session in self.sessions.values())

    def judge(self, run: StampedRun) -> Accepted | Late:
        """Whether the messages are in time for their session; changes nothing."""
        session = self.sessions.get(run.process)
        oldest = run.id_at(0)
        if session is None or oldest > session.floor:
            return Accepted(len(run))
        lateness_us = session.floor.time_us - oldest.time_us
        return Late(run.first_after(session.floor), lateness_us, None, session.floor)

    def insert(self, run: StampedRun, arrived_us: int, late: int = 0) -> None:
        """Takes in the messages of the run that are in time; arrivals come in rising order of their sequences."""
        session = self.sessions.get(run.process) or Session()
        self.sessions.put(run.process, session)
        session.arrived_us = max(arrived_us, session.arrived_us)
        if late == len(run):
            return
        if run.id_at(late) <= session.floor:
            raise ValueError(f"{run.id_at(late)} is at or below the floor {session.floor}")
        session.pending.insert(run, late)
        self._arrivals.append(Arrival(arrived_us, run.base, run.process, run.times[-1]))

    def due_us(self) -> int | None:
        """When the next batch may leave; None where none waits."""
        return self._arrivals[0].arrived_us + self.window_us if self._arrivals else None

    def due_through(self, now_us: int) -> int | None:
        """The last batch, by its first sequence number, whose window is over; None where none is."""
        through: int | None = None
        for arrival in self._arrivals:
            if arrival.arrived_us + self.window_us > now_us:
                break
            through = arrival.sequence
        return through

    def emit_through(self, sequence: int) -> list[Emitted]:
        """Lets leave what the batches up to one allow: an order for each, one after the other."""
        emitted: list[Emitted] = []
        arrivals = self._arrivals
        while arrivals and arrivals[0].sequence <= sequence:
            arrival = arrivals.popleft()
            session = self.sessions.get(arrival.session)
            if session is None:  # a batch before it took it along, and since then the session was forgotten
                continue
            self.sessions.touch(arrival.session)
            taken = session.pending.take_through(arrival.greatest_us)
            if taken is not None:  # else a batch before it took it along
                session.floor = taken.last
                emitted.append(Emitted(taken.runs, taken.messages, taken.last))
        return emitted

    def emit(self, now_us: int) -> Runs:
        """Lets leave what may, as one order."""
        through = self.due_through(now_us)
        return [] if through is None else [run for part in self.emit_through(through) for run in part.runs]

    def forget_idle(self, now_us: int) -> int:
        """Forgets sessions that have been silent for long, and the most silent ones where there are too many; says
        how many. `now_us` is the time of a record."""
        forgotten = 0
        while (oldest := self.sessions.oldest()) is not None:
            number, session = oldest
            idle = session.arrived_us + self.idle_us <= now_us
            if session.pending.count or not (idle or len(self.sessions) > self.most_sessions):
                break
            self.sessions.pop(number)
            forgotten += 1
        return forgotten

    def clear(self) -> list[object]:
        """The queue was purged: nothing waits; floors stay where they are. Returns what waited."""
        before: list[object] = [self._arrivals]
        self._arrivals = deque()
        for number, session in self.sessions.items():
            if session.pending.count:
                self.sessions.touch(number)
                before.append(session.pending)
                session.pending = PendingRuns()
        return before

    # --- snapshots ------------------------------------------------------------------------------------------

    def begin_capture(self) -> tuple[Iterator[list[SessionImage]], list[Arrival]]:
        """The sorter as it is now, until `sessions` has no capture any more: sessions, some at a time, and arrivals.

        A session with much that waits comes in several images.
        """
        capture = self.sessions.begin_capture(_rows)
        return _images(capture.images()), list(self._arrivals)

    def dump(self) -> CausalImage:
        """All of it at once."""
        parts, arrivals = self.begin_capture()
        sessions = [image for part in parts for image in part]
        self.sessions.capture = None
        return CausalImage(sessions, arrivals)

    def load(self, image: CausalImage) -> None:
        """From the snapshot; more may follow."""
        self._arrivals.extend(image.arrivals)
        for kept in image.sessions:
            session = self.sessions.get(kept.session)
            if session is None:
                session = Session()
                session.floor, session.arrived_us = kept.floor, kept.arrived_us
                self.sessions.put(kept.session, session)
            session.pending.load(kept.runs)


def _rows(page: dict[int, Session]) -> list[_SessionRow]:
    return [
        (number, session.floor, session.arrived_us, session.pending.entries())
        for number, session in page.items()
    ]


def _images(pages: Iterator[list[_SessionRow]]) -> Iterator[list[SessionImage]]:
    for page in pages:
        few: list[SessionImage] = []
        for number, floor, arrived_us, entries in page:
            if not entries:
                few.append(SessionImage(number, floor, arrived_us, []))
                continue
            for runs in images_in_order(entries):
                if runs:
                    few.append(SessionImage(number, floor, arrived_us, runs))
                yield few
                few = []
        yield few

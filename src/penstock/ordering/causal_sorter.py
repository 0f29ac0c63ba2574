"""The causal sorter: each producer session's messages in the order of its own stamps, sessions merged by arrival.

A session's stamps come from its own clock, which need not agree with any other: they are compared only with each other. So
nothing here needs synchronized clocks, only a server clock that measures how long ago a batch arrived.

The rule: a window W after a batch has arrived, all messages of its session up to its greatest stamp leave, in the order of
stamps. So if one batch overtakes another by less than W, both are in order; a batch that comes later than that is late.
Batches of different sessions leave in the order of arrival. A silent session delays no other; a session whose clock jumps
ahead makes only its own later messages late.

Deciding and applying are separate, as in the window sorter; the record of a release has the sequence number of the last
batch whose window is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
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
    """The session of one producer. Its waiting messages are in a separate table."""

    __slots__ = ("arrived_us", "floor")

    def __init__(self) -> None:
        self.floor = BEFORE_ALL
        self.arrived_us = 0


_FORGOTTEN_AT_ONCE = 500
"""So many sessions are forgotten with a batch at most, the others with those that follow."""


class CausalCapture(NamedTuple):
    """The sorter as it was at one moment, in parts."""

    sessions: Iterator[list[SessionImage]]
    """First all sessions, then what waits of them: a session with much that waits comes in several images."""
    arrivals: Iterator[list[Arrival]]


class CausalSorter:
    """The order of one partition of a queue. A session is the process number of its ids."""

    def __init__(self, window_us: int, idle_us: int, most_sessions: int | None = None) -> None:
        self.window_us = window_us
        self.idle_us = idle_us
        """A session that has sent nothing for so long is forgotten; later sends begin a new one."""
        self.most_sessions = limits.PRODUCERS_PER_QUEUE if most_sessions is None else most_sessions
        """Of more, those without waiting messages that have been silent longest are forgotten earlier."""
        self.sessions: AgedMap[int, Session] = AgedMap()
        """In the order of their last arrival."""
        self._pending: AgedMap[int, PendingRuns] = AgedMap()
        """Waiting messages, by session; none is empty. A purge replaces the whole table, for any number of sessions."""
        self._arrivals: AgedMap[int, Arrival] = AgedMap()
        """By the sequence number of their first message, rising."""

    @property
    def pending(self) -> int:
        """How many messages wait."""
        return sum(pending.count for pending in self._pending.values())

    def judge(self, run: StampedRun) -> Accepted | Late:
        """Whether the messages are in time for their session; changes nothing."""
        session = self.sessions.get(run.process)
        oldest = run.id_at(0)
        if session is None or oldest > session.floor:
            return Accepted(len(run))
        lateness_us = session.floor.time_us - oldest.time_us
        return Late(run.first_after(session.floor), lateness_us, None, session.floor)

    def insert(self, run: StampedRun, arrived_us: int, late: int = 0) -> None:
        """Inserts the messages of the run that are in time; arrivals come in rising order of their sequences."""
        session = self.sessions.get(run.process) or Session()
        self.sessions.put(run.process, session)
        session.arrived_us = max(arrived_us, session.arrived_us)
        if late == len(run):
            return
        if run.id_at(late) <= session.floor:
            raise ValueError(f"{run.id_at(late)} is at or below the floor {session.floor}")
        self._pending_of(run.process).insert(run, late)
        self._arrivals.put(run.base, Arrival(arrived_us, run.base, run.process, run.times[-1]))

    def _pending_of(self, session: int) -> PendingRuns:
        """The waiting messages of a session, which are about to grow."""
        pending = self._pending.get(session)
        if pending is None:
            pending = PendingRuns()
            self._pending.put(session, pending)
        else:
            self._pending.touch(session)
        return pending

    def due_us(self) -> int | None:
        """When the next batch may leave; None where none waits."""
        oldest = self._arrivals.oldest()
        return oldest[1].arrived_us + self.window_us if oldest is not None else None

    def due_through(self, now_us: int, most: int | None = None) -> int | None:
        """The last batch, by its first sequence number, whose window is over, among the first so many; None if there is none."""
        through: int | None = None
        for arrival in islice(self._arrivals.values(), most):
            if arrival.arrived_us + self.window_us > now_us:
                break
            through = arrival.sequence
        return through

    def emit_through(self, sequence: int) -> list[Emitted]:
        """Lets leave what the batches up to one allow: an order for each, one after the other."""
        emitted: list[Emitted] = []
        for _, arrival in self._arrivals.pop_while(lambda arrival: arrival.sequence <= sequence):
            number = arrival.session
            session, pending = self.sessions.get(number), self._pending.get(number)
            if session is None or pending is None:  # a batch before it took it along
                continue
            self._pending.touch(number)
            taken = pending.take_through(arrival.greatest_us)
            if taken is None:
                continue
            if not pending.count:
                self._pending.pop(number)
            self.sessions.touch(number)
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
        while forgotten < _FORGOTTEN_AT_ONCE and (oldest := self.sessions.oldest()) is not None:
            number, session = oldest
            idle = session.arrived_us + self.idle_us <= now_us
            if number in self._pending or not (idle or len(self.sessions) > self.most_sessions):
                break
            self.sessions.pop(number)
            forgotten += 1
        return forgotten

    def clear(self) -> list[object]:
        """The queue was purged: nothing waits; floors stay where they are. Returns what waited."""
        before: list[object] = [self._arrivals, self._pending]
        self._arrivals, self._pending = AgedMap(), AgedMap()
        return before

    # --- snapshots ------------------------------------------------------------------------------------------

    @property
    def tables(self) -> tuple[AgedMap[int, Session], AgedMap[int, PendingRuns], AgedMap[int, Arrival]]:
        """The tables that tell a capture about their changes."""
        return self.sessions, self._pending, self._arrivals

    def begin_capture(self) -> CausalCapture:
        """The sorter as it is now, until the tables have no capture any more."""
        sessions = self.sessions.begin_capture(_sessions)
        pending = self._pending.begin_capture(_waiting)
        arrivals = self._arrivals.begin_capture(_arrivals)
        return CausalCapture(chain(sessions.images(), _images(pending.images())), arrivals.images())

    def dump(self) -> CausalImage:
        """All of it at once."""
        capture = self.begin_capture()
        sessions = [image for part in capture.sessions for image in part]
        arrivals = [arrival for part in capture.arrivals for arrival in part]
        for table in self.tables:
            table.capture = None
        return CausalImage(sessions, arrivals)

    def load(self, image: CausalImage) -> None:
        """From the snapshot; more may follow."""
        self._arrivals.put_all((arrival.sequence, arrival) for arrival in image.arrivals)
        for kept in image.sessions:
            session = self.sessions.get(kept.session)
            if session is None:
                session = Session()
                session.floor, session.arrived_us = kept.floor, kept.arrived_us
                self.sessions.put(kept.session, session)
            if kept.runs:
                self._pending_of(kept.session).load(kept.runs)


def _sessions(page: dict[int, Session]) -> list[SessionImage]:
    return [SessionImage(number, session.floor, session.arrived_us, []) for number, session in page.items()]


def _waiting(page: dict[int, PendingRuns]) -> list[tuple[int, list[Entry]]]:
    return [(number, pending.entries()) for number, pending in page.items()]


def _arrivals(page: dict[int, Arrival]) -> list[Arrival]:
    return list(page.values())


def _images(pages: Iterator[list[tuple[int, list[Entry]]]]) -> Iterator[list[SessionImage]]:
    """The waiting messages; the session itself exists already."""
    for page in pages:
        few: list[SessionImage] = []
        for number, entries in page:
            for runs in images_in_order(entries):
                if runs:
                    few.append(SessionImage(number, BEFORE_ALL, 0, runs))
                yield few
                few = []
        yield few

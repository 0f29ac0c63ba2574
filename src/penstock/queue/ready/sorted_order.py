"""The window of a queue ordered by its producers' stamps: which messages wait, which may leave, and which came too late.

Messages in the window are HELD. A `Sorted` record releases them: they become ready, in the order of their stamps, which is
then the order of their groups. Messages that are gone or moving by then are skipped. Messages that moved in from another
queue were in order before and would all be late now, so they do not enter the window. They are ready at once, after
everything that was released and before everything that waits, in the order in which they moved.

Late messages never enter the window either. `Sent.late` contains their number, and `MoveStarted` sends them to
`<queue>.late` right after. If a crash keeps only the first of these records, `stray` finds them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from penstock.model import limits
from penstock.model.aged_map import AgedMap
from penstock.model.batch import STAMPS, Batch
from penstock.model.origin import Lateness
from penstock.model.records import Sent
from penstock.model.runs import Runs, difference, intersection, normalized
from penstock.model.settings import QueueSettings
from penstock.ordering.causal_sorter import Arrival, CausalImage, CausalSorter, SessionImage
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.stamped_run import RunImage, StampedRun, run_of, run_of_range
from penstock.ordering.timestamp_id import TimestampId
from penstock.ordering.window_sorter import Late, SorterImage, Verdict, WindowSorter
from penstock.queue.ready.groups import FifoGroups
from penstock.queue.ready.late_batches import LateBatch, LateBatches
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS
from penstock.queue.state.table import MessageTable

Clock = Callable[[], ClockInterval | None]

UNCERTAIN_RETRY_MS = 10
"""How often a clock that says nothing is asked again."""


LateRow = tuple[int, Runs, Lateness]
"""(first message of the batch, late ones, how late) in a snapshot."""


class SortedCapture(NamedTuple):
    """The window as it was at one moment."""

    floor: tuple[TimestampId, list[TimestampId]] | None
    """Of a `clock` queue, with what left lately."""
    waiting: Iterator[list[RunImage]]
    sessions: Iterator[list[SessionImage]]
    arrivals: Iterator[list[Arrival]]
    late: Iterator[list[LateRow]]


class SortedOrder:
    """The window of one partition: a window sorter for `clock`, a causal sorter for `causal`."""

    def __init__(self, settings: QueueSettings) -> None:
        self._window: WindowSorter | None = None
        self._causal: CausalSorter | None = None
        if settings.ordering == "causal":
            self._causal = CausalSorter(0, limits.PRODUCER_IDLE_MS * 1_000)
        else:
            self._window = WindowSorter(0, 0)
        self.late = LateBatches()
        self._unsent: dict[int, None] = {}
        """The late messages that may not be moving yet; only these must be checked."""
        self.configure(settings)

    def configure(self, settings: QueueSettings) -> None:
        """The queue has these settings now."""
        if self._causal is not None:
            self._causal.window_us = settings.window_ms * 1_000
        if self._window is not None:
            self._window.window_us = settings.window_ms * 1_000
            self._window.allowed_ahead_us = settings.max_uncertainty_ms * 1_000

    @property
    def watermark_us(self) -> int:
        """The time of the last message that left; 0 where none did, or where every session has its own."""
        return self._window.floor.time_us if self._window is not None else 0

    # -- taking in -------------------------------------------------------------------------------------------

    def judge(self, run: StampedRun, now: ClockInterval | None) -> Verdict:
        """Whether the messages are in time, late or impossible."""
        if self._causal is not None:
            return self._causal.judge(run)
        assert self._window is not None
        assert now is not None
        return self._window.judge(run, now)

    def lateness(self, run: StampedRun, verdict: Late) -> Lateness:
        """How late, for the record."""
        precedes = verdict.precedes.to_text() if verdict.precedes is not None else None
        return Lateness(run.times[0] + verdict.lateness_us, verdict.window_needed_us, precedes)

    def insert(self, record: Sent, batch: Batch) -> None:
        """A batch was sent."""
        run = stamped_run(record, batch)
        if self._causal is not None:
            arrived_us = record.sent_ms * 1_000
            if record.late:
                verdict = self._causal.judge(run)
                floor_us = run.times[0] + (verdict.lateness_us if isinstance(verdict, Late) else 0)
            self._causal.insert(run, arrived_us, record.late)
            self._causal.forget_idle(arrived_us)
        else:
            assert self._window is not None
            floor_us = self._window.floor.time_us
            self._window.insert(run, record.late)
        if record.late:
            runs = normalized(run.runs(0, record.late))
            self.late.put(record.first, LateBatch(runs, Lateness(floor_us, None, None)))
            self._unsent[record.first] = None

    # -- letting out -----------------------------------------------------------------------------------------

    def due_ms(self, now_ms: int, clock: Clock) -> int | None:
        """When to look whether something may leave; None where nothing waits."""
        if self._causal is not None:
            due_us = self._causal.due_us()
            return None if due_us is None else -(-due_us // 1_000)
        assert self._window is not None
        due_us = self._window.due_us()
        if due_us is None:
            return None
        now = clock()
        if now is None:
            return now_ms + UNCERTAIN_RETRY_MS
        return now_ms + max(0, -(-(due_us - now.earliest_us) // 1_000))

    def due_through(self, now_ms: int, clock: Clock, most: int) -> int | None:
        """The time up to which the window releases about so many batches; None if none may leave."""
        if self._causal is not None:
            return self._causal.due_through(now_ms * 1_000, most)
        assert self._window is not None
        if self._window.due_us() is None or (now := clock()) is None:
            return None
        return self._window.due_through(now, most)

    def emit_through(self, through: int) -> Runs:
        """Lets leave what the record says; returns it in order."""
        if self._causal is not None:
            return [run for emitted in self._causal.emit_through(through) for run in emitted.runs]
        assert self._window is not None
        emitted = self._window.emit_through(through)
        return emitted.runs if emitted is not None else []

    def close(self, through_us: int) -> Runs:
        """Closes the window at a time: messages at or below it are refused from now on. Returns the messages that leave."""
        if self._window is None:
            return []
        emitted = self._window.close(through_us)
        return emitted.runs if emitted is not None else []

    def clear(self) -> list[object]:
        """The queue was purged; returns what waited."""
        return [
            *(self._window.clear() if self._window is not None else ()),
            *(self._causal.clear() if self._causal is not None else ()),
        ]

    def clear_late(self) -> list[object]:
        """No late message is here any more; returns the tables of them that there were."""
        before: list[object] = [self.late, self._unsent]
        self.late, self._unsent = LateBatches(), {}
        return before

    # -- late ones -------------------------------------------------------------------------------------------

    def late_moving(self, runs: Runs, lateness: Lateness) -> None:
        """Late messages are on their way, with what is known of them."""
        moving = normalized(runs)
        for first, batch in self.late.holding(moving):
            if intersection(batch.runs, moving):
                self.late.replace(first, batch._replace(lateness=lateness))

    def late_gone(self, runs: Runs) -> None:
        """Messages are gone."""
        gone = normalized(runs)
        for first, batch in self.late.holding(gone):
            rest = difference(batch.runs, gone)
            if not rest:
                self.late.pop(first)
            elif rest != batch.runs:
                self.late.replace(first, batch._replace(runs=rest))

    def lateness_of(self, first: int) -> Lateness | None:
        """The lateness of the batch that begins with this sequence number."""
        batch = self.late.get(first)
        return batch.lateness if batch is not None else None

    def stray(self, table: MessageTable, most: int | None = None) -> list[LateBatch]:
        """Late messages that do not move yet, after a crash or a full journal. `most`: the number of batches to examine."""
        found: list[LateBatch] = []
        for first in list(islice(self._unsent, most)):
            batch = self.late.get(first)
            held = table.among(states.RUNS_IN[states.HELD], batch.runs) if batch is not None else []
            if batch is None or not held:  # nothing is ever held again
                del self._unsent[first]
            else:
                found.append(LateBatch(held, batch.lateness))
        return found

    @property
    def may_have_strays(self) -> bool:
        """Whether there are late messages that may not be on their way."""
        return bool(self._unsent)

    # -- snapshots -------------------------------------------------------------------------------------------

    def begin_capture(self) -> SortedCapture:
        """The window as it is now, until its tables have no capture any more.

        The order of what was let out is captured with its groups."""
        late = self.late.begin_capture(_rows).images()
        if self._causal is not None:
            return SortedCapture(None, iter(()), *self._causal.begin_capture(), late)
        assert self._window is not None
        floor, heads, waiting = self._window.capture()
        return SortedCapture((floor, heads), waiting, iter(()), iter(()), late)

    @property
    def tables(self) -> list[AgedMap[int, Any]]:
        """The tables that tell a capture about their changes."""
        return [self.late, *(self._causal.tables if self._causal is not None else ())]

    def load(self, window: SorterImage | None, causal: CausalImage | None, late: Iterable[LateRow]) -> None:
        """From the snapshot; more may follow."""
        if self._window is not None and window is not None:
            self._window.load(window)
        if self._causal is not None and causal is not None:
            self._causal.load(causal)
        for first, runs, lateness in late:
            self.late.put(first, LateBatch(runs, lateness))
            self._unsent[first] = None

    def load_runs(self, runs: Iterable[RunImage]) -> None:
        """More of what waits on a `clock` queue."""
        if self._window is not None:
            self._window.load_runs(runs)


def _rows(page: dict[int, LateBatch]) -> list[LateRow]:
    return [(first, batch.runs, batch.lateness) for first, batch in page.items()]


def stamped_run(record: Sent, batch: Batch) -> StampedRun:
    """The ids of a batch, by its record and its column of stamps."""
    times = batch.integers(STAMPS)
    if times is None:
        first = TimestampId(record.stamp_us, record.process, record.counter)
        return run_of_range(first, record.count, record.first)
    return run_of(array("Q", times.tobytes()), record.process, record.counter, record.first)


def let_out(table: MessageTable, order: FifoGroups, runs: Runs) -> None:
    """Messages that left the window are ready, in this order; those that are gone or on their way are passed over."""
    held = table.among(states.RUNS_IN[states.HELD], runs)
    table.move(held, states.READY)
    for run in held:
        for chunk, start, stop in table.pieces(run):
            groups = chunk.groups[start:stop] if chunk.groups is not None else None
            order.sent(((chunk.number << CHUNK_BITS) + start, stop - start), groups)

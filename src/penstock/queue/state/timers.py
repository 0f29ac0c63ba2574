"""Timers for runs of messages, in slots: a slot is one entry for any number of messages that end in it.

Times are rounded up to the slot, so a timer never fires early, and at most one slot late. Asking what is due changes
nothing that a snapshot contains. Only records do, so every replica has the same timers.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from penstock.model import limits
from penstock.model.page_capture import PageCapture
from penstock.model.runs import Run, Runs, normalized
from penstock.model.swept_heap import SweptHeap

_SWEEP_AT_LEAST = 512
"""Timers of messages that are gone are swept out when there are this many, page by page; of times of sending all at once, when there
are twice as many as the last sweep left."""
_RUNS_AT_ONCE = 1_024
"""Of a slot with more runs a part is swept."""
_PAGES = 4_096
_FORGET_AT_LEAST = 1_000
"""Marks that are no longer needed are dropped when there are more than this."""

Alive = Callable[[Run], bool]

Swept = tuple[int, int]
"""How many timers are yet to be added before the next page is swept, and the page that was swept last."""


class SlotRow(NamedTuple):
    """The runs of a slot as they were: since then the list may have new runs, and its last run may have grown."""

    slot: int
    runs: Runs
    length: int
    last: Run

    def part(self, start: int, stop: int) -> Runs:
        """Some of the runs."""
        part = self.runs[start : min(stop, self.length)]
        if stop >= self.length > start:
            part[-1] = self.last
        return part


class SlotTimers:
    """Runs by the slot in which they are due. A run may be outdated when it fires; the caller checks the states."""

    def __init__(self, swept: Swept = (0, 0)) -> None:
        self._span = limits.PAGE_ROWS * limits.TIMER_SLOT_MS
        self._pages: dict[int, dict[int, Runs]] = {}
        """By slot, in pages. Neighbouring slots share a page, and so do slots that are far from each other: there are never so many pages
        that it would take long to list them. Of a list of runs only the last one ever changes."""
        self._count = 0
        self.capture: PageCapture[dict[int, Runs], list[SlotRow]] | None = None
        self.swept = swept
        # The slots to examine next; each slot is in exactly one of these.
        self._next: SweptHeap[int] = SweptHeap(self._is_next)
        self._due: dict[int, None] = {}
        """In the order in which they became due."""
        self._passed: set[int] = set()

    def add(self, due_ms: int, run: Run) -> None:
        """The messages of the run are due at `due_ms`, rounded up."""
        slot = -(-due_ms // limits.TIMER_SLOT_MS) * limits.TIMER_SLOT_MS
        self.swept = (self.swept[0] - 1, self.swept[1])
        page = self._page(slot)
        runs = page.get(slot)
        if runs is None:
            page[slot] = [run]
            self._count += 1
            self._next.push(slot)
            return
        if runs[-1][0] + runs[-1][1] == run[0]:
            runs[-1] = (runs[-1][0], runs[-1][1] + run[1])
        else:
            runs.append(run)
        if slot in self._passed:
            self._passed.remove(slot)
            self._next.push(slot)

    def _is_next(self, slot: int) -> bool:
        """Whether there is a slot that was not examined yet."""
        page = self._pages.get(self._key(slot))
        return page is not None and slot in page and slot not in self._due and slot not in self._passed

    def _key(self, slot: int) -> int:
        return slot // self._span % _PAGES

    def _page(self, slot: int) -> dict[int, Runs]:
        """The page of a slot, about to change."""
        key = self._key(slot)
        if self.capture is not None:
            self.capture.before(key)
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = {}
        return page

    def _pop(self, slot: int) -> Runs:
        page = self._page(slot)
        runs = page.pop(slot)
        if not page:
            del self._pages[self._key(slot)]
        self._count -= 1
        return runs

    def __iter__(self) -> Iterator[tuple[int, Runs]]:
        """All slots with their runs, by time."""
        yield from sorted(row for page in self._pages.values() for row in page.items())

    def next_ms(self) -> int | None:
        """When the next slot is due."""
        if self._due:
            return next(iter(self._due))
        return self._next.first()

    def due(self, now_ms: int) -> Runs:
        """What is due and neither taken nor passed over; it stays until it is."""
        self._collect(now_ms)
        return normalized(run for slot in self._due for run in self._pages[self._key(slot)][slot])

    def pass_over(self) -> None:
        """Notes that nothing of what is due is left: it needs no record, and is not examined again."""
        self._passed.update(self._due)
        self._due = {}

    def take_due(self, at_ms: int) -> Runs:
        """Takes out what is due, because a record says so."""
        self._collect(at_ms)
        slots = [slot for slot in (*self._passed, *self._due) if slot <= at_ms]
        self._passed.difference_update(slots)
        self._due = {slot: None for slot in self._due if slot > at_ms}
        return normalized(run for slot in slots for run in self._pop(slot))

    def _collect(self, now_ms: int) -> None:
        while (slot := self._next.first()) is not None and slot <= now_ms:
            self._next.pop(slot)
            self._due[slot] = None

    def sweep(self, alive: Alive, turn: int) -> None:
        """Forgets timers of messages that are gone, once there are many; without this a long time to live
        would cost memory long after its messages were deleted.

        A page is looked through for every so many timers that are added, so that all of them are in turn. `turn`: a number that
        rises with every record.
        """
        left, page = self.swept
        if self._count < _SWEEP_AT_LEAST:
            self.swept = (max(left, 0), page)
            return
        while left <= 0 and self._pages:
            page = self._page_after(page)
            left += max(_PAGES // 64, self._sweep_page(page, alive, turn) // 4)
        self.swept = (left, page)

    def _page_after(self, page: int) -> int:
        pages = self._pages
        if len(pages) < _PAGES // 64:
            return min((key for key in pages if key > page), default=min(pages))
        return next(key for key in chain(range(page + 1, _PAGES), range(page + 1)) if key in pages)

    def _sweep_page(self, key: int, alive: Alive, turn: int) -> int:
        """Sweeps one page and returns how much it examined."""
        if self.capture is not None:
            self.capture.before(key)
        page = self._pages[key]
        looked_at = 0
        for slot, runs in [*page.items()]:
            low, high = 0, len(runs)
            if high > _RUNS_AT_ONCE:
                low = turn * _RUNS_AT_ONCE % high
                high = min(high, low + _RUNS_AT_ONCE)
            looked_at += 1 + high - low
            living = [run for run in runs[low:high] if alive(run)]
            if len(living) == high - low:
                continue
            living = [*runs[:low], *living, *runs[high:]]
            if living:
                page[slot] = living
                continue
            del page[slot]
            self._count -= 1
            self._due.pop(slot, None)
            self._passed.discard(slot)
        if not page:
            del self._pages[key]
        return looked_at

    def clear(self) -> None:
        """Forgets everything."""
        self._pages = {}
        self._count = 0
        self._next = SweptHeap(self._is_next)
        self._due = {}
        self._passed = set()

    # -- the snapshot ----------------------------------------------------------------------------------------

    def begin_capture(self) -> PageCapture[dict[int, Runs], list[SlotRow]]:
        """Captures the timers as they are now, until `capture` is None again."""
        self.capture = PageCapture(self._pages, _rows)
        return self.capture

    def load(self, rows: Iterable[tuple[int, Runs]]) -> None:
        """Some slots from the snapshot; one may come in several parts."""
        for slot, runs in rows:
            page = self._page(slot)
            if slot in page:
                page[slot] += runs
            else:
                page[slot] = runs
                self._count += 1
                self._next.load(slot)


def _rows(page: dict[int, Runs]) -> list[SlotRow]:
    return [SlotRow(slot, runs, len(runs), runs[-1]) for slot, runs in sorted(page.items())]


class SentTimes:
    """When messages were sent, in slots: rising times and the first sequence number of each.

    Columns only grow at their end, and are replaced as a whole. So a capture can keep the column.
    """

    def __init__(self) -> None:
        self._times = array("Q")
        self._firsts = array("Q")
        self._start = 0
        self._passed = 0
        """Marks before this one were examined when they were due, and nothing was left to expire."""
        self.sweep_at = _SWEEP_AT_LEAST

    def add(self, sent_ms: int, first: int) -> bool:
        """A batch was sent; times never fall. Whether it is the first of its slot."""
        slot = -(-sent_ms // limits.RETENTION_SLOT_MS) * limits.RETENTION_SLOT_MS
        if not self._times or self._times[-1] < slot:
            self._times.append(slot)
            self._firsts.append(first)
            return True
        return False

    def expired_before(self, cutoff_ms: int, next_sequence: int) -> int:
        """The sequence number before which everything was sent at or before the cutoff."""
        index = bisect_right(self._times, cutoff_ms, lo=self._start)
        if index == self._start:
            return 0
        return self._firsts[index] if index < len(self._firsts) else next_sequence

    def pass_over(self, cutoff_ms: int) -> None:
        """Nothing sent at or before the cutoff is left to expire."""
        self._passed = bisect_right(self._times, cutoff_ms, lo=self._start)

    def look_again(self) -> None:
        """Something old may be there again."""
        self._passed = self._start

    def next_ms(self) -> int | None:
        """The first time that was not passed over."""
        index = max(self._start, self._passed)
        return self._times[index] if index < len(self._times) else None

    def forget_before(self, sequence: int) -> None:
        """Drops marks whose messages are all before `sequence`."""
        firsts = self._firsts
        while self._start + 1 < len(firsts) and firsts[self._start + 1] <= sequence:
            self._start += 1
        if self._start > _FORGET_AT_LEAST and self._start * 2 > len(firsts):
            self._drop_forgotten()

    def _drop_forgotten(self) -> None:
        self._times = self._times[self._start :]
        self._firsts = self._firsts[self._start :]
        self._passed = max(0, self._passed - self._start)
        self._start = 0

    def sweep(self, alive: Alive) -> None:
        """Forgets marks between which nothing lives, once there are many: one old message keeps one mark."""
        if len(self._times) - self._start < self.sweep_at:
            return
        self._drop_forgotten()
        firsts = self._firsts
        kept = [i for i, first in enumerate(firsts[:-1]) if alive((first, firsts[i + 1] - first))]
        kept.append(len(firsts) - 1)  # the newest mark is the one to which more may be sent
        self._times = array("Q", [self._times[i] for i in kept])
        self._firsts = array("Q", [firsts[i] for i in kept])
        self._passed = 0
        self.sweep_at = max(_SWEEP_AT_LEAST, 2 * len(kept))

    def sent_ms(self, sequence: int) -> int | None:
        """When the message was sent, to a slot."""
        index = bisect_right(self._firsts, sequence, lo=self._start)
        return self._times[index - 1] if index > self._start else None

    def columns(self) -> tuple[array[int], array[int], int]:
        """Times, first sequence numbers, and the place in both from which on they count."""
        return self._times, self._firsts, self._start

    def load(self, times: bytes, firsts: bytes) -> None:
        """Some marks from the snapshot, behind those that are there."""
        self._times.frombytes(times)
        self._firsts.frombytes(firsts)
        if len(self._times) != len(self._firsts):
            raise ValueError("the times of sending have columns of different lengths")

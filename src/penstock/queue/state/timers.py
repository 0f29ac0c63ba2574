"""Timers for runs of messages, in slots: a slot is one entry for any number of messages that end in it.

Times are rounded up to the slot, so a timer never fires early, and at most one slot late. Asking what is due changes
nothing that a snapshot contains. Only records do, so every replica has the same timers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

from penstock.model import limits
from penstock.model.page_capture import PageCapture
from penstock.model.runs import Run, Runs, normalized
from penstock.model.swept_heap import SweptHeap

_SWEEP_AT_LEAST = 512
"""Timers of messages that are gone are swept out when there are more slots than this."""
_LOOKED_AT_ONCE = 1_024
"""So many runs and slots are looked at in a step of that; a step follows when a quarter as many timers were added."""
_BLOCK_RUNS = 1_024
"""A slot with more runs has several lists."""
_MESSAGES_LIKE_A_RUN = 4
"""Long runs count for more than one: there may be so many runs of living messages in one."""
_PAGES = 4_096

Alive = Callable[[Run], bool]
Full = dict[int, list[Runs]]


class Swept(NamedTuple):
    """How far timers of messages that are gone are swept out."""

    left: int = 0
    """So many timers are yet to be added before more is looked at."""
    page: int = 0
    """The page that is looked through, or was last,"""
    slot: int = 0
    """in which slot that goes on,"""
    first: int = 0
    """and with which message there."""


class Due(NamedTuple):
    """Timers that are due, or a part of them: those of slots before `slot`, and in that slot those of messages before `end`."""

    runs: Runs
    slot: int
    end: int
    is_all: bool
    """Whether nothing else is due, or has to be taken out."""


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

    def __init__(self, swept: Swept | None = None) -> None:
        self._span = limits.PAGE_ROWS * limits.TIMER_SLOT_MS
        self._pages: dict[int, dict[int, Runs]] = {}
        """By slot, in pages. Neighbouring slots share a page, and so do slots that are far from each other: there are never so many pages
        that it would take long to list them. The runs of a slot are sorted and disjoint. During a capture only the last one of a list ever
        changes in its place."""
        self._full: Full = {}
        """Of slots with many runs: those before the ones in the page, in lists."""
        self._count = 0
        self.capture: PageCapture[dict[int, Runs], list[SlotRow]] | None = None
        self._left, *self._place = swept or Swept()
        # Which slots to look at next; each slot is in exactly one of these.
        self._next: SweptHeap[int] = SweptHeap(self._is_next)
        self._due: dict[int, None] = {}
        """In the order in which they became due."""
        self._looked_at: list[int] = []
        """Those of them of which it was asked last what is due."""
        self._passed: dict[int, int] = {}
        """Those of which nothing is left, with the number of their runs; the next record takes them out."""
        self._passed_runs = 0

    def add(self, due_ms: int, run: Run) -> None:
        """The messages of the run are due at `due_ms`, rounded up."""
        slot = -(-due_ms // limits.TIMER_SLOT_MS) * limits.TIMER_SLOT_MS
        self._left -= 1
        page = self._page(slot)
        runs = page.get(slot)
        if runs is None:
            page[slot] = [run]
            self._count += 1
            self._next.push(slot)
            return
        end = sum(runs[-1])
        if run[0] == end:
            runs[-1] = (runs[-1][0], runs[-1][1] + run[1])
        elif run[0] > end:
            runs.append(run)
            if len(runs) >= 2 * _BLOCK_RUNS:
                self._put(slot, [*self._full.get(slot, ()), runs])
        else:
            self._insert(slot, runs, run)
        if slot in self._passed:
            self._passed_runs -= self._passed.pop(slot)
            self._next.push(slot)

    def _insert(self, slot: int, last: Runs, run: Run) -> None:
        """Puts a run among others, and joins it with those that it touches; `last`: the list in the page."""
        full = self._full.get(slot, [])
        place = len(full) if last[0][0] <= run[0] else max(0, bisect_right(full, run[0], key=_first) - 1)
        block = full[place] if place < len(full) else last
        first, end = run[0], sum(run)
        following = (full[place + 1] if place + 1 < len(full) else last) if place < len(full) else None
        if following is not None and following[0][0] <= end:
            self._put(slot, [normalized([run, *chain.from_iterable(self._blocks(slot))])])  # rare
            return
        low = bisect_left(block, (first, 0))
        if low and sum(block[low - 1]) >= first:
            low -= 1
        high = bisect_left(block, (end + 1, 0), lo=low)
        if high > low:
            first, end = min(first, block[low][0]), max(end, sum(block[high - 1]))
        if self.capture is not None:  # which may have the list
            block = block[:]
            if place < len(full):
                full[place] = block
            else:
                self._pages[self._key(slot)][slot] = block
        block[low:high] = [(first, end - first)]
        if len(block) >= 2 * _BLOCK_RUNS:
            self._put(slot, self._blocks(slot))

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

    def _blocks(self, slot: int) -> list[Runs]:
        """The lists of a slot, in order."""
        return [*self._full.get(slot, ()), self._pages[self._key(slot)][slot]]

    def _put(self, slot: int, blocks: list[Runs]) -> None:
        """Gives a slot other lists; without any it is gone. Those of its page may change from now on."""
        key = self._key(slot)
        page = self._pages[key]
        if not blocks:
            del page[slot]
            self._full.pop(slot, None)
            self._count -= 1
            self._due.pop(slot, None)
            self._passed_runs -= self._passed.pop(slot, 0)
            if not page:
                del self._pages[key]
            return
        found: list[Runs] = []
        for block in blocks:
            if len(block) < 2 * _BLOCK_RUNS:
                found.append(block)
            else:
                found += [block[start : start + _BLOCK_RUNS] for start in range(0, len(block), _BLOCK_RUNS)]
        page[slot] = found.pop()
        if found:
            self._full[slot] = found
        else:
            self._full.pop(slot, None)

    def __iter__(self) -> Iterator[tuple[int, Runs]]:
        """All slots with their runs, by time."""
        for slot in sorted(slot for page in self._pages.values() for slot in page):
            yield slot, [run for block in self._blocks(slot) for run in block]

    # -- what is due -----------------------------------------------------------------------------------------

    def next_ms(self) -> int | None:
        """When the next slot is due."""
        if self._due:
            return next(iter(self._due))
        return self._next.first()

    def due(self, now_ms: int, most: int | None = None) -> Due:
        """What is due and neither taken nor passed over, the first of it where that is more than about `most` runs; it stays until a
        record takes it, with what was passed over before it.
        """
        following_ms = self._collect(now_ms, most)
        runs: Runs = []
        room = most if most is not None else 1 << 64
        self._looked_at = sorted(slot for slot in self._due if slot <= now_ms)
        for slot in self._looked_at:
            if slot > following_ms:  # what is due in between has not been looked at
                return Due(normalized(runs), following_ms, 0, is_all=False)
            for run in chain.from_iterable(self._blocks(slot)):
                if room <= 0:
                    return Due(normalized(runs), slot, run[0], is_all=False)
                if run[1] > (messages := room * _MESSAGES_LIKE_A_RUN):
                    return Due(normalized([*runs, (run[0], messages)]), slot, run[0] + messages, is_all=False)
                room -= 1 + run[1] // _MESSAGES_LIKE_A_RUN
                runs.append(run)
        is_all = following_ms > now_ms and (most is None or self._passed_runs <= most)
        return Due(normalized(runs), (self._looked_at or [0])[-1] + 1, 0, is_all=is_all)

    def pass_over(self) -> None:
        """Nothing of what is due is left: not worth a record, and not worth looking at again."""
        for slot in self._looked_at:
            del self._due[slot]
            self._passed[slot] = runs = sum(map(len, self._blocks(slot)))
            self._passed_runs += runs
        self._looked_at = []

    def take_due(self, at_ms: int) -> Runs:
        """Takes out what is due, because a record says so."""
        return self.take_before(at_ms + 1, 0)

    def take_before(self, last: int, end: int) -> Runs:
        """Takes out slots before the last one, and in that one timers of messages before `end`, because a record says so."""
        through = last if end else last - 1
        self._collect(through, None)
        taken: Runs = []
        for slot in sorted(slot for slot in (*self._passed, *self._due) if slot <= through):
            self._page(slot)
            blocks = self._blocks(slot)
            if slot < last:
                taken += chain.from_iterable(blocks)
                self._put(slot, [])
            else:
                before, behind = _split(blocks, end)
                taken += before
                self._put(slot, behind)
        return normalized(taken)

    def _collect(self, now_ms: int, most: int | None) -> int:
        """Notes which slots are due, up to so many more; says which one follows."""
        collected = 0
        while (slot := self._next.first()) is not None:
            if slot > now_ms or collected == most:
                return slot
            self._next.pop(slot)
            self._due[slot] = None
            collected += 1
        return now_ms + 1

    # -- what is gone ----------------------------------------------------------------------------------------

    def sweep(self, alive: Alive) -> None:
        """Forgets timers of messages that are gone, once there are many; without this a long time to live
        would cost memory long after its messages were deleted.

        A few are looked at for every so many timers that are added, so that all of them are in turn.
        """
        while self._count >= _SWEEP_AT_LEAST and self._left <= 0:
            self._left += max(_PAGES // 64, self._sweep_some(alive) // 4)
        self._left = max(self._left, 0)

    @property
    def swept(self) -> Swept:
        """How far that has come."""
        return Swept(self._left, *self._place)

    @swept.setter
    def swept(self, swept: Swept) -> None:
        self._left, *self._place = swept

    def _page_after(self, page: int) -> int:
        pages = self._pages
        if len(pages) < _PAGES // 64:
            return min((key for key in pages if key > page), default=min(pages))
        return next(key for key in chain(range(page + 1, _PAGES), range(page + 1)) if key in pages)

    def _sweep_some(self, alive: Alive) -> int:
        """Says how much there was to look at."""
        key, begin, first = self._place
        if not begin or key not in self._pages:
            key, begin, first = self._page_after(key), 0, 0
        if self.capture is not None:
            self.capture.before(key)
        room = _LOOKED_AT_ONCE
        page = self._pages[key]
        if begin not in page:
            first = 0
        for slot in sorted(page) if not begin else sorted(slot for slot in page if slot >= begin):
            if room <= 0:
                self._place = [key, slot, 0]
                return _LOOKED_AT_ONCE
            if not first and slot not in self._full and len(runs := page[slot]) <= room:  # the usual case
                room -= 1 + len(runs)
                living = [run for run in runs if alive(run)]
                if len(living) < len(runs):
                    self._put(slot, [living] if living else [])
                continue
            looked_at, following = self._sweep_slot(slot, first, room, alive)
            if following is not None:
                self._place = [key, slot, following]
                return _LOOKED_AT_ONCE
            room -= 1 + looked_at
            first = 0
        self._place = [key, 0, 0]
        return _LOOKED_AT_ONCE - room

    def _sweep_slot(self, slot: int, first: int, room: int, alive: Alive) -> tuple[int, int | None]:
        """Looks at so many runs from a message on; says at how many, and at which message to go on."""
        blocks = self._blocks(slot)
        start = max(0, bisect_left(blocks, first, key=_first) - 1) if first else 0
        low = bisect_left(blocks[start], (first, 0)) if first else 0
        runs = chain(islice(blocks[start], low, None), chain.from_iterable(islice(blocks, start + 1, None)))
        looked_at = [*islice(runs, room)]
        following = next(runs, None)
        living = [run for run in looked_at if alive(run)]
        if len(living) < len(looked_at):
            stop, before = start, low
            left = len(looked_at)
            while left > len(blocks[stop]) - before:
                left -= len(blocks[stop]) - before
                stop, before = stop + 1, 0
            between = [*blocks[start][:low], *living, *blocks[stop][before + left :]]
            self._put(slot, [*blocks[:start], *([between] if between else ()), *blocks[stop + 1 :]])
        return len(looked_at), following[0] if following is not None else None

    def clear(self) -> None:
        """Forgets everything."""
        self._pages, self._full = {}, {}
        self._count = 0
        self._next = SweptHeap(self._is_next)
        self._due, self._passed = {}, {}
        self._looked_at, self._passed_runs = [], 0

    # -- the snapshot ----------------------------------------------------------------------------------------

    def begin_capture(self) -> PageCapture[dict[int, Runs], list[SlotRow]]:
        """Captures the timers as they are now, until `capture` is None again."""
        self.capture = PageCapture(self._pages, partial(_rows, self._full))
        return self.capture

    def load(self, rows: Iterable[tuple[int, Runs]]) -> None:
        """Some slots from the snapshot; one may come in several parts."""
        for slot, runs in rows:
            page = self._page(slot)
            if slot not in page:
                page[slot] = []
                self._count += 1
                self._next.load(slot)
                self._put(slot, [normalized(runs)])  # earlier versions kept them in another order
            elif sum(page[slot][-1]) < runs[0][0]:
                self._put(slot, [*self._blocks(slot), normalized(runs)])
            else:
                self._put(slot, [normalized([*chain.from_iterable(self._blocks(slot)), *runs])])


def _rows(full: Full, page: dict[int, Runs]) -> list[SlotRow]:
    return [
        SlotRow(slot, block, len(block), block[-1])
        for slot, runs in sorted(page.items())
        for block in (*full.get(slot, ()), runs)
    ]


def _first(block: Runs) -> int:
    return block[0][0]


def _split(blocks: list[Runs], end: int) -> tuple[Runs, list[Runs]]:
    """The runs of messages before `end`, and the lists with all others."""
    place = bisect_left(blocks, end, key=_first)
    before = [*chain.from_iterable(blocks[:place])]
    behind = blocks[place:]
    if place:
        cut = bisect_left(blocks[place - 1], (end, 0))
        if rest := blocks[place - 1][cut:]:
            behind = [rest, *behind]
            del before[len(before) - len(rest) :]
    if before and (over := sum(before[-1]) - end) > 0:
        before[-1] = (before[-1][0], before[-1][1] - over)
        behind = [[(end, over)], *behind]
    return before, behind

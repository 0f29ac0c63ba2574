"""Leases: which runs are out, until when. A lease is an entry, whatever the number of its messages.

Invariant: a message in state LEASED belongs to exactly one lease here, and every run here is LEASED.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from penstock.model import limits
from penstock.model.epoch_numbers import first_of_epoch
from penstock.model.page_capture import PageCapture
from penstock.model.runs import Runs, difference, intersection, normalized

Part = tuple[int, Runs]
"""(until, runs): the messages of a lease that end together."""

LeaseRow = tuple[int, int, list[Part]]
"""(number, at, parts) of a lease in a snapshot."""

_REBUILD_AT_LEAST = 4_096


class Lease:
    """What one receive handed out and is still out."""

    __slots__ = ("at_ms", "parts")

    def __init__(self, at_ms: int, parts: list[Part]) -> None:
        self.at_ms = at_ms
        self.parts = parts

    def runs(self) -> Runs:
        """Everything still out under this lease."""
        if len(self.parts) == 1:
            return self.parts[0][1]
        return normalized(run for _, runs in self.parts for run in runs)


class LeaseTable:
    """All live leases of a partition, by number."""

    def __init__(self, following: int = 1) -> None:
        self.next = following
        self._page_rows = limits.PAGE_ROWS
        self._pages: dict[int, dict[int, Lease]] = {}
        """By number, in pages of neighbouring numbers. The parts of a lease are never changed, but replaced."""
        self.capture: PageCapture[dict[int, Lease], list[LeaseRow]] | None = None
        self._heap: list[tuple[int, int]] = []
        """(until, lease) of every part; those of parts that are gone stay until they come up or are too many."""
        self._rebuild_at = _REBUILD_AT_LEAST

    def begin_epoch(self, epoch: int) -> None:
        """Numbers go on in the epoch's own range: those of a lost lease, which somebody may hold a receipt of, never come back."""
        self.next = max(self.next, first_of_epoch(epoch))

    def add(self, number: int, runs: Runs, at_ms: int, until_ms: int) -> None:
        """A new lease; numbers only rise."""
        self.next = number + 1
        self._page(number)[number] = Lease(at_ms, [(until_ms, runs)])
        self._watch(until_ms, number)

    def _page(self, number: int) -> dict[int, Lease]:
        """The page of a lease, about to change."""
        key = number // self._page_rows
        if self.capture is not None:
            self.capture.before(key)
        page = self._pages.get(key)
        if page is None:
            page = self._pages[key] = {}
        return page

    def get(self, number: int) -> Lease | None:
        """The lease, if it is live."""
        page = self._pages.get(number // self._page_rows)
        return page.get(number) if page is not None else None

    def __iter__(self) -> Iterator[tuple[int, Lease]]:
        """All of them, by rising numbers."""
        for key in sorted(self._pages):
            yield from sorted(self._pages[key].items())

    def remove(self, number: int, runs: Runs) -> None:
        """Takes messages out of a lease; an empty lease is gone."""
        lease = self.get(number)
        if lease is None:
            return
        page = self._page(number)
        if len(lease.parts) != 1 or lease.parts[0][1] != runs:
            lease.parts = [(until, rest) for until, part in lease.parts if (rest := difference(part, runs))]
            if lease.parts:
                return
        del page[number]
        if not page:
            del self._pages[number // self._page_rows]

    def remove_anywhere(self, runs: Runs) -> None:
        """Takes messages out of whichever leases hold them; for the rare end that comes from elsewhere."""
        ends = [first + count for first, count in runs]
        for number, lease in list(self):
            held = lease.runs()
            low = bisect_right(ends, held[0][0])
            high = bisect_left(runs, (held[-1][0] + held[-1][1], 0), lo=low)
            if low < high and intersection(held, runs[low:high]):
                self.remove(number, runs[low:high])

    def extend(self, number: int, runs: Runs, until_ms: int) -> None:
        """Some or all messages of a lease now end at another time."""
        lease = self._page(number)[number]
        parts: list[Part] = []
        together = runs
        for until, part in lease.parts:
            left = difference(part, runs)
            if until == until_ms:
                together = normalized([*left, *together])
            elif left:
                parts.append((until, left))
        lease.parts = [*parts, (until_ms, together)]
        self._watch(until_ms, number)

    def resume(self, number: int, runs: Runs, at_ms: int, until_ms: int) -> None:
        """Messages that a lease held once are out under it again, whether or not it still holds others."""
        if self.get(number) is not None:
            self.extend(number, runs, until_ms)
        else:
            self._page(number)[number] = Lease(at_ms, [(until_ms, runs)])
            self._watch(until_ms, number)

    def _watch(self, until_ms: int, number: int) -> None:
        heappush(self._heap, (until_ms, number))
        if len(self._heap) >= self._rebuild_at:
            self._watch_all()

    def _watch_all(self) -> None:
        """With a visibility timeout of hours, leases that were deleted long ago would fill the heap."""
        pages = self._pages.values()
        self._heap = [
            (until, number) for page in pages for number, lease in page.items() for until, _ in lease.parts
        ]
        heapify(self._heap)
        self._rebuild_at = max(_REBUILD_AT_LEAST, 2 * len(self._heap))

    def next_ms(self) -> int | None:
        """When the next lease ends."""
        heap = self._heap
        while heap:
            until_ms, number = heap[0]
            lease = self.get(number)
            if lease is not None and any(until == until_ms for until, _ in lease.parts):
                return until_ms
            heappop(heap)
        return None

    def due(self, now_ms: int, most: int) -> list[tuple[int, Runs]]:
        """Up to `most` (lease, runs) that have ended; they stay due until the caller's records end them."""
        found: dict[int, Runs] = {}
        seen: list[tuple[int, int]] = []
        while len(found) < most and (until_ms := self.next_ms()) is not None and until_ms <= now_ms:
            entry = heappop(self._heap)
            seen.append(entry)
            number = entry[1]
            lease = self.get(number)
            if number not in found and lease is not None:
                parts = lease.parts
                found[number] = normalized(run for until, runs in parts if until <= now_ms for run in runs)
        for entry in seen:
            heappush(self._heap, entry)
        return list(found.items())

    def clear(self) -> None:
        """Nothing is out any more; numbers go on."""
        self._pages = {}
        self._heap.clear()

    # -- the snapshot ----------------------------------------------------------------------------------------

    def begin_capture(self) -> PageCapture[dict[int, Lease], list[LeaseRow]]:
        """Captures the leases as they are now, until `capture` is None again."""
        self.capture = PageCapture(self._pages, _rows)
        return self.capture

    def load(self, rows: Iterable[LeaseRow]) -> None:
        """Some leases from the snapshot."""
        for number, at_ms, parts in rows:
            self._page(number)[number] = Lease(at_ms, parts)
            for until_ms, _ in parts:
                heappush(self._heap, (until_ms, number))
        self._rebuild_at = max(_REBUILD_AT_LEAST, 2 * len(self._heap))


def _rows(page: dict[int, Lease]) -> list[LeaseRow]:
    return [(number, lease.at_ms, lease.parts) for number, lease in sorted(page.items())]

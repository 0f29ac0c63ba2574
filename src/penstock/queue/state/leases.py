"""Leases: which runs are leased, and until when. A lease is one entry for any number of messages.

Invariant: a message in state LEASED belongs to exactly one lease here, and every run here is LEASED.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.model import limits
from penstock.model.epoch_numbers import first_of_epoch
from penstock.model.page_capture import PageCapture
from penstock.model.runs import Run, Runs
from penstock.model.swept_heap import SweptHeap
from penstock.queue.state.lease import Lease, LeaseImage, Part, images_of, parts_of

LeaseRow = tuple[int, int, list[Part]]
"""(number, at, parts) of a lease in a snapshot."""

End = tuple[int, int]
"""(until, lease)."""


class LeaseTable:
    """All live leases of a partition, by number."""

    def __init__(self, following: int = 1) -> None:
        self.next = following
        self._page_rows = limits.PAGE_ROWS
        self._pages: dict[int, dict[int, Lease]] = {}
        """By number, in pages of neighbouring numbers. The parts of a lease are never changed, but replaced."""
        self.capture: PageCapture[dict[int, Lease], list[LeaseImage]] | None = None
        self._ends: SweptHeap[End] = SweptHeap(self._is_live)
        """Every end of every lease; those of leases that are gone stay until they come up or are too many."""

    def begin_epoch(self, epoch: int) -> None:
        """Moves to the number range of the epoch, so that the numbers of lost leases, for which receipts may exist, are never
        used again.
        """
        self.next = max(self.next, first_of_epoch(epoch))

    def add(self, number: int, runs: Runs, at_ms: int, until_ms: int) -> None:
        """A new lease; numbers only rise."""
        self.next = number + 1
        self._page(number)[number] = Lease(at_ms, runs, until_ms)
        self._ends.push((until_ms, number))

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
        if not lease.is_all(runs):
            lease.remove(runs)
            if lease:
                return
        del page[number]
        if not page:
            del self._pages[number // self._page_rows]

    def remove_from(self, owners: Iterable[tuple[int, Run]]) -> None:
        """Removes messages from the leases that hold them, for the rare end that is no settlement; (lease, run) by rising
        runs.
        """
        found: dict[int, Runs] = {}
        for number, run in owners:
            runs = found.setdefault(number, [])
            if runs and sum(runs[-1]) == run[0]:
                runs[-1] = (runs[-1][0], runs[-1][1] + run[1])
            else:
                runs.append(run)
        for number, runs in found.items():
            self.remove(number, runs)

    def extend(self, number: int, runs: Runs, until_ms: int) -> None:
        """Some or all messages of a lease now end at another time."""
        lease = self._page(number)[number]
        is_new = not lease.ends_at(until_ms)
        lease.extend(runs, until_ms)
        if is_new:
            self._ends.push((until_ms, number))

    def resume(self, number: int, runs: Runs, at_ms: int, until_ms: int) -> None:
        """Messages that a lease held once are out under it again, whether or not it still holds others."""
        if self.get(number) is not None:
            self.extend(number, runs, until_ms)
        else:
            self._page(number)[number] = Lease(at_ms, runs, until_ms)
            self._ends.push((until_ms, number))

    def _is_live(self, end: End) -> bool:
        lease = self.get(end[1])
        return lease is not None and lease.ends_at(end[0])

    def next_ms(self) -> int | None:
        """When the next lease ends."""
        first = self._ends.first()
        return first[0] if first is not None else None

    def due(self, now_ms: int, most: int, most_runs: int) -> list[tuple[int, Runs]]:
        """Up to `most` (lease, runs) that have ended, and up to so many runs; they stay due until the caller's records end them."""
        found: dict[int, Runs] = {}
        seen: list[End] = []
        while (
            len(seen) < most
            and most_runs > 0
            and (end := self._ends.first()) is not None
            and end[0] <= now_ms
        ):
            self._ends.pop(end)
            seen.append(end)
            number = end[1]
            lease = self.get(number)
            if number not in found and lease is not None:
                runs = lease.ended(now_ms)
                found[number] = runs if len(runs) <= most_runs else runs[:most_runs]
                most_runs -= len(runs)
        for end in seen:
            self._ends.push(end)
        return list(found.items())

    def clear(self) -> None:
        """Removes all leases; numbers continue."""
        self._pages = {}
        self._ends = SweptHeap(self._is_live)

    # -- the snapshot ----------------------------------------------------------------------------------------

    def begin_capture(self) -> PageCapture[dict[int, Lease], list[LeaseImage]]:
        """Captures the leases as they are now, until `capture` is None again."""
        self.capture = PageCapture(self._pages, images_of)
        return self.capture

    def load(self, rows: Iterable[LeaseRow]) -> None:
        """Some leases from the snapshot."""
        for number, at_ms, parts in rows:
            self._page(number)[number] = Lease.of_parts(at_ms, parts)
            for until_ms, _ in parts:
                self._ends.load((until_ms, number))


def rows_of(images: Iterable[LeaseImage]) -> Iterator[LeaseRow]:
    """Leases for a snapshot."""
    for number, at_ms, until_ms, runs, ends in images:
        yield number, at_ms, [(until_ms, runs)] if ends is None else parts_of(until_ms, runs, ends)

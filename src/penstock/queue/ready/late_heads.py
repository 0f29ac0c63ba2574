"""Late messages of a best-effort queue: older than messages that were delivered already, so they are served first.

Only batches with their producers' stamps take part. The newest delivered stamp is known to the batch: as soon as any
message of a batch is leased, its oldest message counts as delivered, so a message is never wrongly called late. No stamp
counts as later than its arrival, so a producer whose clock is ahead does not make the messages of others late.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort

from penstock.model.runs import Runs, count_of, difference
from penstock.queue.ready.lanes import Ahead
from penstock.queue.state.table import MessageTable

_SWEEP_AT_LEAST = 512
"""Batches that are gone are swept out when there are more than this,"""
_SENDS_BETWEEN = 128
"""some after so many sends,"""
_BATCHES_AT_ONCE = 512
"""of so many batches: to copy the columns of a million takes 3 ms."""


class LateHeads:
    """The stamps of a partition's messages, if they have any."""

    def __init__(self, table: MessageTable, ahead: list[Ahead]) -> None:
        self._table = table
        self.newest_us = 0
        """The newest stamp handed out so far."""
        self.ahead = ahead
        """Late messages, oldest first; some may be gone. The lanes of the queue serve them from this list."""
        self._firsts = array("Q")
        self._ends = array("Q")
        self._stamps = array("Q")
        self.swept = 0
        """Batches from this message on are looked at next."""
        self._swept_ahead = 0

    def sent(self, first: int, count: int, stamp_us: int, *, late: bool) -> None:
        """Notes a batch that is being sent and whose oldest message has this stamp; it is not in the table yet."""
        if len(self._firsts) >= _SWEEP_AT_LEAST and len(self._firsts) % _SENDS_BETWEEN == 0:
            self._sweep()
            self._sweep_ahead()
        if late:
            insort(self.ahead, (stamp_us, first, count))
        self._firsts.append(first)
        self._ends.append(first + count)
        self._stamps.append(stamp_us)

    def _sweep(self) -> None:
        """Forgets some batches of which nothing lives."""
        firsts, ends, alive = self._firsts, self._ends, self._table.is_alive
        low = bisect_left(firsts, self.swept)
        if low == len(firsts):
            low = 0
        high = min(len(firsts), low + _BATCHES_AT_ONCE)
        self.swept = firsts[high] if high < len(firsts) else 0
        kept = [place for place in range(low, high) if alive((firsts[place], ends[place] - firsts[place]))]
        if len(kept) == high - low:
            return
        self._firsts, self._ends, self._stamps = (
            column[:low] + array("Q", [column[place] for place in kept]) + column[high:]
            for column in self.columns()
        )

    def _sweep_ahead(self) -> None:
        low = self._swept_ahead if self._swept_ahead < len(self.ahead) else 0
        part = self.ahead[low : low + _BATCHES_AT_ONCE]
        living = [entry for entry in part if self._table.is_alive((entry[1], entry[2]))]
        self.ahead[low : low + len(part)] = living
        self._swept_ahead = low + len(living)

    def leased(self, runs: Runs) -> None:
        """Messages were handed out."""
        firsts, ends, stamps = self._firsts, self._ends, self._stamps
        for first, count in runs:
            low = max(0, bisect_right(firsts, first) - 1)
            for place in range(low, bisect_left(firsts, first + count)):
                if ends[place] > first and stamps[place] > self.newest_us:
                    self.newest_us = stamps[place]
        if self.ahead:
            self._served(runs)

    def _served(self, runs: Runs) -> None:
        """Removes leased messages from the head, so they are ordinary if they come back. They are usually at the front."""
        left = count_of(runs)
        kept: list[Ahead] = []
        place = 0
        while place < len(self.ahead) and left:
            stamp_us, first, count = self.ahead[place]
            rest = difference([(first, count)], runs)
            left -= count - count_of(rest)
            kept += [(stamp_us, *run) for run in rest]
            place += 1
        self.ahead[:place] = kept

    # -- the snapshot ----------------------------------------------------------------------------------------

    def columns(self) -> tuple[array[int], array[int], array[int]]:
        """First messages, ends and stamps of batches. These columns only grow at their end, or are replaced."""
        return self._firsts, self._ends, self._stamps

    def load(self, firsts: bytes, ends: bytes, stamps: bytes) -> None:
        """Some batches from the snapshot, behind those that are there."""
        for column, data in zip(self.columns(), (firsts, ends, stamps), strict=True):
            column.frombytes(data)
        if len({len(column) for column in self.columns()}) != 1:
            raise ValueError("the stamps of batches have columns of different lengths")

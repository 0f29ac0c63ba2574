"""Waiting runs: a heap of runs by their heads, merged only where they overlap.

Everything up to a time is taken together, so all ids of one time leave together. Runs that do not overlap leave as whole
ranges of any length; those that do are merged by one stable sort, at the speed of C.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush, heapreplace
from itertools import repeat
from typing import NamedTuple

from penstock.model.runs import Runs, runs_in_order
from penstock.ordering.stamped_run import RunImage, StampedRun, run_from_image
from penstock.ordering.timestamp_id import TimestampId

HEADS_REMEMBERED = 256
_AT_ONCE = 1_024
_MESSAGES_LIKE_A_RUN = 16
"""So many messages of a run take as long as a run to let out."""
_IMAGES_AT_ONCE = 64

Entry = tuple[int, int, int, int, int, StampedRun]
"""Time, process and counter of the first message left, its sequence number, its place in the run, the run."""


class Taken(NamedTuple):
    """What left, in order."""

    runs: Runs
    """Sequence numbers in the order of their ids; not sorted."""
    messages: int
    last: TimestampId
    heads: list[TimestampId]
    """Ids along the way, rising: the first of each run, the last 256 of them."""


Piece = tuple[Entry, int]
"""An entry and the place in its run where what is taken of it ends."""


class PendingRuns:
    """Stamped messages in no order of arrival; 8 bytes a message (16 where a batch had to be sorted)."""

    __slots__ = ("_heap", "count")

    def __init__(self) -> None:
        self._heap: list[Entry] = []
        self.count = 0

    def insert(self, run: StampedRun, start: int = 0) -> None:
        """Takes a run in from its place `start` on."""
        left = len(run.times) - start
        if left > 0:
            heappush(self._heap, _entry(run, start))
            self.count += left

    def head_us(self) -> int | None:
        """The smallest time that waits."""
        return self._heap[0][0] if self._heap else None

    def first_through(self, time_us: int, most: int) -> int:
        """The last time up to which about so many runs leave, fewer where they are long; no later than another time.

        Where it ends within a run, what is left of the run leaves later. What waits at the smallest time leaves in any case.
        """
        first: list[Entry] = []
        is_rest = False
        for entry in self._by_head():
            if entry[0] > time_us:
                break
            if is_rest := len(first) == most:
                break
            first.append(entry)
        if not first:
            return time_us
        heads = [entry[0] for entry in first]
        last_us = heads[-1] if is_rest else time_us

        def work(through_us: int) -> int:
            return sum(map(_work, first, repeat(through_us)))

        if work(last_us) <= most:
            return last_us
        # Between two heads first: that takes a few looks, however far apart the times are.
        place = max(1, bisect_right(heads, most, key=work))
        low_us, high_us = heads[place - 1], heads[place] if place < len(heads) else last_us
        between = range(low_us + 1, high_us)
        return low_us + bisect_right(between, most, key=work)

    def _by_head(self) -> Iterator[Entry]:
        """The runs in the order of their heads, as far as they are asked for."""
        heap = self._heap
        nearest = [(heap[0], 0)] if heap else []  # runs of which all that go before them were given
        while nearest:
            entry, place = heappop(nearest)
            for child in (2 * place + 1, 2 * place + 2):
                if child < len(heap):
                    heappush(nearest, (heap[child], child))
            yield entry

    def take_through(self, time_us: int) -> Taken | None:
        """Takes out everything up to and with a time; None where nothing is."""
        heap = self._heap
        if not heap or heap[0][0] > time_us:
            return None
        pieces: list[Piece] = []
        left = self.count
        while heap and heap[0][0] <= time_us:
            entry = heap[0]
            start, run = entry[4], entry[5]
            stop = len(run.times)
            if run.times[-1] <= time_us:
                heappop(heap)
            else:
                stop = bisect_right(run.times, time_us, start)
                heapreplace(heap, _entry(run, stop))
            pieces.append((entry, stop))
            left -= stop - start
        runs, last = _in_order(pieces)
        heads = [TimestampId(*entry[:3]) for entry, _ in pieces[-HEADS_REMEMBERED:]]
        taken = Taken(runs, self.count - left, last, heads)
        self.count = left
        return taken

    def clear(self) -> None:
        """Nothing waits any more."""
        self._heap.clear()
        self.count = 0

    def entries(self) -> list[Entry]:
        """The waiting runs, in no order; runs never change."""
        return self._heap[:]

    def load(self, images: Iterable[RunImage]) -> None:
        """Some runs from the snapshot."""
        for image in images:
            self.insert(run_from_image(image))


def images_in_order(entries: list[Entry]) -> Iterator[list[RunImage]]:
    """The entries by their sequence numbers, some at a time: however many there are, no step takes long.

    Equal states give equal images. An empty list says that there is more to do. The list of entries is used up.
    """
    stretches: dict[int, list[Entry]] = {}
    while entries:
        for entry in entries[-_AT_ONCE:]:
            stretches.setdefault(entry[3] // _AT_ONCE, []).append(entry)
        del entries[-_AT_ONCE:]
        yield []
    for number in sorted(stretches):
        in_order = sorted(stretches.pop(number), key=_by_sequence)
        for start in range(0, len(in_order), _IMAGES_AT_ONCE):
            yield [run.image(place) for _, _, _, _, place, run in in_order[start : start + _IMAGES_AT_ONCE]]


def _work(entry: Entry, through_us: int) -> int:
    """How much there is to do to let out what a run has up to a time."""
    head_us, _, _, _, start, run = entry
    if head_us > through_us:
        return 0
    return 1 + (bisect_right(run.times, through_us, start) - start) // _MESSAGES_LIKE_A_RUN


def _by_sequence(entry: Entry) -> int:
    return entry[3]


def _entry(run: StampedRun, start: int) -> Entry:
    place = start if run.sequences is None else run.sequences[start] - run.base
    return run.times[start], run.process, run.counter + place, run.base + place, start, run


def _in_order(pieces: list[Piece]) -> tuple[Runs, TimestampId]:
    """Pieces in the order of their heads as one order, and its last id."""
    runs: Runs = []
    overlapping: list[Piece] = []
    last: tuple[int, int, int] = (-1, 0, 0)
    for piece in pieces:
        (head_us, process, counter, _, start, run), stop = piece
        head = (head_us, process, counter)
        if head > last:
            if overlapping:
                _append(runs, overlapping)
            overlapping = [piece]
            last = head if stop - start == 1 else run.id_at(stop - 1)
            continue
        overlapping.append(piece)
        last = max(last, run.id_at(stop - 1))
    _append(runs, overlapping)
    return runs, TimestampId(*last)


def _append(runs: Runs, pieces: list[Piece]) -> None:
    """Adds pieces that overlap each other to the order, joining neighbours."""
    if len(pieces) > 1:
        more = _merged(pieces)
    else:
        (_, _, _, sequence, start, run), stop = pieces[0]
        more = [(sequence, stop - start)] if run.sequences is None else run.runs(start, stop)
    if runs:
        first, count = runs[-1]
        if first + count == more[0][0]:
            runs[-1] = (first, count + more[0][1])
            del more[0]
    runs += more


def _merged(pieces: list[Piece]) -> Runs:
    # Equal times: process, then counter. The counters of two batches of a process never interleave, so with the
    # pieces in that order a stable sort by time alone is the order of ids.
    pieces.sort(key=_by_process)
    times: list[int] = []
    numbers: list[int] = []
    for (head_us, _, _, sequence, start, run), stop in pieces:
        if stop - start == 1:
            times.append(head_us)
            numbers.append(sequence)
        else:
            times += run.times[start:stop]
            numbers += run.numbers(start, stop)
    places = sorted(range(len(times)), key=times.__getitem__)
    return runs_in_order(map(numbers.__getitem__, places))


def _by_process(piece: Piece) -> tuple[int, int, int]:
    run = piece[0][5]
    return run.process, run.counter, run.base

"""A capture: a partition as it was after one record, made a few pages at a time while further records are applied.

Small and packed parts are copied when the capture begins. Columns that only grow are kept, with their length. Everything
else is pages, which are copied before they change (`model/page_capture.py`). So all pages show the state at one index, and
no step takes long. Without a capture this costs nothing.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

from penstock.model import limits
from penstock.model.runs import Runs
from penstock.queue.partition import Partition
from penstock.queue.ready.groups import FifoGroups, OrderRow
from penstock.queue.snapshot import pages
from penstock.queue.snapshot.chunk_image import messages_of
from penstock.queue.snapshot.pages import Page, encode_page
from penstock.queue.state.chunk import Chunk
from penstock.queue.state.deduplication import sequence_and_until
from penstock.queue.state.leases import rows_of
from penstock.queue.state.timers import SlotRow

Row = TypeVar("Row")
Step = bytes | None
"""A page, or None where something was done and no page is full yet."""

_COLUMN_BYTES = 64


class Capture:
    """The state of a partition at this moment; call `step` until `is_done`, then `buffers` has all of it."""

    def __init__(self, partition: Partition, *, exact: bool = False) -> None:
        """`exact`: nothing changes until it is done, so that another capture may be under way; equal states are to
        give equal bytes."""
        if partition.table.capture is not None and not exact:
            raise ValueError(f"partition {partition.partition_id} is being captured already")
        self._tables = [(table, table.capture) for table in _tables(partition)]
        self.index = partition.index
        self.is_done = False
        self._pages: list[bytes] = []
        self._steps = _steps(partition, exact=exact)
        self._pages.append(next(self._steps) or b"")  # everything begins here

    def step(self, most: int) -> int:
        """Does so many steps, or fewer where that is the end; says how many."""
        for done in range(most):
            try:
                page = next(self._steps)
            except StopIteration:
                self.is_done = True
                self.close()
                return done
            if page is not None:
                self._pages.append(page)
        return most

    def close(self) -> None:
        """Ends the capture, complete or not; the partition continues without it."""
        self._steps.close()
        for table, before in self._tables:
            table.capture = before
        self._tables = []

    @property
    def buffers(self) -> list[bytes]:
        """The state, once it is done."""
        return [pages.prefix(len(self._pages)), *self._pages]


class Captured(Protocol):
    """A table that tells its capture before it changes."""

    capture: Any


def _tables(partition: Partition) -> list[Captured]:
    tables: list[Captured] = [
        *(partition.table, partition.leases, partition.groups, partition.delays, partition.expiries),
        *(partition.window.rows, partition.window.claims.rows, partition.attempts.rows),
    ]
    if partition.log is not None:
        tables.append(partition.log)
    if isinstance(partition.order, FifoGroups):
        tables.append(partition.order)
    if partition.sorting is not None:
        tables += partition.sorting.tables
    return tables


def _steps(partition: Partition, *, exact: bool) -> Generator[Step, None, None]:
    """Begins with the first step; the first page is the head."""
    rows = limits.PAGE_ROWS
    table, log, heads, lifecycle = partition.table, partition.log, partition.late_heads, partition.lifecycle

    many_attempts = table.many_attempts  # a purge continues with another one

    def image(chunk: Chunk) -> bytes:
        return encode_page(messages_of(chunk, many_attempts))

    chunks = table.begin_capture(image)
    leases = partition.leases.begin_capture()
    delays, expiries = partition.delays.begin_capture(), partition.expiries.begin_capture()
    window = partition.window.rows.begin_capture(_items)
    claims = partition.window.claims.rows.begin_capture(_items)
    attempts = partition.attempts.rows.begin_capture(_items)
    groups, free_groups = partition.groups.begin_capture(), partition.groups.free()
    sent_times, firsts, start = partition.sent_times.columns()
    marks = len(sent_times)
    logged = log.begin_capture() if log is not None else None
    sorting = partition.sorting.begin_capture() if partition.sorting is not None else None
    order = None
    if sorting is not None and isinstance(partition.order, FifoGroups):
        order = partition.order.begin_capture(partition.groups.last)
    stamps = heads.columns() if heads is not None else None
    stamped = len(stamps[0]) if stamps is not None else 0
    ahead = list(heads.ahead) if heads is not None else []
    swept = partition.delays.swept, partition.expiries.swept
    producers = partition.producers.dump()
    origins = [(source_id, runs.blocks()) for source_id, runs in partition.origins]
    moves = [(key, runs.blocks()) for key, runs in partition.moves.items()]
    overdue = partition.overdue.blocks()
    forgotten = partition.origins.places()
    readers = partition.readers.dump()
    reports = list(lifecycle.waiting) if lifecycle is not None else []
    yield encode_page(
        pages.Head(
            partition_id=partition.partition_id,
            name=partition.name,
            settings=partition.settings,
            created_ms=partition.created_ms,
            index=partition.index,
            last_sent_ms=partition.last_sent_ms,
            next_sequence=table.next,
            next_lease=partition.leases.next,
            totals=partition.totals,
            last_stamp_us=partition.commit_wait.last_us,
            epochs=partition.epochs.pairs(),
            sweeps=(swept[0].left, swept[1].left, partition.sent_times.swept),
            swept=(swept[0].page, swept[1].page),
            swept_to=(swept[0][2:], swept[1][2:]),
            producers=producers.marks,
            log_next=log.next if log is not None else None,
            heads=(heads.newest_us, heads.swept) if heads is not None else None,
            floor=sorting.floor if sorting is not None else None,
            lifecycle=(lifecycle.following, lifecycle.ended, lifecycle.next, lifecycle.dropped)
            if lifecycle is not None
            else None,
            gaps=partition.gaps.pairs(),
            row_gaps=lifecycle.gaps.pairs() if lifecycle is not None else [],
        )
    )
    yield from chunks.images()
    if order is not None:
        yield from _order(order.images(), partition if exact else None)
    yield from _weighed(
        map(rows_of, leases.images()), lambda row: 1 + sum(len(runs) for _, runs in row[2]), pages.Leases
    )
    yield from _slots(delays.images(), pages.Delays)
    yield from _slots(expiries.images(), pages.Expiries)
    for low in range(start, marks, rows):
        high = min(low + rows, marks)
        yield encode_page(pages.SentTimes(sent_times[low:high].tobytes(), firsts[low:high].tobytes()))
    yield from _even(
        ([(key, *sequence_and_until(row)) for key, row in part] for part in window.images()), pages.Window
    )
    yield from _even(([(key, *row) for key, row in part] for part in claims.images()), pages.Claims)
    yield from _even(([(key, *row) for key, row in part] for part in attempts.images()), pages.Attempts)
    for column, data in enumerate(producers.columns):
        for low in range(0, len(data), rows * _COLUMN_BYTES):
            yield encode_page(pages.Producers(column, data[low : low + rows * _COLUMN_BYTES]))
    yield from _weighed(iter([producers.duplicates]), lambda row: 1 + len(row[1]) // 16, pages.Duplicates)
    for source_id, blocks in origins:
        yield from _even(blocks, partial(pages.Origins, source_id))
    yield from _even(_cut(forgotten), pages.ForgottenOrigins)
    yield from _even(groups.images(), pages.Groups)
    for low in range(0, len(free_groups), 4 * rows):
        yield encode_page(pages.FreeGroups(free_groups[low : low + 4 * rows]))
    for key, blocks in moves:
        yield from _even(blocks, partial(pages.Moves, key))
    yield from _even(overdue, pages.Overdue)
    if logged is not None:
        for columns in logged.parts(rows):
            yield encode_page(pages.Log(columns))
    yield from _weighed(iter([readers]), lambda row: 1 + len(row.members), pages.Readers)
    if sorting is not None:
        yield from _weighed(sorting.waiting, lambda run: 1 + len(run.times) // 8, pages.Waiting)
        yield from _weighed(
            sorting.sessions,
            lambda row: 1 + (sum(len(run.times) // 8 for run in row.runs) if row.runs else 0),
            pages.Sessions,
        )
        yield from _even(sorting.arrivals, pages.Arrivals)
        yield from _weighed(sorting.late, lambda row: 1 + len(row[1]), pages.Late)
    if stamps is not None:
        for low in range(0, stamped, rows):
            high = min(low + rows, stamped)
            yield encode_page(pages.Stamps(*(column[low:high].tobytes() for column in stamps)))
        if exact:
            ahead = [row for row in ahead if table.is_alive((row[1], row[2]))]
        yield from _even(_cut(ahead), pages.AheadOfOthers)
    for low in range(0, len(reports), max(1, rows // 4)):
        yield encode_page(pages.Lifecycle(reports[low : low + max(1, rows // 4)]))


def _items(page: dict[bytes, Row]) -> list[tuple[bytes, Row]]:
    return list(page.items())


def _cut(rows: list[Row]) -> Iterator[list[Row]]:
    for start in range(0, len(rows), limits.PAGE_ROWS):
        yield rows[start : start + limits.PAGE_ROWS]


def _even(parts: Iterable[list[Row]], page: Callable[[list[Row]], Page]) -> Iterator[Step]:
    """Pages with a fixed number of rows, for rows of about the same size."""
    most = limits.PAGE_ROWS
    rows: list[Row] = []
    for part in parts:
        rows += part
        while len(rows) >= most:
            yield encode_page(page(rows[:most]))
            del rows[:most]
        yield None
    if rows:
        yield encode_page(page(rows))


def _weighed(
    parts: Iterator[Iterable[Row]], weigh: Callable[[Row], int], page: Callable[[list[Row]], Page]
) -> Iterator[Step]:
    """Rows of different size: a page ends with the row that makes it full."""
    most = limits.PAGE_ROWS
    rows: list[Row] = []
    weight = 0
    for part in parts:
        for row in part:
            rows.append(row)
            weight += weigh(row)
            if weight >= most:
                yield encode_page(page(rows))
                rows, weight = [], 0
        yield None
    if rows:
        yield encode_page(page(rows))


def _slots(parts: Iterator[list[SlotRow]], page: Callable[[list[tuple[int, Runs]]], Page]) -> Iterator[Step]:
    """Slots of timers; one with many runs goes over several pages."""
    most = room = limits.PAGE_ROWS
    rows: list[tuple[int, Runs]] = []
    for part in parts:
        for row in part:
            start = 0
            while start < row.length:
                stop = min(start + room, row.length)
                if rows and rows[-1][0] == row.slot:
                    rows[-1][1].extend(row.part(start, stop))
                else:
                    rows.append((row.slot, row.part(start, stop)))
                room -= stop - start
                start = stop
                if not room:
                    yield encode_page(page(rows))
                    rows, room = [], most
        yield None
    if rows:
        yield encode_page(page(rows))


def _order(parts: Iterator[list[OrderRow]], exact: Partition | None) -> Iterator[Step]:
    """The order of groups; of one with many messages over several pages."""
    most = room = limits.PAGE_ROWS
    rows: dict[int, array[int]] = {}
    for part in parts:
        for number, sequences, start, stop in part:
            while start < stop:
                taken = sequences[start : min(start + room, stop)]
                start += len(taken)
                if exact is not None:
                    taken = array("Q", [sequence for sequence in taken if exact.table.state(sequence)])
                if taken:
                    rows.setdefault(number, array("Q")).extend(taken)
                room -= len(taken)
                if not room:
                    yield encode_page(_order_page(rows))
                    rows, room = {}, most
        yield None
    if rows:
        yield encode_page(_order_page(rows))


def _order_page(rows: dict[int, array[int]]) -> Page:
    return pages.Order([(number, sequences.tobytes()) for number, sequences in rows.items()])

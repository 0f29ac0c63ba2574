"""Builds a partition from the pages of a snapshot, a few at a time, as they arrive."""

from __future__ import annotations

from array import array

from penstock.model.number_gaps import NumberGaps
from penstock.ordering.causal_sorter import CausalImage
from penstock.ordering.window_sorter import SorterImage
from penstock.queue.lifecycle import Lifecycle
from penstock.queue.partition import Partition
from penstock.queue.ready.groups import FifoGroups
from penstock.queue.snapshot import first_images, pages
from penstock.queue.snapshot.chunk_image import chunk_of, marked
from penstock.queue.snapshot.pages import Page
from penstock.queue.snapshot.producers_image import ProducersImage
from penstock.queue.state import states
from penstock.queue.state.attempts import Attempt
from penstock.queue.state.chunk import CHUNK_BITS, Chunk
from penstock.queue.state.deduplication import Claim, row_of
from penstock.queue.state.producers import COLUMNS
from penstock.queue.state.timers import Swept
from penstock.replication.primary_secondary.core.epochs import EpochHistory


class Builder:
    """Takes the bytes of a state in pieces of any size, and builds from the complete pages.

    Raises `msgspec.DecodeError` or `ValueError` on anything that is not a state.
    """

    def __init__(self, *, elsewhere: bool = False) -> None:
        """`elsewhere`: another node's state, so that every position in it is marked as one of that node's."""
        self._elsewhere = elsewhere
        self._data = bytearray()
        self._offset = 0
        self._left: int | None = None
        """Pages that are not built yet; None where that is not known."""
        self._partition: Partition | None = None
        self._producers = [bytearray() for _ in range(COLUMNS)]
        self._producer_marks = (0, 0, 0)
        self._duplicates: list[tuple[int, bytes]] = []

    @property
    def begun(self) -> Partition | None:
        """The partition as far as it is built."""
        return self._partition

    def feed(self, data: bytes | memoryview) -> None:
        """More of the state."""
        self._data += data

    def build(self, most: int) -> bool:
        """Builds up to so many pages; whether nothing is left to do with what has come."""
        if self._left is None:
            if not pages.is_paged(self._data):
                return True  # too little has come, or it is of version 1 or 2, which is built at once
            self._left, self._offset = pages.page_count(self._data), pages.PREFIX_BYTES
        view = memoryview(self._data)
        try:
            while self._left:
                start = self._offset + pages.PAGE_HEADER_BYTES
                if start > len(view):
                    break
                stop = start + pages.page_size(view, self._offset)
                if stop > len(view):
                    break
                if not most:
                    return False
                self._add_checked(pages.decode_page(view[start:stop]))
                self._offset = stop
                self._left -= 1
                most -= 1
        finally:
            view.release()
        if self._offset:
            del self._data[: self._offset]
            self._offset = 0
        return True

    def finish(self) -> Partition:
        """The partition, once all of it has come."""
        while not self.build(2**30):
            pass
        if self._left is None:
            for page in first_images.pages_of(bytes(self._data)):
                self._add_checked(page)
        elif self._left or self._data:
            raise ValueError("a state ends before its last page, or behind it")
        partition = self._partition
        if partition is None:
            raise ValueError("a state has no head")
        if partition.log is not None and partition.log.next != partition.table.next:
            raise ValueError("the log does not end where the queue does")
        if any(self._producers):
            columns = [bytes(column) for column in self._producers]
            image = ProducersImage(self._producer_marks, columns, self._duplicates)
            partition.producers.load(image)
        return partition

    # -- pages -----------------------------------------------------------------------------------------------

    def _add_checked(self, page: Page | first_images.FirstProducers) -> None:
        """Adds pages, and raises only these two kinds of errors, also if pages do not fit together."""
        try:
            self._add(page)
        except (LookupError, OverflowError) as error:
            raise ValueError(f"a page of kind {type(page).__name__} does not fit the others") from error

    def _add(self, page: Page | first_images.FirstProducers) -> None:
        partition = self._partition
        if isinstance(page, pages.Head):
            self._partition = self._begin(page)
            return
        if partition is None:
            raise ValueError("a state does not begin with its head")
        match page:
            case pages.Messages():
                self._add_messages(partition, page)
            case pages.Leases(rows):
                partition.leases.load(rows)
                for number, _, parts in rows:
                    for _, runs in parts:
                        partition.table.note_lease(runs, number)
                        partition.order.went_out(runs)
            case pages.Delays(rows):
                partition.delays.load(rows)
            case pages.Expiries(rows):
                partition.expiries.load(rows)
            case pages.SentTimes(times, firsts):
                partition.sent_times.load(times, firsts)
            case pages.Window(rows):
                window = partition.window.rows
                window.put_all((key, row_of(sequence, until_ms)) for key, sequence, until_ms in rows)
                partition.window.has_bars |= any(sequence < 0 for _, sequence, _ in rows)
            case pages.Claims(rows):
                partition.window.claims.rows.put_all((key, Claim(*claim)) for key, *claim in rows)
            case pages.Attempts(rows):
                for key, *attempt in rows:
                    partition.attempts.put(key, Attempt(*attempt))
            case pages.Producers(column, data):
                if not 0 <= column < COLUMNS:
                    raise ValueError(f"the table of producers has no column {column}")
                self._producers[column] += data
            case pages.Duplicates(rows):
                self._duplicates += rows
            case first_images.FirstProducers(rows):
                for row in rows:
                    partition.producers.restore(*row)
            case pages.Origins(source_id, runs):
                partition.origins.load(source_id, runs)
            case pages.ForgottenOrigins(rows):
                for source_id, *place in rows:
                    partition.origins.forget(source_id, [], (place[0], place[1]))
            case pages.Groups(rows):
                partition.groups.load(rows)
            case pages.FreeGroups(numbers):
                partition.groups.load_free(numbers)
            case pages.Moves(key, runs):
                partition.moves.load(key, runs)
            case pages.Overdue(runs):
                partition.overdue.append(runs)
            case pages.Log():
                self._add_log(partition, page)
            case pages.Readers(rows):
                partition.readers.load(rows)
            case _:
                self._add_ordered(partition, page)

    def _add_ordered(self, partition: Partition, page: Page) -> None:
        """Adds the parts that only queues with stamps or a lifecycle log have."""
        sorting, table = partition.sorting, partition.table
        match page:
            case pages.Waiting(runs) if sorting is not None:
                sorting.load_runs(runs)
            case pages.Sessions(rows) if sorting is not None:
                sorting.load(None, CausalImage(rows, []), ())
            case pages.Arrivals(rows) if sorting is not None:
                sorting.load(None, CausalImage([], rows), ())
            case pages.Late(rows) if sorting is not None:
                sorting.load(None, None, rows)
            case pages.Order(rows) if sorting is not None and isinstance(partition.order, FifoGroups):
                for number, sequences in rows:
                    living = [sequence for sequence in array("Q", sequences) if table.state(sequence)]
                    partition.order.load(number, living)
            case pages.Stamps(firsts, ends, stamps):
                partition.know_stamps().load(firsts, ends, stamps)
            case pages.AheadOfOthers(rows):
                partition.know_stamps().ahead.extend(row for row in rows if table.is_alive((row[1], row[2])))
            case pages.Lifecycle(rows) if partition.lifecycle is not None:
                partition.lifecycle.waiting.extend(rows)
            case _:
                raise ValueError(
                    f"a state has a page of kind {type(page).__name__}, which does not fit its head"
                )

    def _begin(self, head: pages.Head) -> Partition:
        if self._partition is not None:
            raise ValueError("a state has two heads")
        partition = Partition(head.partition_id, head.name, head.settings, head.created_ms)
        partition.index = head.index
        partition.last_sent_ms = head.last_sent_ms
        partition.totals = head.totals
        partition.table.next = partition.window.known_from = head.next_sequence
        partition.leases.next = head.next_lease
        partition.commit_wait.observe(head.last_stamp_us)
        partition.epochs = EpochHistory(head.epochs)
        delays, expiries, sent_times = head.sweeps
        partition.delays.swept = Swept(delays, head.swept[0], *head.swept_to[0])
        partition.expiries.swept = Swept(expiries, head.swept[1], *head.swept_to[1])
        partition.sent_times.swept = sent_times
        self._producer_marks = head.producers
        for gap in head.gaps:
            partition.gaps.add(*gap)
        if partition.log is not None:
            if head.log_next is None:
                raise ValueError("the log of a queue that has one is missing")
            partition.log.next = head.log_next
        if head.heads is not None:
            heads = partition.know_stamps()
            heads.newest_us, heads.swept = head.heads
        if partition.sorting is not None and head.floor is not None:
            floor, left = head.floor
            partition.sorting.load(SorterImage(floor, left, []), None, ())
        partition.lifecycle = None
        if head.lifecycle is not None:
            partition.lifecycle = lifecycle = Lifecycle()
            lifecycle.following, lifecycle.ended, lifecycle.next, lifecycle.dropped = head.lifecycle
            lifecycle.gaps = NumberGaps(head.row_gaps)
        return partition

    def _add_messages(self, partition: Partition, page: pages.Messages) -> None:
        if self._elsewhere:
            page.positions = marked(page.positions)
        chunk = chunk_of(page)
        partition.table.adopt(chunk)
        for place, receives in page.many_attempts:
            partition.table.many_attempts[(chunk.number << CHUNK_BITS) + place] = receives
        if partition.sorting is None:
            _join_order(partition, chunk)

    def _add_log(self, partition: Partition, page: pages.Log) -> None:
        if partition.log is None:
            raise ValueError("a queue without a log has one in its state")
        firsts, positions, *others = page.columns
        if self._elsewhere:
            positions = marked(positions)
        partition.log.load((firsts, positions, *others))  # type: ignore[arg-type]  # five in all


def _join_order(partition: Partition, chunk: Chunk) -> None:
    """Restores the ready order; it follows from the columns, except for the stamps of producers."""
    base = chunk.number << CHUNK_BITS
    for match in states.RUNS_LIVING.finditer(chunk.states):
        groups = chunk.groups[match.start() : match.end()] if chunk.groups is not None else None
        partition.order.sent((base + match.start(), match.end() - match.start()), groups)

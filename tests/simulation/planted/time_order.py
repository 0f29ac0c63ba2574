"""What the planted bugs of order by time and of the log break."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.backend.logs import reading as log_reading
from penstock.backend.node.outbox import Outbox
from penstock.backend.send import sends
from penstock.client_core.read_ahead import Effect, RangeRead, ReadAnswer, ReadingAhead
from penstock.model.batch import Batch
from penstock.model.records import Expired, Sent
from penstock.ordering.causal_sorter import CausalSorter
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.commit_wait import CommitWait
from penstock.ordering.timestamp_id import BEFORE_ALL
from penstock.ordering.window_sorter import Accepted, WindowSorter
from penstock.queue.decisions import send as sending
from penstock.queue.decisions import stamping
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.decisions.stamping import Stamping
from penstock.queue.log import groups as log_groups
from penstock.queue.log.index import LogIndex
from penstock.queue.log.reader_groups import ReaderGroup
from penstock.queue.partition import Partition
from penstock.queue.ready.groups import FifoGroups
from penstock.queue.ready.late_heads import LateHeads
from penstock.simulation.patching import Patch
from penstock.wire.messages import LogSlice

# -- order by time -------------------------------------------------------------------------------------------


def answers_before_the_stamp() -> Sequence[Patch]:
    def answerable_us(now: ClockInterval) -> int:
        return now.latest_us

    return [(sends, "answerable_us", answerable_us)]


def forget_stamps(partition: Partition) -> None:
    partition.commit_wait = CommitWait()


def forget_floors(partition: Partition) -> None:
    sorting = partition.sorting
    if sorting is not None and sorting._window is not None:
        sorting._window.floor = BEFORE_ALL
    if sorting is not None and sorting._causal is not None:
        for session in sorting._causal.sessions.values():
            session.floor = BEFORE_ALL


def late_ones_are_sorted_in() -> Sequence[Patch]:
    def judge(self: object, run: Any, *now: object) -> Accepted:
        return Accepted(len(run))

    def insert_by_clock(self: WindowSorter, run: Any, late: int = 0) -> None:
        self._pending.insert(run, late)

    def insert_by_session(self: CausalSorter, run: Any, arrived_us: int, late: int = 0) -> None:
        session = self.sessions.get(run.process)
        if session is not None:
            session.floor = BEFORE_ALL
        real(self, run, arrived_us, late)

    real = CausalSorter.insert
    return [
        (WindowSorter, "judge", judge),
        (WindowSorter, "insert", insert_by_clock),
        (CausalSorter, "judge", judge),
        (CausalSorter, "insert", insert_by_session),
    ]


def late_ones_are_dropped() -> Sequence[Patch]:
    def late_move(partition: Partition, record: Sent, batch: Batch, stamps: Stamping) -> PendingRecord:
        moved = real(partition, record, batch, stamps)
        return PendingRecord(Expired(getattr(moved.record, "runs", []), "retention", record.sent_ms))

    real = stamping.late_move
    return [(sending, "late_move", late_move)]


def windows_end_early() -> Sequence[Patch]:
    def due_us(self: WindowSorter) -> int | None:
        head_us = self._pending.head_us()
        return None if head_us is None else head_us + self.window_us // 4

    def due_through(self: WindowSorter, now: ClockInterval, most: int | None = None) -> int | None:
        due = due_us(self)
        return None if due is None or due > now.earliest_us else now.earliest_us - self.window_us // 4

    return [(WindowSorter, "due_us", due_us), (WindowSorter, "due_through", due_through)]


def late_ones_wait_their_turn() -> Sequence[Patch]:
    def sent(self: LateHeads, first: int, count: int, stamp_us: int, *, late: bool) -> None:
        real(self, first, count, stamp_us, late=False)

    real = LateHeads.sent
    return [(LateHeads, "sent", sent)]


def snapshots_lose_the_order() -> Sequence[Patch]:
    def load(self: FifoGroups, number: int, sequences: Iterable[int]) -> None:
        real(self, number, sorted(sequences))

    real = FifoGroups.load
    return [(FifoGroups, "load", load)]


# -- the log -------------------------------------------------------------------------------------------------


def reads_past_the_committed_end() -> Sequence[Patch]:
    def put(
        self: Outbox, position: int, connection: int, request_id: int, answer: Any, *rest: Any, **more: Any
    ) -> None:
        real(self, position, connection, request_id, answer, *rest, **more)
        if isinstance(answer, LogSlice):
            early = self._waiting.pop()
            self._let_leave(connection, early.form)
            if early.body_bytes:
                self._count_out(connection, early.body_bytes)

    real = Outbox.put
    return [(Outbox, "put", put)]


def slices_begin_with_their_batch() -> Sequence[Patch]:
    def slices(request: Any, runs: Any, entries: Any) -> Any:
        heads, body = real(request, runs, entries)
        if heads and runs[0].first < heads[0].first:
            batch = Batch(entries[0][1])
            low = heads[0].first - runs[0].first - 1
            piece = b"".join(batch.slice(low, low + heads[0].count))
            heads[0] = type(heads[0])(heads[0].first, heads[0].count, heads[0].sent_ms, len(piece))
            return heads[:1], [piece]
        return heads, body

    real = log_reading._slices
    return [(log_reading, "_slices", slices)]


def logs_are_cut_early() -> Sequence[Patch]:
    def end_of_age(self: LogIndex, cutoff_ms: int, most: int) -> int:
        return by_age(self, cutoff_ms + 1_000, most)

    def end_of_bytes(self: LogIndex, keep_bytes: int, most: int) -> int:
        return by_bytes(self, keep_bytes // 2, most)

    by_age, by_bytes = LogIndex.end_of_age, LogIndex.end_of_bytes
    return [(LogIndex, "end_of_age", end_of_age), (LogIndex, "end_of_bytes", end_of_bytes)]


def stale_members_commit() -> Sequence[Patch]:
    def check_member(partition: Partition, name: str, member: str, generation: int) -> ReaderGroup:
        group = partition.readers.get(name)
        if group is not None and member in group.members:
            return group
        return real(partition, name, member, generation)

    real = log_groups.check_member
    return [(log_groups, "check_member", check_member)]


def forget_offsets(partition: Partition) -> None:
    for name in partition.readers.names():
        group = partition.readers.get(name)
        if group is not None:
            group.offset = 1


def ranges_end_with_the_answer() -> Sequence[Patch]:
    def arrived(self: ReadingAhead, read: RangeRead, found: ReadAnswer) -> list[Effect]:
        if read.stop is not None and read.start < found.next < read.stop:
            read.stop = found.next
        return real(self, read, found)

    real = ReadingAhead.arrived
    return [(ReadingAhead, "arrived", arrived)]

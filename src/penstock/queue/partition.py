"""A partition of a queue: its state, and `apply`, the only method that changes it.

`apply` takes a record from the log and decides nothing: it uses no clock, makes no choice and raises no error. The same
records applied to the same state always give the same state. Decisions are in `decisions/`, snapshots in `snapshot/`.
"""

from __future__ import annotations

from typing import assert_never

from penstock.model import records
from penstock.model.batch import DEDUPLICATION, DELAYS, GROUPS, PRIORITIES, STAMPS, TTLS, Batch
from penstock.model.epoch_numbers import of_record
from penstock.model.number_gaps import NumberGaps
from penstock.model.run_set import RunSet
from penstock.model.runs import Runs, count_of, normalized
from penstock.model.settings import QueueSettings
from penstock.ordering.commit_wait import CommitWait
from penstock.queue.decisions.number_skips import leave_out
from penstock.queue.lifecycle import Lifecycle, lifecycle_for
from penstock.queue.log.index import LogIndex
from penstock.queue.log.reader_groups import ReaderGroups
from penstock.queue.ready.groups import FifoGroups, GroupNames
from penstock.queue.ready.lanes import Lanes
from penstock.queue.ready.late_heads import LateHeads
from penstock.queue.ready.sorted_order import SortedOrder, let_out
from penstock.queue.state import states
from penstock.queue.state.attempts import AttemptTable
from penstock.queue.state.deduplication import DeduplicationWindow, OriginTable
from penstock.queue.state.leases import LeaseTable
from penstock.queue.state.outgoing_moves import OutgoingMoves
from penstock.queue.state.producers import ProducerTable
from penstock.queue.state.purging import goes_at_once, purge_all
from penstock.queue.state.sent_times import SentTimes
from penstock.queue.state.state_column import begin_times_to_live, state_column
from penstock.queue.state.table import MessageTable
from penstock.queue.state.timers import SlotTimers
from penstock.queue.state.timers_over import end_delays, end_times_to_live, expire_soon
from penstock.queue.state.totals import Totals
from penstock.replication.primary_secondary.core.epochs import EpochHistory

_READY, _DELAYED, _HELD = bytes([states.READY]), bytes([states.DELAYED]), bytes([states.HELD])


class Partition:
    """The state of one partition of one incarnation of a queue."""

    def __init__(self, partition_id: int, name: str, settings: QueueSettings, created_ms: int) -> None:
        self.partition_id = partition_id
        self.name = name
        self.settings = settings
        self.created_ms = created_ms
        self.index = 0
        """Records applied so far: the partition's place in its log."""
        self.last_sent_ms = 0
        self.table = MessageTable()
        self.leases = LeaseTable()
        self.attempts = AttemptTable()
        self.delays = SlotTimers()
        self.expiries = SlotTimers()
        self.sent_times = SentTimes()
        self.window = DeduplicationWindow()
        self.producers = ProducerTable()
        self.origins = OriginTable()
        self.groups = GroupNames()
        self.commit_wait = CommitWait()
        """The last stamp that the server made."""
        self.sorting = SortedOrder(settings) if settings.sorted else None
        self.late_heads: LateHeads | None = None
        """On a best-effort queue, since the first batch with stamps."""
        self.order = self.new_order()
        self.moves = OutgoingMoves()
        self.overdue = RunSet()
        """Moving messages whose time to live has ended; they expire if they come back."""
        self.gaps = NumberGaps()
        """Numbers that no message has."""
        self.log = LogIndex(self.gaps) if settings.has_log else None
        self.readers = ReaderGroups()
        self.epochs = EpochHistory()
        """Which primary wrote which records; empty outside of a cluster."""
        self.totals = Totals()
        self.discarded: list[object] = []
        """Tables that the last purge replaced; they are taken from here and freed in steps."""
        self.lifecycle: Lifecycle | None = None
        """Since the queue was first followed: what became of its messages."""
        self.lifecycle = lifecycle_for(self, settings.lifecycle, created_ms)

    @property
    def watermark_us(self) -> int:
        """On a queue ordered by the clock: the last time that a stamp was given, or let out; else 0."""
        if self.settings.ordering != "clock":
            return 0
        return self.commit_wait.last_us if self.sorting is None else self.sorting.watermark_us

    def new_order(self) -> Lanes | FifoGroups:
        """The ready order that the settings ask for, empty."""
        if not self.settings.strict:
            return Lanes(self.table)
        return FifoGroups(self.table, exclusive=not self.settings.fifo)

    def apply(self, record: records.QueueRecord, batch: Batch | None = None, position: int = 0) -> None:
        """Makes the state what the record says."""
        self.index += 1
        if self.lifecycle is not None:
            self.lifecycle.observe(self, record, batch)
        match record:
            case records.Sent():
                assert batch is not None
                self._sent(record, batch, position)
            case records.Leased():
                self.table.lease(record.runs, record.lease)
                self.leases.add(record.lease, record.runs, record.at_ms, record.until_ms)
                if self.attempts:
                    self.attempts.forget(record.at_ms)
                if record.attempt:
                    self.attempts.add(record.attempt, record.lease, count_of(record.runs), record.at_ms)
                self.order.leased(record.runs)
                if self.late_heads is not None:
                    self.late_heads.leased(record.runs)
            case records.Deleted():
                self.leases.remove(record.lease, record.runs)
                self.totals.deleted += self._mark_gone(record.runs)
            case records.Released():
                self._released(record)
            case records.Extended():
                self.leases.extend(record.lease, record.runs, record.until_ms)
            case records.Resumed():
                self.table.move(record.runs, states.LEASED)
                self.table.note_lease(record.runs, record.lease)
                self.order.went_out(record.runs)
                self.leases.resume(record.lease, record.runs, record.at_ms, record.until_ms)
                self.attempts.forget_lease(record.lease)
            case records.Matured():
                self._ready(record.runs)
                end_delays(self, record)
            case records.Expired():
                if record.reason == "ttl":
                    end_times_to_live(self, record.runs, self.expiries.take_due(record.at_ms), record.at_ms)
                self._expired(record.runs)
            case records.Dropped():
                self.totals.dropped += self._end(record.runs)
            case records.MoveStarted():
                if record.reason == "expired":
                    end_times_to_live(self, record.runs, self.expiries.take_due(record.at_ms), record.at_ms)
                self._move_started(record)
            case records.SpentMoved():
                self._released(record.released)
                self._move_started(record.started)
            case records.TimersEnded():
                self._timers_ended(record)
            case records.MoveFinished():
                self.totals.dead_lettered += self._end_moves(record.runs)
                self._end(record.runs)
            case records.MoveAbandoned():
                expire_soon(self, self.overdue.among(normalized(record.runs)), record.at_ms)
                self._end_moves(record.runs)
                self._ready(record.runs)
                self.sent_times.look_again()
            case records.OriginsForgotten():
                self.origins.forget(record.source_id, record.runs, (record.epoch, record.number))
                if record.ended:
                    self.origins.end(record.source_id)
            case records.Purged():
                self._purged(record)
            case records.SettingsChanged():
                self.settings, self.window.known_from = record.settings, self.table.next
                self.lifecycle = lifecycle_for(self, record.settings.lifecycle, record.at_ms)
                if self.sorting is not None:
                    self.sorting.configure(record.settings)
            case records.Sorted():
                assert self.sorting is not None
                self._let_out(self.sorting.emit_through(record.through))
            case records.Closed():
                self.commit_wait.observe(record.through_us)
                if self.sorting is not None:
                    self._let_out(self.sorting.close(record.through_us))
            case records.IdsClaimed() | records.IdsBarred():
                self.window.apply(record)
            case records.MessagesLost():
                self.totals.lost += record.messages
            case records.LogCut():
                assert self.log is not None
                self.log.cut(record.end)
            case records.OffsetCommitted() | records.GroupChanged() | records.GroupRemoved():
                self.readers.apply(record)
            case records.EpochBegan():
                if not self.epochs.last:  # the same on every replica, whenever it joined
                    self.created_ms = record.at_ms
                    self.lifecycle = None  # the settings that begin it are on record, and come next
                self.epochs.begin(record.epoch, self.index)
                self.leases.begin_epoch(record.epoch)
            case records.DuplicatesSent():
                self.last_sent_ms = record.sent_ms
                self.producers.add(
                    record.producer, record.number, self.table.next, 0, record.sent_ms, record.originals
                )
            case records.NumbersSkipped():
                leave_out(record.first, self.table, self.log, self.gaps)
            case records.LifecycleReported() | records.LifecycleEnded():
                return  # which `lifecycle` has seen
            case _ as unreachable:
                assert_never(unreachable)

    def number_of_record(self, ahead: int = 1) -> int:
        """The number of what a record makes that is yet to come, by default the next: none of a lost log had it, none gets it again."""
        return of_record(self.epochs.last, self.index + ahead)

    # -- sent ------------------------------------------------------------------------------------------------

    def _sent(self, record: records.Sent, batch: Batch, position: int) -> None:
        first, count, sent_ms = record.first, record.count, record.sent_ms
        columns = batch.columns
        moved_in = record.origin is not None
        self.last_sent_ms = sent_ms
        if record.stamp_us or columns & STAMPS:
            self._stamped(record, batch)
        if self.log is not None:
            self.log.append(count, position, len(batch.data), batch.message_bytes(), sent_ms)
            if not self.settings.has_queue:
                self.table.next += count
                self._remember(record, batch)
                return
        groups = self.groups.enter(batch.names(GROUPS) or ()) if columns & GROUPS else None
        delay_ms = 0 if moved_in else record.delay_ms
        if self.sent_times.add(sent_ms, first):
            self.sent_times.forget_before(self.table.first_living())
            self.sent_times.sweep(self.table.is_alive)
        strict = self.settings.strict
        sorting = self.sorting if not moved_in else None
        if sorting is not None:
            state_bytes = _HELD * count
        elif columns & DELAYS or (not strict and columns & (PRIORITIES | GROUPS)):
            state_bytes = state_column(record, batch, groups, delay_ms, self.delays, strict=strict)
        elif delay_ms:
            state_bytes = _DELAYED * count
            self.delays.add(sent_ms + delay_ms, (first, count))
        else:
            state_bytes = _READY * count
        self.table.append(state_bytes, batch.message_sizes(), batch.message_bytes(), position, groups)
        if not moved_in:
            if delay_ms or columns & DELAYS:
                self.delays.sweep(self.table.is_alive)
            if record.ttl_ms or columns & TTLS:
                begin_times_to_live(record, batch, self.expiries)
                self.expiries.sweep(self.table.is_alive)
        self._remember(record, batch)
        if sorting is not None:
            sorting.insert(record, batch)
        else:
            self.order.sent((first, count), groups)

    def _stamped(self, record: records.Sent, batch: Batch) -> None:
        """What the stamps of a queue are stored for."""
        settings = self.settings
        if self._by_server(record):
            self.commit_wait.observe(record.stamp_us)
        elif not settings.strict and settings.has_queue and record.origin is None:
            times = batch.integers(STAMPS)
            oldest_us = min(record.sent_ms * 1_000, record.stamp_us if times is None else min(times))
            self.know_stamps().sent(record.first, record.count, oldest_us, late=bool(record.late))
        self.totals.late += record.late

    def _by_server(self, record: records.Sent) -> bool:
        """Whether the stamp of a batch, if it has one, is the server's."""
        settings = self.settings
        return settings.server_stamped or (settings.sorted and not record.process and record.origin is None)

    def know_stamps(self) -> LateHeads:
        """Starts to remember the stamps of a best-effort queue."""
        if self.late_heads is None:
            assert isinstance(self.order, Lanes)
            self.late_heads = LateHeads(self.table, self.order.ahead)
        return self.late_heads

    def _let_out(self, runs: Runs) -> None:
        assert isinstance(self.order, FifoGroups)
        let_out(self.table, self.order, runs)

    def _remember(self, record: records.Sent, batch: Batch) -> None:
        """Remembers what distinguishes a repeated send from a new one."""
        first, sent_ms = record.first, record.sent_ms
        if record.origin is None:
            if batch.columns & DEDUPLICATION:
                until_ms = sent_ms + self.settings.deduplication_window_ms
                self.window.add_batch(batch.names(DEDUPLICATION) or (), first, until_ms)
            self.window.forget(sent_ms, record.count)
        else:
            self.origins.add(record.origin.source_id, record.origin.runs)
        if record.producer:
            stamp_us = record.stamp_us if record.stamp_us and self._by_server(record) else 0
            self.producers.add(
                record.producer, record.number, first, record.count, sent_ms, record.duplicates, stamp_us
            )
        self.totals.sent += record.count

    # -- everything after ------------------------------------------------------------------------------------

    def _released(self, record: records.Released) -> None:
        lease = self.leases.get(record.lease)
        at_ms = lease.at_ms if lease is not None else record.at_ms
        self.leases.remove(record.lease, record.runs)
        if record.reason == "unreceived":
            self.table.uncount(record.runs)
            self.attempts.forget_lease(record.lease)
        else:
            if self.attempts and record.reason == "lease-ended":
                self.attempts.lease_ended(record.lease, count_of(record.runs))
            self.table.remember_first_received(record.runs, at_ms)
            self.totals.redelivered += count_of(record.runs)
        if record.ready_ms > record.at_ms:
            self.table.move(record.runs, states.DELAYED)
            for run in record.runs:
                self.delays.add(record.ready_ms, run)
            self.delays.sweep(self.table.is_alive)
            if self.settings.strict and not self.settings.fifo:
                for run in record.runs:  # messages that came back earlier waited for these
                    self.order.add(run)
        else:
            self._ready(record.runs)

    def _move_started(self, record: records.MoveStarted) -> None:
        self._leave_leases(record.runs)
        self.table.move(record.runs, states.MOVING)
        self.moves.start((record.target, record.reason), record.runs)
        if self.sorting is not None and record.late is not None:
            self.sorting.late_moving(record.runs, record.late)

    def _timers_ended(self, record: records.TimersEnded) -> None:
        if record.timers == "delay":
            self.delays.take_before(record.slot_ms, record.end)
            self._ready(record.runs)
            return
        taken = self.expiries.take_before(record.slot_ms, record.end)
        end_times_to_live(self, record.runs, taken, record.at_ms)
        if record.target and record.runs:
            self._move_started(records.MoveStarted(record.runs, record.target, "expired", record.at_ms))
        else:
            self._expired(record.runs)

    def _expired(self, runs: Runs) -> None:
        self._leave_leases(runs)
        if self.moves:  # what was on its way to a dead-letter queue that is gone
            self._end_moves(runs)
        self.totals.expired += self._end(runs)

    def _ready(self, runs: Runs) -> None:
        self.table.move(runs, states.READY)
        for run in runs:
            self.order.add(run)

    def _leave_leases(self, runs: Runs) -> None:
        """Takes messages that end for another reason out of the leases that hold them."""
        if not self.table.counts[states.LEASED]:
            return
        leased = self.table.among(states.RUNS_IN[states.LEASED], runs)
        self.leases.remove_from(self.table.leases_of(leased))

    def _end_moves(self, runs: Runs) -> int:
        self.overdue.remove(normalized(runs))
        return self.moves.end(runs)

    def _end(self, runs: Runs) -> int:
        """Like `_bury`, for messages that end without a delete: there may be late ones among them."""
        if self.sorting is not None and self.sorting.late:
            self.sorting.late_gone(runs)
        return self._mark_gone(runs)

    def _mark_gone(self, runs: Runs) -> int:
        """The messages of the runs, all living, are gone."""
        if not self.groups and not self.settings.strict:
            return self.table.mark_gone(runs)
        departures = self.table.count_groups(runs)
        gone = self.table.mark_gone(runs)
        self.groups.leave(departures)
        self.order.departed(departures)
        return gone

    def _purged(self, record: records.Purged) -> None:
        if self.log is not None:
            cut = self.log.cut(record.end)
            self.totals.purged += 0 if self.settings.has_queue else cut
        if record.end >= self.table.next and goes_at_once(self):
            purged, self.discarded = purge_all(self)
            self.totals.purged += purged
            return
        runs = self.table.runs_in(states.RUNS_EXPIRABLE, 1, record.end, self.table.messages)
        if record.end >= self.table.next:
            self.leases.clear()
        else:
            self._leave_leases(runs)
        self.totals.purged += self._end(runs)
        self.window.clear(self.table.next)
        self.attempts.clear()
        if record.end >= self.table.next:
            self.delays.clear()
            if self.sorting is not None:
                self.sorting.clear()
            if not self.moves:
                self.expiries.clear()

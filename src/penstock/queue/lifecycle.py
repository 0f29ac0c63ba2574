"""The rows of the lifecycle log of a partition, made while records are applied.

Rows follow from records alone, so every replica and every replay makes the same rows under the same numbers. Rows that the
log does not have yet wait here; a `LifecycleReported` record says which rows the log has. If too many wait, the oldest are
dropped, the same ones on every replica. Their numbers are missing in the log, and they are counted.

A partition whose queue never had a lifecycle log has no `Lifecycle`. If the log was switched off, the `Lifecycle` only
keeps its numbers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Protocol

from penstock.columnar.lifecycle import Change
from penstock.model import limits, records
from penstock.model.batch import DELAYS, GROUPS, UNSET, Batch
from penstock.model.move_target import target_of
from penstock.model.number_gaps import NumberGaps
from penstock.model.origin import Origin
from penstock.model.runs import Run, Runs
from penstock.model.settings import QueueSettings
from penstock.queue.lifecycle_row import LifecycleRow
from penstock.queue.log.index import LogIndex
from penstock.queue.ready.groups import GroupNames
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS
from penstock.queue.state.outgoing_moves import OutgoingMoves
from penstock.queue.state.table import MessageTable

Named = tuple[int, int, str | None]
"""(first, count, group) of messages that are there."""


class ObservedPartition(Protocol):
    """What is looked at of a partition, before a record is applied to it."""

    index: int
    settings: QueueSettings
    table: MessageTable
    groups: GroupNames
    moves: OutgoingMoves
    log: LogIndex | None
    lifecycle: Lifecycle | None


class Lifecycle:
    """The rows of one partition that wait to be reported, and the number of the next row."""

    __slots__ = ("dropped", "ended", "following", "gaps", "next", "waiting")

    def __init__(self) -> None:
        self.following = False
        """Whether records make rows now."""
        self.ended = False
        """Whether the queue is deleted, and all rows are made that ever will be."""
        self.next = 1
        """The number of the next row. Numbers continue when the lifecycle log is switched on again."""
        self.dropped = 0
        """Rows that were never reported, because too many waited."""
        self.waiting: deque[LifecycleRow] = deque()
        self.gaps = NumberGaps()
        """Numbers that no row has, among those of the rows that wait."""

    @property
    def first(self) -> int:
        """The number of the first row that waits."""
        waiting = len(self.waiting)
        return self.gaps.back(1, self.next, waiting) if self.gaps and waiting else self.next - waiting

    # -- records ---------------------------------------------------------------------------------------------

    def observe(self, partition: ObservedPartition, record: records.QueueRecord, batch: Batch | None) -> None:
        """Makes the rows of a record that is about to be applied to the partition."""
        if isinstance(record, records.LifecycleReported):
            self._reported(record.through)
        elif isinstance(record, records.NumbersSkipped):
            if record.first_row > self.next:
                self._renumber(partition.index, record)
        elif self.following:
            before = len(self.waiting)
            self._observe(partition, record, batch)
            self._count(len(self.waiting) - before)

    def _observe(
        self, partition: ObservedPartition, record: records.QueueRecord, batch: Batch | None
    ) -> None:
        index, add = partition.index, self._add
        match record:
            case records.Sent():
                assert batch is not None
                if record.origin is None:
                    self._sent(partition, record, batch)
                else:
                    self._arrived(partition, record, record.origin, batch)
            case records.Leased(lease, runs, at_ms, until_ms):
                for first, count in runs:
                    self.waiting.append(
                        LifecycleRow(
                            *(index, at_ms, Change.LEASED, first, count, lease, until_ms),
                            consumer=record.consumer or None,
                        )
                    )
            case records.Deleted(lease, runs, at_ms):
                add(index, at_ms, Change.DELETED, runs, lease)
            case records.Released(lease, runs, reason, at_ms, ready_ms):
                for first, count in runs:
                    self.waiting.append(
                        LifecycleRow(
                            *(index, at_ms, Change.RELEASED, first, count, lease, ready_ms, reason),
                            error=record.error or None,
                        )
                    )
            case records.Extended(lease, runs, at_ms, until_ms):
                add(index, at_ms, Change.EXTENDED, runs, lease, until_ms)
            case records.Resumed(lease, runs, at_ms, until_ms):
                add(index, at_ms, Change.RESUMED, runs, lease, until_ms)
            case records.Matured(runs, at_ms):
                add(index, at_ms, Change.MATURED, runs)
            case records.Expired(runs, cause, at_ms):
                add(index, at_ms, Change.EXPIRED, runs, reason=cause)
            case records.Dropped(runs, at_ms):
                add(index, at_ms, Change.DROPPED, runs)
            case records.MoveStarted():
                self._move_started(partition, record)
            case records.SpentMoved():
                self._observe(partition, record.released, None)
                self._observe(partition, record.started, None)
            case records.TimersEnded():
                self._observe(partition, record.effect, None)
            case records.MoveFinished(runs, at_ms):
                self._moved(partition, runs, at_ms, Change.MOVE_FINISHED)
            case records.MoveAbandoned(runs, at_ms):
                self._moved(partition, runs, at_ms, Change.MOVE_ABANDONED)
            case records.Purged(end, at_ms):
                add(index, at_ms, Change.PURGED, _before(partition, end))
            case records.LifecycleEnded(at_ms):
                left: list[Named] = [(*run, None) for run in _left(partition)]
                self._name_all(partition, at_ms, Change.QUEUE_DELETED, left)
                self.following, self.ended = False, True
            case records.LogCut(end, why, at_ms) if not partition.settings.has_queue:
                add(index, at_ms, Change.EXPIRED, _before(partition, end), reason=why)
            case _:  # the other records change no message
                return

    def _sent(self, partition: ObservedPartition, record: records.Sent, batch: Batch) -> None:
        index, at_ms, ordering = partition.index, record.sent_ms, partition.settings.ordering
        stamps = _stamps(partition.settings)
        if not batch.columns & (GROUPS | DELAYS):
            self.waiting.append(
                LifecycleRow(
                    *(index, at_ms, Change.SENT, record.first, record.count),
                    until_ms=at_ms + record.delay_ms if record.delay_ms else None,
                    ordering=ordering,
                    bytes=batch.message_bytes(),
                    stamps=stamps,
                )
            )
            return
        delays: Iterable[int] = batch.integers(DELAYS) or (UNSET,) * record.count
        waits = [record.delay_ms if delay == UNSET else delay for delay in delays]
        groups, sizes = _groups(batch), batch.message_sizes()
        for start, stop in _stretches(list(zip(groups, waits, strict=True))):
            self.waiting.append(
                LifecycleRow(
                    *(index, at_ms, Change.SENT, record.first + start, stop - start),
                    until_ms=at_ms + waits[start] if waits[start] else None,
                    group=groups[start],
                    ordering=ordering,
                    bytes=sum(sizes[start:stop]),
                    stamps=stamps,
                )
            )

    def _arrived(
        self, partition: ObservedPartition, record: records.Sent, origin: Origin, batch: Batch
    ) -> None:
        """One row for each stretch that was one in the source, too."""
        sources = [sequence for first, count in origin.runs for sequence in range(first, first + count)]
        groups, sizes = _groups(batch), batch.message_sizes()
        # a run that continues its neighbour has the same distance
        distances = [source - place for place, source in enumerate(sources)]
        for start, stop in _stretches(list(zip(groups, distances, strict=True))):
            self.waiting.append(
                LifecycleRow(
                    *(partition.index, record.sent_ms, Change.ARRIVED, record.first + start, stop - start),
                    reason=origin.reason,
                    group=groups[start],
                    ordering=partition.settings.ordering,
                    bytes=sum(sizes[start:stop]),
                    receives=max(origin.receive_counts[start:stop], default=0),
                    other_queue=origin.source,
                    other_partition_id=origin.source_id,
                    other_first=sources[start],
                    stamps=_stamps(partition.settings),
                )
            )

    def _move_started(self, partition: ObservedPartition, record: records.MoveStarted) -> None:
        for run in record.runs:
            self.waiting.append(
                LifecycleRow(
                    *(partition.index, record.at_ms, Change.MOVE_STARTED, *run),
                    reason=record.reason,
                    receives=max(partition.table.receive_counts(run), default=0),
                    other_queue=target_of(record.target).name,
                )
            )

    def _moved(self, partition: ObservedPartition, runs: Runs, at_ms: int, change: Change) -> None:
        for (target, reason), moving in partition.moves.items():
            for run in moving.among(runs):
                self.waiting.append(
                    LifecycleRow(
                        *(partition.index, at_ms, change, *run),
                        reason=reason,
                        receives=max(partition.table.receive_counts(run), default=0),
                        other_queue=target_of(target).name,
                    )
                )

    def _add(
        self,
        index: int,
        at_ms: int,
        change: Change,
        runs: Iterable[Run],
        lease: int | None = None,
        until_ms: int | None = None,
        reason: str | None = None,
    ) -> None:
        add = self.waiting.append
        for first, count in runs:
            add(LifecycleRow(index, at_ms, change, first, count, lease, until_ms, reason))

    def _renumber(self, index: int, record: records.NumbersSkipped) -> None:
        """Rows that were reported may be lost: their numbers are left out, and a row says so, whether the queue is followed or not."""
        self.waiting.append(LifecycleRow(index, record.at_ms, Change.RENUMBERED, self.next, 0))
        self.gaps.add(self.next, record.first_row)
        self.next = record.first_row
        self._count(1)

    def _count(self, made: int) -> None:
        self.next += made
        while len(self.waiting) > limits.LIFECYCLE_ROWS_WAITING:
            self.waiting.popleft()
            self.dropped += 1

    # -- beginning and ending --------------------------------------------------------------------------------

    def follow(self, partition: ObservedPartition, at_ms: int) -> None:
        """From now on records make rows; what is there already is said to stand."""
        self.following = True
        self._take_stock(partition, at_ms, Change.STOOD)

    def unfollow(self, partition: ObservedPartition, at_ms: int) -> None:
        """Records make no more rows; what is there now is said to be followed no more."""
        self._take_stock(partition, at_ms, Change.UNFOLLOWED)
        self.following = False

    def _take_stock(self, partition: ObservedPartition, at_ms: int, change: Change) -> None:
        """Rows for everything that lives, by group."""
        table = partition.table
        named: list[Named] = []
        if not partition.settings.has_queue:
            named += [(*run, None) for run in _before(partition, table.next)]
        living = table.runs_in(states.RUNS_LIVING, 1, table.next, table.messages) if table.messages else []
        for run in living:
            for chunk, start, stop in table.pieces(run):
                numbers = chunk.groups[start:stop] if chunk.groups is not None else bytes(stop - start)
                first = (chunk.number << CHUNK_BITS) + start
                for low, high in _stretches(numbers):
                    named.append((first + low, high - low, _text(partition.groups.name(numbers[low]))))
        before = len(self.waiting)
        self._name_all(partition, at_ms, change, named)
        self._count(len(self.waiting) - before)

    def _name_all(self, partition: ObservedPartition, at_ms: int, change: Change, named: list[Named]) -> None:
        """Rows for all that is there, each of which says where they begin and end: a reader may see some of them only.

        That nothing is there is a row too, unless it would be the very first: then no reader misses anything.
        """
        if not named and self.next > 1:
            named = [(partition.table.next, 0, None)]
        last = self.next + len(named) - 1
        for first, count, group in named:
            self.waiting.append(
                LifecycleRow(
                    *(partition.index, at_ms, change, first, count),
                    group=group,
                    ordering=partition.settings.ordering,
                    census_first=self.next,
                    census_last=last,
                )
            )

    # -- reporting -------------------------------------------------------------------------------------------

    def rows(self, through_index: int, most: int, most_characters: int) -> list[LifecycleRow]:
        """The first waiting rows that come from records up to that index, within bounds; at least one, if there is any.

        Their numbers are consecutive.
        """
        found: list[LifecycleRow] = []
        if self.gaps:
            first = self.first
            most = min(most, self.gaps.next_start(first, self.next) - first)
        for row in islice(self.waiting, most):
            most_characters -= row.text_characters
            if row.index > through_index or (found and most_characters < 0):
                break
            found.append(row)
        return found

    def _reported(self, through: int) -> None:
        if through >= self.next - 1:
            self.waiting.clear()
            self.gaps = NumberGaps()
            return
        for _ in range(self.gaps.messages(self.first, through + 1)):
            self.waiting.popleft()
        self.gaps.forget(self.first + 1, 0)


def lifecycle_for(partition: ObservedPartition, wanted: bool, at_ms: int) -> Lifecycle | None:
    """What the partition's lifecycle is after its settings said whether it is to be followed."""
    lifecycle = partition.lifecycle
    if wanted is (lifecycle is not None and lifecycle.following):
        return lifecycle
    lifecycle = lifecycle or Lifecycle()
    if wanted:
        lifecycle.follow(partition, at_ms)
    else:
        lifecycle.unfollow(partition, at_ms)
    return lifecycle


def _before(partition: ObservedPartition, end: int) -> Runs:
    """What is there before a number and not on its way elsewhere; of a queue that is only a log, what it retains."""
    log, table = partition.log, partition.table
    if log is not None and not partition.settings.has_queue:
        return log.gaps.runs(log.begin, min(end, log.next))
    return table.runs_in(states.RUNS_EXPIRABLE, 1, end, table.messages) if table.messages else []


def _left(partition: ObservedPartition) -> Runs:
    """All that goes with a deleted queue, in a cluster also what is still on its way elsewhere."""
    table = partition.table
    if partition.log is not None and not partition.settings.has_queue:
        return _before(partition, table.next)
    return table.runs_in(states.RUNS_LIVING, 1, table.next, table.messages) if table.messages else []


def _stamps(settings: QueueSettings) -> str | None:
    """By number or by stamp: of a queue ordered by time the order alone does not say it."""
    return settings.stamps if settings.ordering == "clock" else None


def _groups(batch: Batch) -> list[str | None]:
    names = batch.names(GROUPS) if batch.columns & GROUPS else None
    return [None] * batch.count if names is None else [_text(name) for name in names]


def _text(name: bytes) -> str | None:
    return name.decode("utf-8", "replace") if name else None


def _stretches(keys: Sequence[object]) -> Iterable[tuple[int, int]]:
    """(start, stop) of the longest stretches of equal keys."""
    start = 0
    for place in range(1, len(keys)):
        if keys[place] != keys[start]:
            yield start, place
            start = place
    if keys:
        yield start, len(keys)

"""Lost records: those that a primary wrote and that are not in the surviving log, by what they are about.

A failover of an `async` queue, and an unclean election, may lose the records after the point where the next primary's log
diverges. The observer has seen every record of every log. So it is known for each message, lease, purge, offset and
generation whether a record about it was lost.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from penstock.model import records
from penstock.model.batch import Batch
from penstock.model.records import Record, decode_record
from penstock.model.runs import Runs
from penstock.queue.partition import Partition
from penstock.routing.numbers import outward
from penstock.simulation.message_history import Kind
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.whereabouts import PartitionLog

Place = tuple[int, int]
"""(queue, sequence number as clients see it)."""

_SETTLES: dict[type, Kind] = {
    records.Deleted: "delete",
    records.Released: "release",
    records.Extended: "extend",
    records.Resumed: "extend",
}


@dataclass(slots=True, eq=False)
class LostRecords:
    """Of queues that may lose something."""

    sent: set[Place] = field(default_factory=set)
    """Messages that no record of the log that won has."""
    leases: set[tuple[int, int, int]] = field(default_factory=set)
    """(queue, ordinal of its partition, lease)."""
    settled: set[tuple[int, int, int, Kind]] = field(default_factory=set)
    """(queue, sequence number, lease, what was done)."""
    deleted_late: set[Place] = field(default_factory=set)
    """Messages that the log that won deletes with a receipt of a lease that was lost: no consumer had received them since."""
    ended: set[Place] = field(default_factory=set)
    """Messages of which a record was lost that had ended them, in any way."""
    moved: set[Place] = field(default_factory=set)
    """Messages of which it was lost that they left for another queue."""
    purges: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """By queue and ordinal of its partition: when."""
    purged: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """The same for purges in the surviving log."""
    purged_to: dict[tuple[int, int], int] = field(default_factory=dict)
    """By queue and ordinal: the end of the furthest purge that was lost."""
    cuts: dict[int, set[int]] = field(default_factory=dict)
    """By queue: where its log began after a cut."""
    generations: set[tuple[int, str, int]] = field(default_factory=set)
    """(queue, group of readers, generation)."""
    offsets: set[tuple[int, str, int]] = field(default_factory=set)
    """(queue, group of readers, offset)."""
    removed_groups: set[tuple[int, str]] = field(default_factory=set)
    watermarks: dict[int, list[range]] = field(default_factory=dict)
    """By queue: the watermarks that only a log had that lost. Each range begins behind the one at which the logs parted."""
    claims: set[tuple[int, bytes]] = field(default_factory=set)
    """(queue, deduplication id)."""
    returned: set[Place] = field(default_factory=set)
    """Messages of the log that won that a log before it did not have, and that were there before: an unclean election brought them back."""
    deletions_returned: set[tuple[int, int, int]] = field(default_factory=set)
    """(queue, sequence number, lease) of deletions that came back in the same way: the log before did not have them."""
    doubled: set[Place] = field(default_factory=set)
    """Numbers of which two messages may be known: a primary could not cut off one that was never committed."""
    queues: set[int] = field(default_factory=set)
    """All queues that lost anything."""

    def add(self, queue_id: int, ordinal: int, record: Record) -> None:
        """A record of a partition that is not in the log that won."""
        self.queues.add(queue_id)
        match record:
            case records.Sent():
                first = outward(ordinal, record.first)
                self.sent.update((queue_id, number) for number in range(first, first + record.count))
            case records.Leased():
                self.leases.add((queue_id, ordinal, record.lease))
            case records.Deleted() | records.Released() | records.Extended() | records.Resumed():
                kind = _SETTLES[type(record)]
                numbers = _numbers(ordinal, record.runs)
                self.settled.update((queue_id, number, record.lease, kind) for number in numbers)
                if kind == "delete":
                    self.ended.update((queue_id, number) for number in numbers)
            case records.Expired() | records.Dropped():
                self.ended.update((queue_id, number) for number in _numbers(ordinal, record.runs))
            case records.SpentMoved():
                self.add(queue_id, ordinal, record.released)
                self.add(queue_id, ordinal, record.started)
            case records.TimersEnded():
                self.add(queue_id, ordinal, record.effect)
            case records.MoveStarted() | records.MoveFinished():
                places = {(queue_id, number) for number in _numbers(ordinal, record.runs)}
                self.ended |= places
                self.moved |= places
            case records.Purged():
                self.purges.setdefault((queue_id, ordinal), []).append(record.at_ms)
                purged_to = self.purged_to.get((queue_id, ordinal), 0)
                self.purged_to[queue_id, ordinal] = max(record.end, purged_to)
            case records.LogCut():
                self.cuts.setdefault(queue_id, set()).add(record.end)
            case records.GroupChanged():
                self.generations.add((queue_id, record.group, record.generation))
            case records.OffsetCommitted():
                self.offsets.add((queue_id, record.group, record.offset))
            case records.GroupRemoved():
                self.removed_groups.add((queue_id, record.group))
            case records.IdsClaimed() | records.IdsBarred():
                self.claims.update((queue_id, identifier) for identifier in record.ids)
            case _:
                pass


def _numbers(ordinal: int, runs: Runs) -> list[int]:
    return [outward(ordinal, number) for first, count in runs for number in range(first, first + count)]


def lost_records(
    logs: Iterable[PartitionLog],
    seen: Iterable[AppendedRecord],
    loose: Collection[int],
    returned: Mapping[int, Sequence[range]] = MappingProxyType({}),
    uncut: Mapping[int, Sequence[range]] = MappingProxyType({}),
) -> LostRecords:
    """Of all records in any log, those of the queues in `loose` that the surviving logs do not have.

    `returned`: by partition, the numbers of records that came back. `uncut`: the numbers of messages that a primary could not cut off.
    """
    lost = LostRecords()
    winning = {log.partition: log for log in logs if log.queue_id in loose}
    kept = {id(record) for log in winning.values() for record in log.records}
    fell: dict[int, list[AppendedRecord]] = {}
    for record in seen:
        log = winning.get(record.partition)
        if log is not None and id(record) not in kept:
            lost.add(log.queue_id, log.ordinal, decode_record(record.head))
            fell.setdefault(record.partition, []).append(record)
    for log in winning.values():
        for again in uncut.get(log.partition, ()):
            lost.doubled.update((log.queue_id, outward(log.ordinal, number)) for number in again)
        if log.queue_id in lost.queues:
            _add_endings(log, lost)
            _add_returned(log, returned.get(log.partition, ()), lost)
            _add_watermarks(log, fell.get(log.partition, []), lost)
    return lost


def _add_watermarks(log: PartitionLog, fell: Sequence[AppendedRecord], lost: LostRecords) -> None:
    """Of a sorted queue: the surviving log continues from the watermark at the divergence, and from no lower one."""
    if not log.settings.sorted or log.settings.ordering != "clock":
        return  # there is none
    numbers = {record.number for record in fell}
    reached: dict[int, int] = {}
    for record in fell:
        told = decode_record(record.head)
        if isinstance(told, records.Sorted | records.Closed):
            parted = record.number
            while parted - 1 in numbers:
                parted -= 1
            through_us = told.through if isinstance(told, records.Sorted) else told.through_us
            reached[parted] = max(reached.get(parted, 0), through_us)
    if not reached:
        return
    partings = deque(sorted(reached.items()))
    state = Partition(log.partition, log.name, log.settings, 0)
    for written in log.records:
        while partings and partings[0][0] <= written.number:
            _add_span(lost, log.queue_id, state.watermark_us, partings.popleft()[1])
        change = decode_record(written.head)
        assert not isinstance(change, records.QueueCreated | records.QueueDeleted | records.QueueRemoved)
        batch = Batch(written.payload) if isinstance(change, records.Sent) else None
        try:
            state.apply(change, batch, written.position)
        except (LookupError, ValueError, AssertionError):  # `whereabouts` says so
            break
    for _, through_us in partings:
        _add_span(lost, log.queue_id, state.watermark_us, through_us)


def _add_span(lost: LostRecords, queue_id: int, parted_us: int, through_us: int) -> None:
    lost.watermarks.setdefault(queue_id, []).append(range(parted_us + 1, through_us + 1))


def _add_endings(log: PartitionLog, lost: LostRecords) -> None:
    for written in log.records:
        record = decode_record(written.head)
        if isinstance(record, records.Deleted) and (log.queue_id, log.ordinal, record.lease) in lost.leases:
            numbers = _numbers(log.ordinal, record.runs)
            lost.deleted_late.update((log.queue_id, number) for number in numbers)
        elif isinstance(record, records.Purged):
            lost.purged.setdefault((log.queue_id, log.ordinal), []).append(record.at_ms)


def _add_returned(log: PartitionLog, returned: Sequence[range], lost: LostRecords) -> None:
    for written in log.records:
        record = decode_record(written.head) if any(written.number in back for back in returned) else None
        if isinstance(record, records.Sent):
            numbers = _numbers(log.ordinal, [(record.first, record.count)])
            lost.returned.update((log.queue_id, number) for number in numbers)
        elif isinstance(record, records.Deleted):
            numbers = _numbers(log.ordinal, record.runs)
            lost.deletions_returned.update((log.queue_id, number, record.lease) for number in numbers)

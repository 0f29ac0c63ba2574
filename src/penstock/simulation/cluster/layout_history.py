"""I11: the layout's entries change according to their contracts, for every writer and delay.

The promise of managers: two may write at the same time, because a write may be carried out late. But each change applies
to the version of the entry for which it was decided. So the epochs of a partition rise one by one, each is given to one
life of one node, and is never withdrawn; and an id always means the same queue or partition. Settings of a partition
become those of its queue, not earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.cluster.layout.entries import (
    NEXT_ID,
    PARTITIONS,
    QUEUES,
    PartitionEntry,
    QueueEntry,
    decode_partition,
    decode_queue,
    partition_key,
    queue_key,
)
from penstock.cluster.layout.partition_settings import settings_of_partition
from penstock.model.settings import QueueSettings
from penstock.simulation.cluster.store_history import StoreHistory

_CARRIED = ("replicas", "min_in_sync")
"""These wait until there are as many replicas."""


def broken(history: StoreHistory) -> Iterator[str]:
    """The violations."""
    yield from _queues(history)
    for key in history.keys(PARTITIONS):
        yield from _partition(history, key)
    last = 0
    for change in history.of_key(NEXT_ID):
        count = int(change.value) if change.value is not None else 0
        if count <= last:
            yield f"the count of ids went from {last} to {count}"
        last = count


def _queues(history: StoreHistory) -> Iterator[str]:
    """A queue that is made again is another incarnation, and the one before it is deleted."""
    used: dict[int, str] = {}
    for key in history.keys(QUEUES):
        present: QueueEntry | None = None
        for change in history.of_key(key):
            if change.value is None:
                present = None
                continue
            entry = decode_queue(change.value)
            if present is not None and entry.queue_id != present.queue_id:
                if present.state != "deleting":
                    yield f"queue {entry.name!r} was {present.queue_id} and became {entry.queue_id}, without an end in between"
                yield from _unmarked(history, present, change.version)
            if present is None or entry.queue_id != present.queue_id:
                for number in (entry.queue_id, *entry.partitions):
                    if number in used:
                        yield f"id {number} was used for {used[number]} and then for queue {entry.name!r}"
                    used[number] = f"queue {entry.name!r}"
            present = entry


def _unmarked(history: StoreHistory, queue: QueueEntry, version: int) -> Iterator[str]:
    """Partitions that do not know yet that their queue is deleted, when another takes its place."""
    for number in queue.partitions:
        value = history.at(partition_key(number), version)
        if value is not None and not ((entry := decode_partition(value)).deleted or entry.retired):
            yield f"the name of queue {queue.name!r} was free before partition {number} was told of the end"


def _partition(history: StoreHistory, key: str) -> Iterator[str]:
    before: PartitionEntry | None = None
    has_gone = False
    known = 0
    for change in history.of_key(key):
        if change.value is None:
            before, has_gone = None, True
            continue
        entry = decode_partition(change.value)
        where = f"partition {entry.partition} at version {change.version}"
        if has_gone:
            yield f"{where}: it was taken away, and is there again"
        if before is not None:
            yield from (f"{where}: {what}" for what in _changed(before, entry))
            if entry.settings != before.settings:
                said = list(_said(history, entry, known, change.version))
                yield from (f"{where}: {what}" for what in _unasked(before, entry, said))
        known = change.version
        before, has_gone = entry, False


def _said(history: StoreHistory, entry: PartitionEntry, first: int, last: int) -> Iterator[QueueSettings]:
    """The settings of a partition's queue at these versions."""
    for value in history.during(queue_key(entry.queue), first, last):
        queue = decode_queue(value) if value is not None else None
        if queue is not None and queue.queue_id == entry.queue_id:
            yield settings_of_partition(queue.settings)


def _unasked(before: PartitionEntry, entry: PartitionEntry, said: Sequence[QueueSettings]) -> Iterator[str]:
    """Settings that became others than the queue had since the partition was last written: a change that was answered is
    undone by one that began before it.
    """
    for field in QueueSettings.__struct_fields__:
        became = getattr(entry.settings, field)
        if field in _CARRIED or became == getattr(before.settings, field):
            continue
        if said and all(getattr(settings, field) != became for settings in said):
            yield f"its {field} became {became!r}, and its queue says {getattr(said[-1], field)!r}"


def _changed(before: PartitionEntry, entry: PartitionEntry) -> Iterator[str]:
    led = (before.primary, before.primary_started_ms)
    leads = (entry.primary, entry.primary_started_ms)
    if (before.queue_id, before.ordinal) != (entry.queue_id, entry.ordinal):
        yield f"it was {before.ordinal} of queue {before.queue_id}, and is {entry.ordinal} of {entry.queue_id}"
    if entry.epoch not in (before.epoch, before.epoch + 1):
        yield f"epoch {entry.epoch} came after epoch {before.epoch}"
    if entry.epoch == before.epoch and leads != led and entry.primary is not None:
        yield f"epoch {entry.epoch} was {led}'s, and became {leads}'s"
    if before.retired and not entry.retired:
        yield "it was given up, and is held again"
    if entry.serving < before.serving or entry.serving > entry.epoch:
        yield f"it is served in epoch {entry.serving}, after {before.serving}, in epoch {entry.epoch}"

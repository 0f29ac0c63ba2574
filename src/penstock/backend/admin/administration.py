"""Administration of queues: create, alter, delete, list, describe."""

from __future__ import annotations

from bisect import bisect_right

from penstock.backend.admin.queue_making import make_queue
from penstock.backend.lifecycle.reports import end_lifecycle, rows_waiting
from penstock.backend.node.parts import NodeParts
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.queue_owner import is_owned
from penstock.model.records import QueueDeleted, QueueRemoved, SettingsChanged
from penstock.model.reserved_queues import check_may_alter, check_may_be, check_not_reserved
from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import (
    changed_settings,
    check_new,
    check_queue_name,
    check_settings,
    settings_difference,
)
from penstock.queue.decisions import move as moving
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.decisions.stamping import late_queue
from penstock.queue.partition import Partition
from penstock.queue.state import states
from penstock.wire.messages import (
    AlterQueue,
    Count,
    CreateQueue,
    DeleteQueue,
    Done,
    Failed,
    ListQueues,
    Purge,
    QueueDescription,
    QueueList,
    QueueStatistics,
)

_DEAD_LETTER_RETENTION_MS = 14 * limits.DAY_MS
_QUEUES_PER_PAGE = 1_000


def create_queue(parts: NodeParts, request: CreateQueue, now_ms: int) -> QueueDescription:
    """Makes the queue, and its dead-letter queue if that is missing; the same request again changes nothing."""
    _check_not_clustered(parts)
    check_queue_name(request.name)
    check_new(request.settings)
    check_settings(request.name, request.settings)
    check_may_be(request.name, request.settings)
    _check_alone(request.settings)
    if request.settings.sorted:
        check_queue_name(late_queue(request.name))
    existing = parts.catalogue.named(request.name)
    if existing is not None:
        differs = settings_difference(existing.settings, request.settings)
        if differs is not None:
            raise PenstockError(ErrorCode.QUEUE_EXISTS, _difference(existing, request.settings, differs))
        return describe_queue(parts, existing)
    if len(parts.catalogue.partitions) >= limits.QUEUES_PER_NODE:
        raise PenstockError(
            ErrorCode.LIMIT_REACHED, f"the node has {limits.QUEUES_PER_NODE} queues, its limit"
        )
    parts.logbook.check_room_for_send()
    _make_dead_letter_queue(parts, request.settings, now_ms)
    return describe_queue(parts, make_queue(parts, request.name, request.settings, now_ms))


def _check_not_clustered(parts: NodeParts) -> None:
    """Queues of a cluster are made, changed and deleted in its layout, which front ends do."""
    if not parts.model.makes_queues:
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            "this is a node of a cluster: ask a front end to make, change or delete queues",
        )


def _check_alone(settings: QueueSettings) -> None:
    """Partitions and replicas are for clusters; asked of a single server they would be promises it cannot keep."""
    least = settings.min_in_sync or 1
    if settings.partitions > 1 or settings.replicas > 1 or least > 1 or settings.replication != "sync":
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            "partitions, replicas and replication need a cluster (`penstock cluster up`); this is a single server",
        )


def _make_dead_letter_queue(parts: NodeParts, settings: QueueSettings, now_ms: int) -> None:
    target = settings.dead_letter_queue
    if target is not None and parts.catalogue.named(target) is None:
        make_queue(
            parts,
            target,
            QueueSettings(
                ordering="fifo" if settings.strict else "best-effort", retention_ms=_DEAD_LETTER_RETENTION_MS
            ),
            now_ms,
        )


def late_queue_of(parts: NodeParts, source: Partition, now_ms: int) -> Partition:
    """The queue for late messages; created when the first one arrives."""
    name = late_queue(source.name)
    existing = parts.catalogue.named(name)
    if existing is not None:
        return existing
    return make_queue(parts, name, QueueSettings(retention_ms=_DEAD_LETTER_RETENTION_MS), now_ms)


def _difference(existing: Partition, wanted: QueueSettings, setting: str) -> str:
    have, want = getattr(existing.settings, setting), getattr(wanted, setting)
    return f"queue {existing.name!r} exists with {setting} = {have!r}, not {want!r}; alter it, or use another name"


def alter_queue(parts: NodeParts, request: AlterQueue, now_ms: int) -> QueueDescription:
    """Changes settings of a queue, all or none. Its dead-letter queue is made where the request names it and it is missing:
    who changes something else has not been asked whether it may make queues."""
    _check_not_clustered(parts)
    check_may_alter(request.name, request.changes)
    partition = parts.catalogue.usable(parts.catalogue.find(request.name).partition_id)
    settings = changed_settings(partition.settings, dict(request.changes))
    check_settings(request.name, settings)
    check_may_be(request.name, settings)
    _check_alone(settings)
    if "dead_letter_queue" in request.changes:
        _make_dead_letter_queue(parts, settings, now_ms)
    if settings != partition.settings:
        parts.write(partition, [PendingRecord(SettingsChanged(settings, now_ms))])
    return describe_queue(parts, partition)


def delete_queue(parts: NodeParts, request: DeleteQueue, now_ms: int) -> Done:
    """The name is free at once. Delayed messages go to the dead-letter queue, if there is one; the rest is gone."""
    _check_not_clustered(parts)
    check_not_reserved(request.name, "deleted")
    delete_partition(parts, parts.catalogue.find(request.name, request.queue_id), now_ms)
    return Done()


def delete_partition(parts: NodeParts, partition: Partition, now_ms: int) -> None:
    """The queue no longer exists for clients, and is removed when its moves have ended (`backend/send/moves.py`).

    Nothing is written after the record that deletes it. So if the journal has no room, the queue is either unchanged, or
    deleted with all following work still to be done.

    After a move that stopped in its middle only this queue knows which messages arrived, and consumers may have deleted
    them. So its sources are told first: otherwise they would take all of the move back when they find no target. A damaged
    source is told when it is repaired, and the queue is not removed before (`backend/send/moves.py`).
    """
    partition_id = partition.partition_id
    settle_sources(parts, partition, now_ms)
    record = QueueDeleted(partition_id, now_ms)
    parts.logbook.write_catalogue(record)
    parts.catalogue.apply(record)
    for waiter in parts.leave_queue(partition_id):
        gone = Failed(ErrorCode.QUEUE_NOT_FOUND, f"queue {partition.name!r} was deleted")
        parts.answer(waiter.connection, waiter.request_id, gone)
    if partition_id in parts.catalogue.damage:
        parts.doomed.add(partition_id)
    parts.movers.add(partition_id)
    parts.movers |= parts.stalled_movers  # moves that waited for a damaged queue may continue now
    parts.stalled_movers.clear()


def settle_sources(parts: NodeParts, target: Partition, now_ms: int) -> bool:
    """Whether all queues know which of their messages have arrived in a deleted one; a damaged queue cannot be told."""
    partitions, damage = parts.catalogue.partitions, parts.catalogue.damage
    arrived = [(source_id, runs) for source_id, runs in target.origins if source_id in partitions]
    for source_id, runs in arrived:
        if source_id not in damage:
            source = partitions[source_id]
            parts.write(source, moving.finish_move(source, [*runs], now_ms))
    return not any(source_id in damage for source_id, _ in arrived)


def purge(parts: NodeParts, request: Purge, now_ms: int) -> Count:
    """Everything that is in the queue now is gone, from its log too."""
    partition = parts.catalogue.usable(request.queue_id)
    check_not_reserved(partition.name, "purged")
    return Count(parts.carry_out(partition, settling.purge(partition, now_ms)))


def remove_queue(parts: NodeParts, partition: Partition, now_ms: int) -> None:
    """Nothing of a deleted queue is left; its files are removed as soon as that is on disk.

    If more rows about it wait than one report can hold, it still exists afterwards, and this must be called again.
    """
    if not end_lifecycle(parts, partition, now_ms):
        return
    record = QueueRemoved(partition.partition_id, now_ms)
    parts.logbook.write_catalogue(record)
    parts.catalogue.apply(record)
    parts.timed.add(partition.partition_id)  # which reports that it is gone
    parts.movers.discard(partition.partition_id)
    parts.doomed.discard(partition.partition_id)
    parts.store.drop_partition(partition.partition_id)
    parts.freeing.add(partition)
    # messages that waited until this one is repaired do not wait any more
    parts.movers |= parts.stalled_movers
    parts.stalled_movers.clear()


def list_queues(parts: NodeParts, request: ListQueues) -> QueueList:
    """A page of queues by name."""
    prefix, owners = request.prefix, request.owners
    names = sorted(
        name for name in parts.catalogue.names if name.startswith(prefix) and is_owned(name, owners)
    )
    start = bisect_right(names, request.after) if request.after else 0
    limit = max(1, min(request.limit, _QUEUES_PER_PAGE))
    page = names[start : start + limit]
    queues = [describe_queue(parts, parts.catalogue.find(name)) for name in page]
    return QueueList(queues, start + limit < len(names))


def _oldest_sent_ms(partition: Partition) -> int | None:
    table = partition.table
    if partition.log is not None and not partition.settings.has_queue:
        return partition.log.oldest_ms()
    oldest = table.runs_in(states.RUNS_LIVING, table.first_living(), table.next, 1) if table.messages else []
    return partition.sent_times.sent_ms(oldest[0][0]) if oldest else None


def describe_queue(parts: NodeParts, partition: Partition) -> QueueDescription:
    """Describes a queue."""
    table, totals = partition.table, partition.totals
    log = partition.log
    files, size = parts.store.segment_sizes(partition.partition_id)
    statistics = QueueStatistics(
        ready=table.counts[states.READY],
        leased=table.counts[states.LEASED],
        delayed=table.counts[states.DELAYED],
        moving=table.counts[states.MOVING],
        bytes=table.bytes,
        next_sequence=table.next,
        oldest_sent_ms=_oldest_sent_ms(partition),
        waiting_receivers=parts.waiting.count(partition.partition_id),
        sent_total=totals.sent,
        deleted_total=totals.deleted,
        redelivered_total=totals.redelivered,
        expired_total=totals.expired,
        dead_lettered_total=totals.dead_lettered,
        dropped_total=totals.dropped,
        purged_total=totals.purged,
        segment_files=files,
        segment_bytes=size,
        memory_bytes=table.memory_bytes() + (log.memory_bytes() if log is not None else 0),
        held=table.counts[states.HELD],
        late_total=totals.late,
        watermark_us=partition.watermark_us,
        log_begin=log.begin if log is not None else 0,
        log_messages=log.messages if log is not None else 0,
        log_bytes=log.bytes if log is not None else 0,
        log_groups=len(partition.readers),
        lifecycle_waiting=rows_waiting(partition),
        lifecycle_dropped_total=partition.lifecycle.dropped if partition.lifecycle is not None else 0,
        lost_total=totals.lost,
    )
    return QueueDescription(
        partition.partition_id,
        partition.name,
        partition.settings,
        partition.created_ms,
        statistics,
        parts.catalogue.damage.get(partition.partition_id),
        parts.model.describe(partition.partition_id),
    )

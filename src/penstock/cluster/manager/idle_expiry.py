"""Deletes idle queues: the protocol between primaries and the manager before a queue is deleted.

A primary that finds its partition idle writes that, and continues to serve. When all partitions of a queue are idle, the
manager writes into the queue that it expires, and then asks the primaries to close theirs. Each checks again: if the
partition was used meanwhile, it withdraws its report; otherwise it refuses all clients and writes that it is closed. When
all are closed, the queue is deleted, on condition that its entry still says that it expires.

No queue is deleted that was used: no primary serves a closed partition, also after a failover, until the manager opens it.
The manager opens it only after the queue's entry says that it does not expire any more. So a process that decides to
delete the queue by an older entry finds another version. A request for a closed partition counts as a use, and waits until
the partition is open again or deleted.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.changes import Change, change_partition
from penstock.cluster.layout.entries import PartitionEntry, QueueEntry, queue_key
from penstock.cluster.layout.view import ClusterView, Seen


def primary_says(entry: PartitionEntry, *, idle: bool) -> PartitionEntry:
    """The entry as the primary that leads its epoch wants it."""
    if not idle:
        return msgspec.structs.replace(entry, idle=0) if entry.idle else entry
    if entry.idle != entry.epoch:
        return msgspec.structs.replace(entry, idle=entry.epoch)
    if entry.expiry == "asked":
        return msgspec.structs.replace(entry, expiry="closed")
    return entry


def expire_idle(view: ClusterView) -> list[Change]:
    """The manager's changes for idle queues."""
    changes: list[Change] = []
    for seen in view.queues.values():
        queue = seen.entry
        if queue.state == "ready" and (queue.expiring or queue.settings.idle_expiry_ms is not None):
            changes += _expire(view, seen)
    for partition in view.partitions.values():
        if partition.entry.expiry and not partition.entry.retired:
            changes += _open(view, partition)
    return changes


def _expire(view: ClusterView, seen: Seen[QueueEntry]) -> list[Change]:
    queue = seen.entry
    partitions = [view.partitions.get(partition) for partition in queue.partitions]
    known = [partition for partition in partitions if partition is not None]
    idle = len(known) == len(partitions) and all(_is_idle(partition.entry) for partition in known)
    if not queue.expiring:
        if not idle or any(partition.entry.expiry for partition in known):
            return []
        reason = f"the queue {queue.name} was unused for {_seconds(queue)} s, its idle expiry"
        return [_change(seen, msgspec.structs.replace(queue, expiring=True), reason)]
    if not idle or queue.settings.idle_expiry_ms is None:
        reason = (
            f"the queue {queue.name} stays: it is used after all, or a partition of it has another primary"
        )
        return [_change(seen, msgspec.structs.replace(queue, expiring=False), reason)]
    if all(partition.entry.expiry == "closed" for partition in known):
        reason = f"the queue {queue.name} is deleted: it was unused for {_seconds(queue)} s, its idle expiry"
        return [_change(seen, msgspec.structs.replace(queue, state="deleting"), reason)]
    return [
        change_partition(
            partition.version,
            msgspec.structs.replace(
                partition.entry, expiry="asked", reason=f"the queue {queue.name} expires if it is idle still"
            ),
        )
        for partition in known
        if not partition.entry.expiry
    ]


def _open(view: ClusterView, seen: Seen[PartitionEntry]) -> list[Change]:
    """Takes back that a partition is to be closed, where its queue does not expire any more."""
    entry = seen.entry
    queue = view.queue_of(entry)
    if queue is None or queue.expiring or queue.state != "ready":
        return []
    reason = f"the queue {entry.queue} does not expire"
    return [change_partition(seen.version, msgspec.structs.replace(entry, expiry="", idle=0, reason=reason))]


def _is_idle(entry: PartitionEntry) -> bool:
    return entry.primary is not None and entry.idle == entry.epoch == entry.serving


def _seconds(queue: QueueEntry) -> str:
    return f"{(queue.settings.idle_expiry_ms or 0) / 1000:g}"


def _change(seen: Seen[QueueEntry], entry: QueueEntry, reason: str) -> Change:
    return Change(queue_key(entry.name), seen.version, entry, reason)

"""Deletes queues of a cluster: after the answer the queue no longer exists for clients, and its partitions are marked."""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.deletion import marked
from penstock.cluster.layout.entries import (
    QueueEntry,
    decode_partition,
    decode_queue,
    encode,
    partition_key,
    queue_key,
)
from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.model.reserved_queues import check_not_reserved
from penstock.routing.context import no_such_queue
from penstock.steps.step import Look, Put, Reply, Steps, Stored
from penstock.wire.messages import DeleteQueue, Done

ATTEMPTS = 20
LATE = ".late"
"""The suffix of the late queue's name."""


def delete(request: DeleteQueue) -> Steps[Reply]:
    """Deletes the queue for clients. Its moving messages arrive; the nodes drop the rest."""
    check_not_reserved(request.name, "deleted")
    yield from _check_not_needed(request.name)
    queue_id = request.queue_id
    for _ in range(ATTEMPTS):
        queue, version = yield from stored_queue(request.name)
        queue_id = queue_id or queue.queue_id
        if (
            queue.queue_id != queue_id
        ):  # it is deleted, and somebody has made another of its name, and relies on that
            raise no_such_queue(request.name)
        deleting = msgspec.structs.replace(queue, state="deleting")
        try:
            yield Put(queue_key(queue.name), encode(deleting), version)
        except VersionConflictError:
            continue
        try:
            yield from mark_partitions(deleting)
        except PenstockError:
            pass  # the queue is deleted; the manager marks the remaining partitions
        return Reply(Done())
    raise PenstockError(
        ErrorCode.OVERLOADED, f"too many requests change queue {request.name!r} at once; try again"
    )


def stored_queue(name: str) -> Steps[tuple[QueueEntry, int]]:
    """The queue that clients may use, and the version of its entry; raises where there is none."""
    stored: Stored = yield Look(queue_key(name))
    if stored.value is None or (queue := decode_queue(stored.value)).state != "ready":
        raise no_such_queue(name)
    return queue, stored.version


def mark_partitions(queue: QueueEntry) -> Steps[bool]:
    """Marks the partitions of a queue that is being deleted; False if one could not be marked.

    The manager would do this too, a moment later. In that moment delays would end, and messages whose delay has ended are
    deleted with their queue.
    """
    all_know = True
    for partition in queue.partitions:
        all_know &= yield from _mark(partition, abandoned=queue.abandoned)
    return all_know


def _mark(partition: int, *, abandoned: bool) -> Steps[bool]:
    key = partition_key(partition)
    for _ in range(ATTEMPTS):
        stored: Stored = yield Look(key)
        if stored.value is None:
            return True
        try:
            entry = decode_partition(stored.value)
        except msgspec.MsgspecError:
            return False  # a newer version wrote it, and can mark it
        if entry.deleted or entry.retired or (abandoned and entry.kept):
            return True
        try:
            yield Put(key, encode(marked(entry, abandoned=abandoned)), stored.version)
            return True
        except VersionConflictError:
            continue
    return False


def _check_not_needed(name: str) -> Steps[None]:
    """Late messages would be on their way for ever: no node makes their queue again."""
    if not name.endswith(LATE):
        return
    stored: Stored = yield Look(queue_key(name.removesuffix(LATE)))
    if stored.value is None:
        return
    queue = decode_queue(stored.value)
    if queue.state == "ready" and queue.settings.sorted:
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            f"queue {queue.name!r} sends late messages to {name!r}: delete {queue.name!r} first, "
            "or purge this one",
        )

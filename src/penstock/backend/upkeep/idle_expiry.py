"""Deletes queues that were unused for their `idle_expiry_ms`, with their messages.

In a cluster a node only reports that a partition is idle, and all partitions are asked again before the queue is deleted.
A use is to send to it, to receive or read from it, to settle a message, and to wait for messages; to describe or peek is
not. The deletion writes the same records as on request.
"""

from __future__ import annotations

import logging

from penstock.backend.admin.administration import delete_partition
from penstock.backend.node.parts import NodeParts
from penstock.model.errors import PenstockError
from penstock.queue.partition import Partition
from penstock.wire import messages

logger = logging.getLogger("penstock.backend")

_RETRY_MS = 1_000
_NO_USE = messages.Peek | messages.Purge | messages.Redrive | messages.FindOffset | messages.ListGroups
"""Requests that name a queue without using it."""


def note_use(parts: NodeParts, request: messages.Request, now_ms: int) -> None:
    """A request uses the queues that it names, unless it only looks."""
    if isinstance(request, messages.ReceiveAny):
        for queue in request.queues:
            parts.idle.used(queue.queue_id, now_ms)
    elif not isinstance(request, _NO_USE):
        partition_id = getattr(request, "queue_id", None)
        if partition_id is not None:
            parts.idle.used(partition_id, now_ms)


def note_departures(parts: NodeParts, now_ms: int) -> None:
    """Queues that lost their last waiter were in use until now."""
    for deserted in (parts.waiting.deserted, parts.readers.deserted):
        for partition_id in deserted:
            parts.idle.used(partition_id, now_ms)
        deserted.clear()


def delete_idle(parts: NodeParts, now_ms: int) -> None:
    """Checks the queues whose time may be over, and deletes those whose time is."""
    note_departures(parts, now_ms)
    for partition_id in parts.idle.take_due(now_ms):
        partition = parts.catalogue.partitions.get(partition_id)
        expiry_ms = partition.settings.idle_expiry_ms if partition is not None else None
        if partition is None or expiry_ms is None or partition_id in parts.catalogue.deleting:
            parts.idle.forget(partition_id)
            continue
        # A damaged queue is not deleted before an operator has seen it.
        awaited = parts.waiting.is_awaited(partition_id) or parts.readers.is_awaited(partition_id)
        if awaited or partition_id in parts.catalogue.damage:
            parts.idle.used(partition_id, now_ms)
        left_ms = parts.idle.left_ms(partition_id, expiry_ms)
        if left_ms > 0:
            parts.idle.look_again(partition_id, left_ms)
        elif not parts.model.makes_queues:  # it is not this node's to delete
            parts.idle.find(partition_id)
            parts.model.found_idle(partition_id)
        else:
            _delete(parts, partition, expiry_ms, now_ms)


def _delete(parts: NodeParts, partition: Partition, expiry_ms: int, now_ms: int) -> None:
    messages_left = partition.table.messages
    try:
        delete_partition(parts, partition, now_ms)
    except PenstockError:  # no room in the journal
        parts.idle.look_again(partition.partition_id, _RETRY_MS)
        return
    parts.idle.forget(partition.partition_id)
    logger.info(
        "deleted queue %(queue)r with %(messages)d messages: it was unused for its idle expiry "
        "of %(seconds)g s",
        {"queue": partition.name, "messages": messages_left, "seconds": expiry_ms / 1000},
    )

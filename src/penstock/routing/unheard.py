"""Queues that the map of a front end does not know: the store is read before they count as deleted.

Another front end may have created such a queue a moment ago. A queue that the store does not have is noted as deleted
(`ClusterMap.depart`). Only one request at a time reads the store for a queue, so many requests for a queue that does not
exist cost one read. Ids are easy to invent, also without any right: the number of requests that read the store, or wait for
a read, is bounded.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import (
    QueueEntry,
    decode_partition,
    first_partition,
    partition_key,
    queue_key,
)
from penstock.model.document import TooOldError
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.context import RoutingContext
from penstock.steps.step import PATIENCE_MS, Look, Steps, Stored, Until

LOOKS_AT_ONCE = 1_000
"""Each holds some seven kilobytes."""


def known(context: RoutingContext, queue_id: int) -> Steps[QueueEntry]:
    """The queue of an id; raises `queue-not-found` only where the store has none either."""
    if not context.map.has_heard_of(queue_id):
        yield from look_for(context, queue_id)
    return context.queue(queue_id)


def look_for(context: RoutingContext, queue_id: int) -> Steps[None]:
    """Returns when the map knows the queue, or that it is gone; raises an error that can be retried where the store cannot say."""
    if context.looks >= LOOKS_AT_ONCE:
        raise PenstockError(
            ErrorCode.METADATA_UNAVAILABLE,
            f"this front end looks for {context.looks} queues that it does not know already; try again",
        )
    context.looks += 1
    try:
        yield from _look_alone(context, queue_id)
    finally:
        context.looks -= 1


def _look_alone(context: RoutingContext, queue_id: int) -> Steps[None]:
    """Waits where another request is looking for the same queue."""
    looking = context.looking
    if queue_id in looking:
        yield Until(lambda: queue_id not in looking, PATIENCE_MS)
        if not context.map.has_heard_of(queue_id):
            raise PenstockError(
                ErrorCode.METADATA_UNAVAILABLE,
                f"this front end does not know a queue with id {queue_id}, and could not look it up; try again",
            )
        return
    looking.add(queue_id)
    try:
        yield from _look_for(context, queue_id)
    finally:
        looking.discard(queue_id)
        context.map.touch(partition_key(first_partition(queue_id)))  # those who wait look again


def _look_for(context: RoutingContext, queue_id: int) -> Steps[None]:
    stored: Stored = yield Look(partition_key(first_partition(queue_id)))
    name = _queue_of(stored)
    if name is not None:
        queue: Stored = yield Look(queue_key(name))
        if queue.value is not None and context.map.why_too_new(name) is not None:
            raise context.missing(name)
        if context.map.incarnation(queue_id) is not None:
            return
    context.map.depart(queue_id)


def _queue_of(stored: Stored) -> str | None:
    """The name of the queue that a partition belongs to; None: there is no such partition."""
    if stored.value is None:
        return None
    try:
        return decode_partition(stored.value).queue
    except TooOldError:
        raise
    except msgspec.DecodeError as error:
        message = f"the entry of a partition in the metadata store cannot be read: {error}"
        raise PenstockError(ErrorCode.METADATA_UNAVAILABLE, message) from None

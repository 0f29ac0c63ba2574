"""Routes a receive: to the partitions in turn, or to the first one that has messages.

A delivery is one lease of one partition. Partitions that probably have messages are asked one after the other. If none
has, all others are asked together, and wait together.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import QueueEntry
from penstock.model.errors import PenstockError
from penstock.routing import outward_answers
from penstock.routing.cluster_map import PartitionOfQueue
from penstock.routing.context import RoutingContext
from penstock.routing.unheard import known
from penstock.steps.asking import answer_to, expected, give_back, has_messages
from penstock.steps.step import PATIENCE_MS, Ask, AskFirst, Reply, Steps
from penstock.wire.messages import Delivery, Receive

NOTHING = Delivery(b"", 0, [])


def receive(context: RoutingContext, request: Receive) -> Steps[Reply]:
    """Leases messages of one partition to the receiver."""
    queue = yield from known(context, request.queue_id)
    count = len(queue.partitions)
    if count == 1:
        given, body = yield from answer_to(_ask(queue, 0, request), Delivery)
        return _reply(context, queue, 0, given, body)
    if request.max_leased is not None:
        request = msgspec.structs.replace(request, max_leased=max(1, request.max_leased // count))
    likely, others = context.spread.for_receive(queue, request.attempt)
    at_once = msgspec.structs.replace(request, wait_ms=0)
    served = context.spread.served(queue, request.attempt)
    silent: list[int] = []
    for ordinal in likely:
        try:
            given, body = yield from answer_to(_ask(queue, ordinal, at_once, patience_ms=0), Delivery)
        except PenstockError as error:
            if not error.retryable or ordinal == served:
                raise  # messages of another partition would be no answer to an attempt that was served by this one
            given, body = NOTHING, b""  # other consumers may get messages meanwhile
            silent.append(ordinal)
        context.spread.received(queue, ordinal, request.attempt, something=bool(given.batches))
        if given.batches:
            return _reply(context, queue, ordinal, given, body)
    waiting = [*others, *likely] if request.wait_ms else others
    if not waiting and len(silent) == len(likely):
        waiting = silent  # no partition said that it is empty: wait for those that cannot be asked now
    if not waiting:
        return Reply(NOTHING)
    asks = [_ask(queue, ordinal, request) for ordinal in waiting]
    first: tuple[int, Reply] | None = yield AskFirst(asks, has_messages)
    if first is None:
        return Reply(NOTHING)
    place, reply = first
    context.spread.received(queue, waiting[place], request.attempt, something=True)
    return _reply(context, queue, waiting[place], expected(reply, Delivery), reply.body)


def _ask(queue: QueueEntry, ordinal: int, request: Receive, patience_ms: int = PATIENCE_MS) -> Ask:
    partition = queue.partitions[ordinal]
    routed = msgspec.structs.replace(request, queue_id=partition)
    return Ask(routed, b"", partition, patience_ms, give_back)


def _reply(
    context: RoutingContext,
    queue: QueueEntry,
    ordinal: int,
    given: Delivery,
    body: bytes | bytearray | memoryview,
) -> Reply:
    if not given.batches:
        return Reply(NOTHING)
    return Reply(
        outward_answers.delivery(given, PartitionOfQueue(queue.queue_id, ordinal), context.map.home), body
    )

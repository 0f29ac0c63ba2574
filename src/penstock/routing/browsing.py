"""Routes requests for a queue as a whole: peek, purge, redrive.

Peek and redrive visit the partitions one after the other; the number to continue at contains the partition.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import QueueEntry
from penstock.routing import outward_answers
from penstock.routing.context import RoutingContext, partition_of
from penstock.routing.numbers import inward, inward_runs, outward
from penstock.steps.asking import answer_to, ask_all
from penstock.steps.step import Ask, Reply, Steps
from penstock.wire.messages import Count, DeliveredBatch, Peek, Peeked, Purge, Redrive, Redriven


def peek(context: RoutingContext, request: Peek) -> Steps[Reply]:
    """Messages from a number on, without leasing them."""
    queue = context.queue(request.queue_id)
    ordinal, start = inward(request.start)
    found: list[DeliveredBatch] = []
    bodies: list[bytes] = []
    left = request.max_messages
    while True:
        partition = partition_of(queue, ordinal)
        asked = msgspec.structs.replace(request, queue_id=partition, start=start, max_messages=left)
        peeked, body = yield from answer_to(Ask(asked, partition=partition), Peeked)
        found += outward_answers.batches(peeked.batches, ordinal, context.map.home)
        bodies.append(bytes(body))
        left -= sum(batch.count for batch in peeked.batches)
        following = _following(queue, ordinal, peeked.next)
        if left <= 0 or following is None or peeked.next is not None:
            return Reply(Peeked(found, following), b"".join(bodies))
        ordinal, start = inward(following)


def purge(context: RoutingContext, request: Purge) -> Steps[Reply]:
    """Everything that is in the queue now is gone."""
    queue = context.queue(request.queue_id)
    asks = [Ask(Purge(partition), partition=partition) for partition in queue.partitions]
    return Reply(Count(sum(count.messages for count in (yield from ask_all(asks, Count)))))


def redrive(context: RoutingContext, request: Redrive) -> Steps[Reply]:
    """Moves messages of one partition, and returns where to continue."""
    queue = context.queue(request.queue_id)
    ordinal, start = inward(request.start)
    by_partition = inward_runs(request.runs) if request.runs is not None else None
    if by_partition is not None:
        chosen = [place for place in sorted(by_partition) if place >= ordinal]
        if not chosen:
            return Reply(Redriven(0, None))
        if chosen[0] > ordinal:
            ordinal, start = chosen[0], 0
    partition = partition_of(queue, ordinal)
    runs = by_partition[ordinal] if by_partition is not None else None
    asked = msgspec.structs.replace(request, queue_id=partition, start=start, runs=runs)
    moved, _ = yield from answer_to(Ask(asked, partition=partition), Redriven)
    return Reply(Redriven(moved.messages, _following(queue, ordinal, moved.next)))


def _following(queue: QueueEntry, ordinal: int, following: int | None) -> int | None:
    """Where to continue: in the same partition, at the beginning of the next one, or nowhere."""
    if following is not None:
        return outward(ordinal, following)
    return outward(ordinal + 1, 0) if ordinal + 1 < len(queue.partitions) else None

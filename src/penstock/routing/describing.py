"""Routes questions about queues: one description from the answers of the partitions.

A partition that does not answer in time leaves a gap in the counts and a sentence about itself, not an error. A client
that only looks the queue up, to send to it, must not fail because one of its partitions is moving.
"""

from __future__ import annotations

from bisect import bisect_right

from penstock.cluster.layout.capacity import warning
from penstock.cluster.layout.entries import QueueEntry
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.queue_owner import is_owned
from penstock.routing.cluster_map import node_name
from penstock.routing.context import RoutingContext
from penstock.routing.descriptions import described
from penstock.steps.step import Ask, AskAll, Outcome, Reply, Steps
from penstock.wire.messages import DescribeQueue, ListQueues, QueueDescription, QueueList

QUEUES_PER_PAGE = 1_000

GLANCE_MS = 1_000
"""How long a request waits for a partition where an answer in part is better than a late one."""


def describe(context: RoutingContext, request: DescribeQueue) -> Steps[Reply]:
    """Describes a queue."""
    queue = yield from context.found(request.name)
    if request.queue_id not in (0, queue.queue_id):
        raise PenstockError(
            ErrorCode.QUEUE_NOT_FOUND, f"there is no queue {request.name!r} with id {request.queue_id}"
        )
    return Reply((yield from describe_entry(context, queue)))


def describe_entry(context: RoutingContext, queue: QueueEntry) -> Steps[QueueDescription]:
    """The same for a queue that is known."""
    outcomes: list[Outcome] = yield AskAll(describe_asks(context, queue))
    capacity = context.map.capacity.get(queue.name)
    return described(queue, _parts(queue, outcomes), warning(capacity) if capacity is not None else "")


def list_queues(context: RoutingContext, request: ListQueues) -> Steps[Reply]:
    """A page of queues by name."""
    queues = sorted(
        (
            queue
            for queue in context.map.queues()
            if queue.name.startswith(request.prefix) and is_owned(queue.name, request.owners)
        ),
        key=lambda queue: queue.name,
    )
    start = bisect_right(queues, request.after, key=lambda queue: queue.name) if request.after else 0
    limit = max(1, min(request.limit, QUEUES_PER_PAGE))
    page = queues[start : start + limit]
    outcomes: list[Outcome] = yield AskAll([ask for queue in page for ask in describe_asks(context, queue)])
    descriptions, place = [], 0
    for queue in page:
        mine = outcomes[place : place + len(queue.partitions)]
        place += len(mine)
        descriptions.append(described(queue, _parts(queue, mine)))
    return Reply(QueueList(descriptions, start + limit < len(queues)))


def describe_asks(context: RoutingContext, queue: QueueEntry) -> list[Ask]:
    """One question for every partition; it does not wait for a partition that is known to have no primary now.

    The name alone is ambiguous: a node may also hold a partition of a queue with the same name that was created at the
    same moment and given up.
    """
    return [
        Ask(
            DescribeQueue(node_name(queue.name, ordinal), partition),
            partition=partition,
            patience_ms=0 if context.map.is_orphaned(partition) else GLANCE_MS,
        )
        for ordinal, partition in enumerate(queue.partitions)
    ]


def _parts(queue: QueueEntry, outcomes: list[Outcome]) -> list[QueueDescription | str]:
    return [_part(partition, outcome) for partition, outcome in zip(queue.partitions, outcomes, strict=True)]


def _part(partition: int, outcome: Outcome) -> QueueDescription | str:
    if isinstance(outcome, PenstockError):
        return f"it does not answer: {outcome.message}"
    answer = outcome.answer
    if not isinstance(answer, QueueDescription) or answer.queue_id != partition:
        return "the node that leads it does not have it yet"
    return answer

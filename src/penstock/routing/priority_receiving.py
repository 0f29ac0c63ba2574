"""Routes a receive from several queues: each is asked for its share by weight, and an empty one leaves its share to the
others.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.cluster.layout.entries import QueueEntry
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing import outward_answers
from penstock.routing.cluster_map import PartitionOfQueue
from penstock.routing.context import RoutingContext
from penstock.routing.unheard import known
from penstock.steps.asking import expected, give_back, has_messages
from penstock.steps.step import PATIENCE_MS, Ask, AskAll, AskFirst, Outcome, Reply, Steps
from penstock.wire.messages import Delivery, GroupDelivery, QueueDelivery, Receive, ReceiveAny

ROUNDS = 3
"""How often what some left is offered to those that had more."""


class _Source:
    """A queue of the set and its request."""

    __slots__ = ("open", "queue", "weight")

    def __init__(self, queue: QueueEntry, weight: int) -> None:
        self.queue = queue
        self.weight = weight
        self.open = list(range(len(queue.partitions)))
        """Ordinals that may still have something."""


def receive_any(context: RoutingContext, request: ReceiveAny) -> Steps[Reply]:
    """Leases messages of several queues, one lease for each partition.

    If one of them fails permanently, the receiver gets the error, and messages of the others are ready again at once, as
    on a single node.
    """
    sources = yield from _sources(context, request)
    granted: list[tuple[int, Reply]] = []
    """(partition, what it gave)."""
    deliveries: list[QueueDelivery] = []
    bodies: list[bytes] = []
    left, most_bytes = request.max_messages, request.max_bytes or limits.RECEIVE_BYTES_DEFAULT
    for _ in range(ROUNDS):
        planned = _planned(context, sources, left)
        left_bytes = most_bytes - sum(map(len, bodies))
        if not planned or left <= 0 or left_bytes <= 0:
            break
        asks = [
            _ask(source.queue.partitions[ordinal], request, count, 0, left_bytes // len(planned) or 1)
            for source, ordinal, count in planned
        ]
        outcomes: list[Outcome] = yield AskAll(asks)
        for (source, ordinal, _), outcome in zip(planned, outcomes, strict=True):
            if isinstance(outcome, Reply) and has_messages(outcome):
                granted.append((source.queue.partitions[ordinal], outcome))
        final = next((one for one in outcomes if isinstance(one, PenstockError) and not one.retryable), None)
        if final is not None:
            yield AskAll(
                [back for partition, reply in granted if (back := give_back(partition, reply)) is not None]
            )
            raise final
        for (source, ordinal, count), outcome in zip(planned, outcomes, strict=True):
            taken = _take(context, source, ordinal, outcome, deliveries, bodies)
            left -= taken
            if taken < count:
                source.open.remove(ordinal)
    if deliveries:
        order = {source.queue.queue_id: -source.weight for source in sources}
        ranked = sorted(range(len(deliveries)), key=lambda place: order[deliveries[place].queue_id])
        return Reply(
            GroupDelivery([deliveries[place] for place in ranked]),
            b"".join(bodies[place] for place in ranked),
        )
    return (yield from _wait(context, sources, request))


def _wait(context: RoutingContext, sources: Sequence[_Source], request: ReceiveAny) -> Steps[Reply]:
    if not request.wait_ms:
        return Reply(GroupDelivery([]))
    places = [(source, ordinal) for source in sources for ordinal in range(len(source.queue.partitions))]
    asks = [
        _ask(
            source.queue.partitions[ordinal],
            request,
            request.max_messages,
            request.wait_ms,
            request.max_bytes,
        )
        for source, ordinal in places
    ]
    first: tuple[int, Reply] | None = yield AskFirst(asks, has_messages)
    if first is None:
        return Reply(GroupDelivery([]))
    place, reply = first
    source, ordinal = places[place]
    home = PartitionOfQueue(source.queue.queue_id, ordinal)
    given = outward_answers.queue_delivery(expected(reply, Delivery), home, context.map.home)
    return Reply(GroupDelivery([given]), reply.body)


def _sources(context: RoutingContext, request: ReceiveAny) -> Steps[list[_Source]]:
    if not 1 <= len(request.queues) <= limits.QUEUES_PER_RECEIVE:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"receive from 1 to {limits.QUEUES_PER_RECEIVE} queues, not {len(request.queues)}",
        )
    if len({queue.queue_id for queue in request.queues}) < len(request.queues):
        raise PenstockError(ErrorCode.BAD_REQUEST, "a queue is named twice; give it one weight")
    for queue in request.queues:
        if not 1 <= queue.weight <= limits.QUEUE_WEIGHT_MAX:
            raise PenstockError(
                ErrorCode.BAD_REQUEST, f"a weight is 1 to {limits.QUEUE_WEIGHT_MAX}, not {queue.weight}"
            )
    if not 1 <= request.max_messages <= limits.RECEIVE_MESSAGES:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"ask for 1 to {limits.RECEIVE_MESSAGES} messages, not {request.max_messages}",
        )
    sources: list[_Source] = []
    for queue in request.queues:
        entry = yield from known(context, queue.queue_id)
        sources.append(_Source(entry, queue.weight))
    return sources


def _planned(
    context: RoutingContext, sources: Sequence[_Source], messages: int
) -> list[tuple[_Source, int, int]]:
    """Of which partition how many are asked for: by weight between queues, evenly between partitions of one."""
    living = [source for source in sources if source.open]
    shares = context.weighted_shares(
        tuple((source.queue.queue_id, source.weight) for source in living), messages
    )
    planned = []
    for source, share in zip(living, shares, strict=True):
        turn = context.turn_of(source.queue.queue_id, len(source.open))
        ordered = source.open[turn:] + source.open[:turn]
        fewest, larger = divmod(share, len(ordered))
        for place, ordinal in enumerate(ordered):
            count = fewest + (place < larger)
            if count:
                planned.append((source, ordinal, count))
    return planned


def _ask(partition: int, request: ReceiveAny, messages: int, wait_ms: int, max_bytes: int | None) -> Ask:
    asked = Receive(partition, messages, wait_ms, request.visibility_timeout_ms, max_bytes)
    if request.consumer:
        asked = msgspec.structs.replace(asked, consumer=request.consumer)
    return Ask(asked, b"", partition, PATIENCE_MS if wait_ms else 0, give_back)


def _take(
    context: RoutingContext,
    source: _Source,
    ordinal: int,
    outcome: Outcome,
    deliveries: list[QueueDelivery],
    bodies: list[bytes],
) -> int:
    """Adds the messages of a partition; returns their number."""
    if isinstance(outcome, PenstockError):  # it may pass, and others may have something meanwhile
        return 0
    given = expected(outcome, Delivery)
    if not given.batches:
        return 0
    home = PartitionOfQueue(source.queue.queue_id, ordinal)
    deliveries.append(outward_answers.queue_delivery(given, home, context.map.home))
    bodies.append(bytes(outcome.body))
    return sum(batch.count for batch in given.batches)

"""Receives from several queues at once: each gives by its weight, and an empty one leaves its share to the others."""

from __future__ import annotations

from penstock.backend.node.outbox import LeaseRef
from penstock.backend.node.parts import GrantedGroup, NodeParts
from penstock.backend.receive import traffic
from penstock.backend.receive.bodies import ColdReadError
from penstock.backend.receive.waiting import Waiter
from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import count_of, intersection
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.budget import Budget
from penstock.queue.decisions.decision import Granted
from penstock.queue.ready.weighted_turns import WeightedSet
from penstock.queue.state import states
from penstock.storage.errors import DamagedEntryError
from penstock.wire.messages import Failed, GroupDelivery, QueueDelivery, ReceiveAny

NOTHING = GroupDelivery([])


def receive_any(parts: NodeParts, connection: int, request_id: int, request: ReceiveAny, now_ms: int) -> None:
    """Answers at once if any of the queues has something ready, else waits in the line of each, if it may wait."""
    queues = _checked(request)
    traffic.check_counts(request.max_messages, request.visibility_timeout_ms)
    traffic.check_wait(request.wait_ms)
    partitions = [traffic.receivable(parts, partition_id) for partition_id, _ in queues]
    max_bytes = request.max_bytes if request.max_bytes is not None else limits.RECEIVE_BYTES_DEFAULT
    waiter = Waiter(
        connection,
        request_id,
        0,
        request.max_messages,
        request.max_messages,
        max(1, min(max_bytes, limits.RECEIVE_BYTES)),
        request.visibility_timeout_ms,
        now_ms + request.wait_ms,
        consumer=request.consumer,
    )
    if not parts.may_deliver(connection):  # it waits in line like others, until the connection takes more
        waiter.impatient = not request.wait_ms
        waiter.deadline_ms = now_ms + (request.wait_ms or limits.RECEIVE_PARKED_MS)
        _enter(parts, waiter, queues)
        return
    for partition in partitions:
        traffic.serve_line(parts, partition, now_ms)  # receivers that waited longer come first
    for partition_id, _ in queues:
        parts.catalogue.usable(partition_id)  # serving them may have shown damage
    if _serve(parts, waiter, queues, now_ms):
        return
    if request.wait_ms:
        _enter(parts, waiter, queues)
    else:
        parts.answer(connection, request_id, NOTHING)


def _checked(request: ReceiveAny) -> WeightedSet:
    """The queues and their weights; in one order, so that all who name the same set share its turns."""
    if not 1 <= len(request.queues) <= limits.QUEUES_PER_RECEIVE:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"receive from 1 to {limits.QUEUES_PER_RECEIVE} queues, not {len(request.queues)}",
        )
    queues = tuple(sorted((queue.queue_id, queue.weight) for queue in request.queues))
    if len({partition_id for partition_id, _ in queues}) < len(queues):
        raise PenstockError(ErrorCode.BAD_REQUEST, "a queue is named twice; give it one weight")
    for _, weight in queues:
        if not 1 <= weight <= limits.QUEUE_WEIGHT_MAX:
            raise PenstockError(
                ErrorCode.BAD_REQUEST, f"a weight is 1 to {limits.QUEUE_WEIGHT_MAX}, not {weight}"
            )
    return queues


def _enter(parts: NodeParts, waiter: Waiter, queues: WeightedSet) -> None:
    """Joins the line of every queue."""

    def take(now_ms: int) -> bool:
        return _serve(parts, waiter, queues, now_ms)

    waiter.cancelled = False
    waiter.places = tuple(
        Waiter(
            waiter.connection,
            waiter.request_id,
            partition_id,
            waiter.messages,
            waiter.batch_messages,
            waiter.max_bytes,
            waiter.visibility_timeout_ms,
            waiter.deadline_ms,
            impatient=waiter.impatient,
            whole=waiter,
            take=take,
        )
        for partition_id, _ in queues
    )
    parts.waiting.enter(waiter)


def _serve(parts: NodeParts, waiter: Waiter, queues: WeightedSet, now_ms: int) -> bool:
    """Leases what the queues have ready, by their weights, and answers; False where nothing is ready."""
    available = [_available(parts, partition_id) for partition_id, _ in queues]
    for index, place in enumerate(waiter.places):
        if available[index] and parts.waiting.must_wait(place):
            available[index] = 0
    if not any(available):
        return False
    granted = _grant(parts, waiter, queues, available, now_ms)
    if not granted:
        return False
    weights = dict(queues)
    granted.sort(key=lambda row: -weights[row[0]])
    deliver(parts, GrantedGroup(waiter, queues, granted, now_ms))
    return True


def _available(parts: NodeParts, partition_id: int) -> int:
    """How many messages are ready; on a queue with strict order not all of them may be deliverable."""
    partition = parts.catalogue.partitions.get(partition_id)
    if (
        partition is None
        or parts.catalogue.is_closed(partition_id)
        or partition_id in parts.catalogue.deleting
    ):
        return 0
    return partition.table.counts[states.READY] if partition.order.may_give() else 0


def _grant(
    parts: NodeParts, waiter: Waiter, queues: WeightedSet, available: list[int], now_ms: int
) -> list[tuple[int, Granted]]:
    """One lease for each queue. If one gives less than expected, the following ones get its share."""
    shares = parts.shares.of(queues)
    planned = shares.plan(available, waiter.messages)
    budget = Budget(waiter.messages, waiter.max_bytes)
    open_to = list(available)
    given, dry = [0] * len(queues), [False] * len(queues)
    found: list[tuple[int, Granted]] = []
    for index in shares.turn_order():
        open_to[index] = 0
        if not planned[index] or budget.spent():
            continue
        share = Budget(planned[index], budget.bytes)
        share.taken = budget.taken
        granted = _grant_one(parts, waiter, queues[index][0], share, now_ms, first=not found)
        if granted is not None:
            found.append((queues[index][0], granted))
            given[index] = count_of(granted.runs)
        budget.messages -= given[index]
        budget.bytes, budget.taken = share.bytes, share.taken
        if given[index] < planned[index] and not budget.spent():
            dry[index] = True
            planned = shares.plan(open_to, budget.messages)
    if found:
        more = [have > gave and not is_dry for have, gave, is_dry in zip(available, given, dry, strict=True)]
        shares.served(given, more)
    return found


def _grant_one(
    parts: NodeParts, waiter: Waiter, partition_id: int, budget: Budget, now_ms: int, *, first: bool
) -> Granted | None:
    partition = parts.catalogue.partitions[partition_id]
    decision = receiving.grant_within(
        partition,
        budget,
        waiter.visibility_timeout_ms,
        now_ms,
        consumer=parts.consumer(partition, waiter),
    )
    if decision is None:
        return None
    try:
        return parts.carry_out(partition, decision)
    except PenstockError:  # no room in the journal: deliver the leases that were granted
        if first:
            raise
        return None


def deliver(parts: NodeParts, pending: GrantedGroup, *, block: bool = False) -> None:
    """Answers with the messages of all leases, or leaves them with those whose bodies must be read first.

    With `block` they have been read meanwhile, and messages that the leases no longer hold are left out.
    """
    waiter = pending.waiter
    deliveries: list[QueueDelivery] = []
    body: list[Buffer] = []
    leases: list[LeaseRef] = []
    cold: list[int] = []
    for partition_id, granted in pending.granted:
        partition = parts.catalogue.partitions.get(partition_id)
        if partition is None or partition_id in parts.catalogue.deleting:
            _fail(parts, pending, Failed(ErrorCode.QUEUE_NOT_FOUND, "a queue of the set was deleted"))
            return
        runs = granted.runs
        if block:
            lease = partition.leases.get(granted.lease)
            held = lease.runs() if lease is not None else []
            runs = [part for run in runs for part in intersection([run], held)]
        if not runs:
            continue
        try:
            heads, slices = parts.bodies.hand_out(partition, runs, pending.at_ms, block=block)
        except ColdReadError as error:
            cold += error.positions
            continue
        except DamagedEntryError as damaged:
            parts.waiting.leave(waiter)
            parts.fence(partition_id, damaged)
            why = f"queue {partition.name!r} is fenced: {damaged}"
            _fail(parts, pending, Failed(ErrorCode.QUEUE_DAMAGED, why))
            return
        token = parts.seal.token(partition_id, granted.lease)
        deliveries.append(QueueDelivery(partition_id, token, granted.until_ms, heads))
        leases.append(LeaseRef(partition_id, granted.lease, runs))
        body += slices
    if cold:
        parts.cold_deliveries.append((cold, pending))
    elif deliveries:
        about = [delivery.queue_id for delivery in deliveries]
        parts.answer(
            waiter.connection, waiter.request_id, GroupDelivery(deliveries), body, leases, about=about
        )
    else:
        _wait_on(parts, pending)


def _fail(parts: NodeParts, pending: GrantedGroup, failed: Failed) -> None:
    """One queue is gone or damaged: the receiver gets the error, and the messages of the others are ready again."""
    for partition_id, granted in pending.granted:
        try:
            partition = parts.catalogue.usable(partition_id)
            parts.write(
                partition, settling.undelivered(partition, granted.lease, granted.runs, pending.at_ms)
            )
        except PenstockError:  # gone, fenced, or no room in the journal: the lease ends by itself
            continue
    parts.answer(pending.waiter.connection, pending.waiter.request_id, failed)


def _wait_on(parts: NodeParts, pending: GrantedGroup) -> None:
    """All leases ended before their messages could be read: the receiver continues to wait, if its time is not over."""
    waiter = pending.waiter
    try:
        for partition_id, _ in pending.queues:
            parts.catalogue.usable(partition_id)
        _enter(parts, waiter, pending.queues)
    except PenstockError as error:
        parts.answer(waiter.connection, waiter.request_id, Failed(error.code, error.message))

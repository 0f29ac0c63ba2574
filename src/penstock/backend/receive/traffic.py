"""Messages out: receive, subscribe, settle."""

from __future__ import annotations

from penstock.backend.node.outbox import LeaseRef
from penstock.backend.node.parts import GrantedDelivery, NodeParts
from penstock.backend.receive.bodies import ColdReadError
from penstock.backend.receive.waiting import Waiter
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import count_of, intersection
from penstock.queue.decisions import receive as receiving
from penstock.queue.decisions.decision import Granted
from penstock.queue.partition import Partition
from penstock.queue.state import states
from penstock.storage.errors import DamagedEntryError
from penstock.wire.messages import (
    AddCredit,
    Delivery,
    Done,
    Failed,
    GroupDelivery,
    Receive,
    Subscribe,
    Unsubscribe,
)

NOTHING = Delivery(b"", 0, [])


def receive(parts: NodeParts, connection: int, request_id: int, request: Receive, now_ms: int) -> None:
    """Answers at once if something is ready, else waits in line, if it may wait."""
    partition = receivable(parts, request.queue_id)
    check_counts(request.max_messages, request.visibility_timeout_ms)
    check_wait(request.wait_ms)
    if len(request.attempt) > limits.ATTEMPT_ID_BYTES:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            f"an attempt id has at most {limits.ATTEMPT_ID_BYTES} bytes, not {len(request.attempt)}",
        )
    max_bytes = request.max_bytes if request.max_bytes is not None else limits.RECEIVE_BYTES_DEFAULT
    waiter = Waiter(
        connection,
        request_id,
        request.queue_id,
        request.max_messages,
        request.max_messages,
        max(1, min(max_bytes, limits.RECEIVE_BYTES)),
        request.visibility_timeout_ms,
        now_ms + request.wait_ms,
        request.max_leased,
        request.attempt,
        consumer=request.consumer,
    )
    if not parts.may_deliver(connection):  # it waits in line like others, until the connection takes more
        waiter.impatient = not request.wait_ms
        waiter.deadline_ms = now_ms + (request.wait_ms or limits.RECEIVE_PARKED_MS)
        parts.waiting.enter(waiter)
        return
    serve_line(parts, partition, now_ms)  # receivers that waited longer come first
    parts.catalogue.usable(request.queue_id)  # serving them may have shown damage
    if serve(parts, partition, waiter, now_ms):
        return
    if request.wait_ms:
        parts.waiting.enter(waiter)
    else:
        parts.answer(connection, request_id, NOTHING, about=request.queue_id)


def subscribe(parts: NodeParts, connection: int, request_id: int, request: Subscribe) -> None:
    """Joins the line and stays."""
    partition = receivable(parts, request.queue_id)
    check_counts(request.batch_messages, request.visibility_timeout_ms)
    if not 0 <= request.credit <= limits.QUEUE_MESSAGES_MAX:
        raise PenstockError(ErrorCode.BAD_REQUEST, "credit must not be negative")
    visibility_ms = request.visibility_timeout_ms
    if visibility_ms is None:
        visibility_ms = partition.settings.visibility_timeout_ms
    if visibility_ms == 0:
        raise PenstockError(
            ErrorCode.BAD_REQUEST,
            "a subscription with a visibility timeout of 0 would be sent the same messages forever",
        )
    parts.waiting.enter(
        Waiter(
            connection,
            request_id,
            request.queue_id,
            request.credit,
            request.batch_messages,
            limits.RECEIVE_BYTES_DEFAULT,
            request.visibility_timeout_ms,
            consumer=request.consumer,
        )
    )


def add_credit(parts: NodeParts, connection: int, request: AddCredit) -> None:
    """Lets a subscription take more; unknown subscriptions have just been cancelled."""
    waiter = parts.waiting.find(connection, request.subscription)
    if waiter is None or not waiter.is_subscription:
        return
    if 0 < request.messages <= limits.QUEUE_MESSAGES_MAX:
        waiter.messages += request.messages
        parts.waiting.line_up(waiter)


def unsubscribe(parts: NodeParts, connection: int, request: Unsubscribe) -> Done:
    """Cancels a subscription or a waiting receive; delivered messages stay leased."""
    waiter = parts.waiting.find(connection, request.subscription)
    if waiter is not None:
        parts.waiting.leave(waiter)
        if not waiter.is_subscription:  # every request gets its answer
            parts.answer(connection, waiter.request_id, nothing_for(waiter))
    return Done()


def nothing_for(waiter: Waiter) -> Delivery | GroupDelivery:
    """The answer to a receiver that got nothing."""
    return GroupDelivery([]) if waiter.places or waiter.whole is not None else NOTHING


def serve_line(parts: NodeParts, partition: Partition, now_ms: int) -> None:
    """Serves the receivers of the queue, in order, until no message is ready or no receiver waits."""
    while (waiter := parts.waiting.next_in_line(partition.partition_id)) is not None:
        if not parts.may_deliver(waiter.connection):
            parts.waiting.park(waiter)
            continue
        try:
            take = waiter.take
            served = serve(parts, partition, waiter, now_ms) if take is None else take(now_ms)
        except PenstockError as error:
            parts.answer(waiter.connection, waiter.request_id, Failed(error.code, error.message))
            parts.waiting.leave(waiter)
            continue
        if not served and waiter.impatient:
            parts.answer(
                waiter.connection, waiter.request_id, nothing_for(waiter), about=partition.partition_id
            )
            parts.waiting.leave(waiter)
            continue
        if not served:
            parts.waiting.back_to_front(waiter)
            return
        if waiter.is_subscription:
            parts.waiting.line_up(waiter)
        else:
            parts.waiting.leave(waiter)


def serve(parts: NodeParts, partition: Partition, waiter: Waiter, now_ms: int) -> bool:
    """Leases what is ready to one receiver and answers it; False where nothing is ready."""
    if waiter.attempt and _serve_again(parts, partition, waiter, now_ms):
        return True
    most = min(waiter.messages, waiter.batch_messages)
    if waiter.max_leased is not None:
        most = min(most, _room_for_leases(partition, waiter.max_leased))
    decision = receiving.grant(
        partition,
        most,
        waiter.max_bytes,
        waiter.visibility_timeout_ms,
        now_ms,
        waiter.attempt,
        parts.consumer(partition, waiter),
    )
    if decision is None:
        return False
    granted = parts.carry_out(partition, decision)
    if waiter.is_subscription:
        waiter.messages -= count_of(granted.runs)
        if partition.settings.strict and not partition.settings.sorted:
            granted = _as_sent(partition, granted)
    deliver(parts, GrantedDelivery(waiter, granted, now_ms))
    return True


def _as_sent(partition: Partition, granted: Granted) -> Granted:
    """A lease of a FIFO queue in the order of sending, not group by group as a receive gets it.

    Each group keeps its order either way; but neighbours of different groups are one run here, and a run costs
    as much as a single message, all the way to the client and back.
    """
    lease = partition.leases.get(granted.lease)
    return granted if lease is None else granted._replace(runs=lease.runs())


def _serve_again(parts: NodeParts, partition: Partition, waiter: Waiter, now_ms: int) -> bool:
    """Answers with what the receiver's attempt was served with before; False where it was not."""
    decision = receiving.repeat(partition, waiter.attempt, waiter.visibility_timeout_ms, now_ms)
    if decision is None:
        return False
    granted = parts.carry_out(partition, decision)
    lease = partition.leases.get(granted.lease)
    deliver(parts, GrantedDelivery(waiter, granted, lease.at_ms if lease is not None else now_ms))
    return True


def _room_for_leases(partition: Partition, max_leased: int) -> int:
    leased = partition.table.counts[states.LEASED]
    if leased >= max_leased:
        raise PenstockError(
            ErrorCode.LIMIT_REACHED,
            f"{leased} messages of queue {partition.name!r} are leased, and this receive allows at "
            f"most {max_leased} (max_leased)",
        )
    return max_leased - leased


def deliver(parts: NodeParts, pending: GrantedDelivery, *, block: bool = False) -> None:
    """Answers with the messages of a lease, or leaves it with those whose bodies must be read first.

    With `block` they have been read meanwhile, and messages that the lease no longer holds are left out: their bodies may
    be gone, and another consumer may have them.
    """
    waiter, granted = pending.waiter, pending.granted
    partition = parts.catalogue.partitions.get(waiter.partition_id)
    if partition is None or waiter.partition_id in parts.catalogue.deleting:
        failed = Failed(ErrorCode.QUEUE_NOT_FOUND, "the queue was deleted")
        parts.answer(waiter.connection, waiter.request_id, failed)
        return
    runs = granted.runs
    if block:
        lease_now = partition.leases.get(granted.lease)
        held = lease_now.runs() if lease_now is not None else []
        runs = [part for run in runs for part in intersection([run], held)]
        if count_of(runs) < count_of(granted.runs):
            _wait_on(parts, waiter, count_of(granted.runs) - count_of(runs), served=bool(runs))
    if not runs:
        return
    try:
        heads, body = parts.bodies.hand_out(partition, runs, pending.at_ms, block=block)
    except ColdReadError as cold:
        parts.cold_deliveries.append((cold.positions, pending))
        return
    except DamagedEntryError as damaged:
        parts.waiting.leave(waiter)
        parts.fence(waiter.partition_id, damaged)
        failed = Failed(ErrorCode.QUEUE_DAMAGED, f"queue {partition.name!r} is fenced: {damaged}")
        parts.answer(waiter.connection, waiter.request_id, failed)
        return
    token = parts.seal.token(waiter.partition_id, granted.lease)
    answer = Delivery(token, granted.until_ms, heads)
    # A client with an attempt id asks for the same lease again, maybe on another connection: it is not returned early.
    leases = () if waiter.attempt else (LeaseRef(waiter.partition_id, granted.lease, runs),)
    parts.answer(waiter.connection, waiter.request_id, answer, body, leases, about=waiter.partition_id)


def _wait_on(parts: NodeParts, waiter: Waiter, messages: int, *, served: bool) -> None:
    """A lease ended before its messages could be read: a subscription gets its credit back, a receiver its place."""
    if waiter.is_subscription:
        waiter.messages += messages
        parts.waiting.line_up(waiter)
    elif not served:
        waiter.cancelled = False
        try:
            parts.waiting.enter(waiter)
        except PenstockError as error:
            parts.answer(waiter.connection, waiter.request_id, Failed(error.code, error.message))


def receivable(parts: NodeParts, partition_id: int) -> Partition:
    """The queue with that id; raises if it is gone, fenced, or has only a log."""
    partition = parts.catalogue.usable(partition_id)
    if not partition.settings.has_queue:
        raise PenstockError(
            ErrorCode.UNSUPPORTED,
            f"queue {partition.name!r} is a log (consumption 'log'): read it instead of receiving from it",
        )
    return partition


def check_wait(wait_ms: int) -> None:
    """Raises where a receive would wait for too long."""
    if not 0 <= wait_ms <= limits.RECEIVE_WAIT_MS:
        raise PenstockError(ErrorCode.BAD_REQUEST, f"wait_ms must be 0 to {limits.RECEIVE_WAIT_MS}")


def check_counts(messages: int, visibility_timeout_ms: int | None) -> None:
    """Raises if a receive asks for more than a receiver can get."""
    if not 1 <= messages <= limits.RECEIVE_MESSAGES:
        raise PenstockError(
            ErrorCode.BAD_REQUEST, f"ask for 1 to {limits.RECEIVE_MESSAGES} messages, not {messages}"
        )
    if (
        visibility_timeout_ms is not None
        and not 0 <= visibility_timeout_ms <= limits.VISIBILITY_TIMEOUT_MS_MAX
    ):
        raise PenstockError(
            ErrorCode.BAD_REQUEST, f"visibility_timeout_ms must be 0 to {limits.VISIBILITY_TIMEOUT_MS_MAX}"
        )

"""Moves messages from queue to queue, a bounded piece at a time, and removes deleted queues.

All queues of a node share one journal, of which a crash keeps a prefix. So arrival, departure and the forgetting of the
origin can be appended one after the other: with any prefix of them, the message is in exactly one queue, or is still
moving and the target knows whether it arrived.

A deleted queue is removed when nothing of it is moving any more. The remaining work follows from its state, so it
continues after a crash, and after the journal had no room:

    QueueDeleted    clients do not find it any more
    MoveStarted     its delayed messages are moving to the dead-letter queue, its late ones to theirs
    ...             every moving message arrives
    QueueRemoved    the rest is gone
"""

from __future__ import annotations

import logging

from penstock.backend.admin.administration import late_queue_of, remove_queue, settle_sources
from penstock.backend.node.parts import NodeParts
from penstock.backend.receive.bodies import ColdReadError, StoredSlice
from penstock.model import limits
from penstock.model.errors import PenstockError
from penstock.model.move_target import MoveTarget, target_of
from penstock.model.origin import Origin, Reason
from penstock.model.runs import Runs, count_of, difference
from penstock.queue.decisions import move as moving
from penstock.queue.partition import Partition

logger = logging.getLogger("penstock.backend")


def move_some(parts: NodeParts, partition_id: int, now_ms: int) -> None:
    """One bounded step of the moves out of a queue; raises `ColdReadError` when bodies must be read first.

    Raises `PenstockError` if the journal has no room. The queue stays among the movers then, and the next turn continues.
    """
    partition = parts.catalogue.partitions.get(partition_id)
    if partition is None or partition_id in parts.catalogue.damage:
        # A queue that is found to be damaged while its messages leave stays: a repair can still save them.
        if partition is not None and partition_id in parts.doomed:
            if settle_sources(parts, partition, now_ms):
                remove_queue(parts, partition, now_ms)
            else:
                _wait_for_source(parts, partition)
        parts.movers.discard(partition_id)
        return
    deleted = partition_id in parts.catalogue.deleting
    if deleted:
        parts.write(partition, moving.rescue(partition, now_ms))
    _settle_with_deleted(parts, partition, now_ms)
    waits = False
    for (target, reason), runs in list(partition.moves.items()):
        aim = target_of(target)
        if _waits_for_repair(parts, aim):
            waits = True
        elif not deleted or has_target(parts, aim, reason):
            _move(parts, partition, aim, reason, runs.first(limits.MOVE_MESSAGES), now_ms)
            if partition.moves or deleted:
                return
            break
    if waits:
        parts.stalled_movers.add(partition_id)
        if deleted:
            logger.warning(
                "deletion of queue %(queue)r waits: messages of it move to a queue that is damaged",
                {"queue": partition.name},
            )
    elif deleted and not settle_sources(parts, partition, now_ms):
        _wait_for_source(parts, partition)
    elif deleted:
        remove_queue(parts, partition, now_ms)  # if there is no room for its last rows: try again
        if partition_id in parts.catalogue.partitions:
            return
        tell_homeless(partition)
    parts.movers.discard(partition_id)


def _wait_for_source(parts: NodeParts, partition: Partition) -> None:
    parts.stalled_movers.add(partition.partition_id)
    logger.warning(
        "deletion of queue %(queue)r waits: it has messages of a queue that is damaged, which does not know yet that they "
        "have arrived; repair that queue or delete it",
        {"queue": partition.name},
    )


def _settle_with_deleted(parts: NodeParts, source: Partition, now_ms: int) -> None:
    """Messages that arrived in a queue deleted since leave their source, which may have been damaged until now."""
    for partition_id in parts.catalogue.deleting if source.moves else ():
        arrived = parts.catalogue.partitions[partition_id].origins.of(source.partition_id)
        parts.write(source, moving.finish_move(source, arrived, now_ms))


def has_target(parts: NodeParts, aim: MoveTarget, reason: Reason) -> bool:
    """Whether messages of a deleted queue have somewhere to go; the queue for late ones is made when it is missing."""
    return reason == "late" or _target(parts, aim) is not None


def tell_homeless(partition: Partition) -> None:
    """Messages that are still moving when a deleted queue is removed are deleted with it: logs this for operators."""
    for (target, reason), runs in partition.moves.items():
        logger.warning(
            "deleted %(messages)d messages with queue %(queue)r: their target %(target)r "
            "(%(reason)s) does not exist",
            {
                "messages": count_of(runs),
                "queue": partition.name,
                "target": target_of(target).name,
                "reason": reason,
            },
        )


def _target(parts: NodeParts, aim: MoveTarget) -> Partition | None:
    target = parts.catalogue.named(aim.name)
    return target if target is not None and aim.is_meant(target.partition_id) else None


def _waits_for_repair(parts: NodeParts, aim: MoveTarget) -> bool:
    """Whether nothing can arrive there for now; messages for other targets must not wait."""
    target = _target(parts, aim)
    return target is not None and target.partition_id in parts.catalogue.damage


def _move(
    parts: NodeParts, source: Partition, aim: MoveTarget, reason: Reason, runs: Runs, now_ms: int
) -> None:
    target = _target(parts, aim)
    if target is None and reason == "late":
        target = late_queue_of(parts, source, now_ms)
    if target is None and reason == "redrive":
        # A dead letter whose redrive target is gone stays, with the reason.
        target, reason = source, "queue-deleted"
    if target is None:
        parts.write(source, moving.abandon_move(source, runs, now_ms))
        return
    slices = slices_in_memory(parts, source, runs)
    runs = [(piece.first, piece.messages) for piece in slices]
    for piece in slices:
        origin = origin_of(source, aim.name if target is source else source.name, reason, piece, now_ms)
        parts.write(target, moving.arrive(target, piece.batch_alone(), origin, now_ms, piece.stamps()))
    parts.idle.used(target.partition_id, now_ms)
    parts.write(source, moving.finish_move(source, runs, now_ms))
    parts.write(target, moving.forget_origins(target, source.partition_id, runs, now_ms))


def slices_in_memory(parts: NodeParts, source: Partition, runs: Runs) -> list[StoredSlice]:
    """The first messages that are in memory, at least one batch and not much more than MOVE_BYTES."""
    found: list[StoredSlice] = []
    size = 0
    try:
        for piece in parts.bodies.each(source, runs):
            found.append(piece)
            size += piece.size()
            if size >= limits.MOVE_BYTES:
                break
    except ColdReadError:
        if not found:
            raise
    return found


def origin_of(source: Partition, name: str, reason: Reason, piece: StoredSlice, now_ms: int) -> Origin:
    run = (piece.first, piece.messages)
    receives = source.table.receive_counts(run)
    earlier = piece.origin()
    roots = earlier.first_homes() if earlier is not None else None
    late = source.sorting.lateness_of(piece.sent.first) if reason == "late" and source.sorting else None
    return Origin(source.partition_id, name, reason, [run], piece.sent.sent_ms, receives, now_ms, roots, late)


def forget_finished_origins(parts: NodeParts, now_ms: int) -> None:
    """After a restart: forgets origins of messages that are no longer moving in their source."""
    for target in list(parts.catalogue.partitions.values()):
        if target.partition_id in parts.catalogue.damage:
            continue  # nothing is written to a fenced queue
        for source_id, runs in list(target.origins):
            if source_id in parts.catalogue.damage:
                continue  # it may be repaired, and have these on their way then
            source = parts.catalogue.partitions.get(source_id)
            on_the_way = sorted(run for moves in source.moves.values() for run in moves) if source else []
            finished = difference([*runs], on_the_way)
            try:
                parts.write(target, moving.forget_origins(target, source_id, finished, now_ms))
            except PenstockError:
                return  # no room in the journal: it is remembered for longer than needed, which does no harm

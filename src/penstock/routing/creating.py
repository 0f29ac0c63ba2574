"""Creates a queue: places and writes its partitions, then writes the queue, and answers when all partitions are served.

Every write is on condition that no other creator was faster. The loser gives up the partitions that it wrote, and answers
with the queue of the winner.
"""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.deletion import given_up
from penstock.cluster.layout.entries import (
    IDS,
    NEXT_ID,
    IdsEntry,
    PartitionEntry,
    QueueEntry,
    decode_ids,
    decode_partition,
    decode_queue,
    encode,
    partition_key,
    queue_key,
)
from penstock.cluster.layout.partition_settings import settings_of_partition
from penstock.cluster.manager.placement import TooFewNodesError, first_entries, place
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.model.reserved_queues import check_may_be
from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import (
    check_in_sync,
    check_new,
    check_queue_name,
    check_settings,
    settings_difference,
)
from penstock.routing.context import FreeIds, RoutingContext
from penstock.routing.deleting import ATTEMPTS, LATE, mark_partitions
from penstock.routing.describing import describe_entry
from penstock.steps.step import PATIENCE_MS, Look, Put, Reply, Steps, Stored, Until
from penstock.wire.messages import CreateQueue

IDS_AT_ONCE = 64
"""So many ids are taken from the store's count at a time: two writes less for nearly every queue."""
AHEAD_AT_MOST = 1_000_000_000
"""The largest lead of the unsealed counter over the sealed one: an attacker who raises it cannot use up all ids."""
_DIGITS = 19
"""Ids are shorter."""
DEAD_LETTER_RETENTION_MS = 14 * limits.DAY_MS


def create(context: RoutingContext, request: CreateQueue) -> Steps[Reply]:
    """Makes a queue, and those for its dead letters and late messages; the same request again changes nothing."""
    settings = replicated(context, request.settings)
    check_queue_name(request.name)
    check_new(settings)
    check_settings(request.name, settings)
    check_in_sync(settings)
    check_may_be(request.name, settings)
    if settings.sorted:
        check_queue_name(request.name + LATE)
    yield from make_dead_letter_queue(context, settings)
    if settings.sorted:
        yield from _make_late_queue(context, request.name, settings)
    queue = yield from made(context, request.name, settings, may_differ=False)
    yield from served(context, queue)
    return Reply((yield from describe_entry(context, queue)))


def replicated(context: RoutingContext, settings: QueueSettings) -> QueueSettings:
    """The settings with the usual number of replicas, if they name none: SDKs and their tools do not know replicas.

    A client that wants a single replica must also set the minimum in sync to one.
    """
    if settings.replicas > 1 or settings.min_in_sync == 1:
        return settings
    return msgspec.structs.replace(settings, replicas=context.replicas)


def made(
    context: RoutingContext, name: str, settings: QueueSettings, *, may_differ: bool
) -> Steps[QueueEntry]:
    """The queue of a name, made now if there is none; raises where there is one with other settings, unless it may."""
    for attempt in range(ATTEMPTS):
        # If the map has no entry, there is none, except for a moment: then the write of the queue finds a conflict.
        if context.map.why_too_new(name) is not None:
            raise context.missing(name)
        is_known = attempt or context.map.named(name) is not None
        stored: Stored = (yield Look(queue_key(name))) if is_known else Stored(None, 0)
        if stored.value is not None:
            existing = decode_queue(stored.value)
            if existing.state == "ready":
                differs = None if may_differ else settings_difference(existing.settings, settings)
                if differs is not None:
                    raise PenstockError(ErrorCode.QUEUE_EXISTS, _difference(existing, settings, differs))
                return existing
            if not (yield from mark_partitions(existing)):
                yield from _gone(context, name)
                continue
        # It replaces a queue that is being deleted and whose partitions are marked: that entry is no longer needed.
        queue = yield from _make(context, name, settings, stored.version)
        if queue is not None:
            return queue
    raise PenstockError(
        ErrorCode.OVERLOADED, f"too many requests create and delete queue {name!r} at once; try again"
    )


def make_dead_letter_queue(context: RoutingContext, settings: QueueSettings) -> Steps[None]:
    """Creates the dead-letter queue, if it does not exist."""
    target = settings.dead_letter_queue
    if target is None or context.map.ready(target) is not None:
        return
    wanted = QueueSettings(
        ordering="fifo" if settings.strict else "best-effort",
        retention_ms=DEAD_LETTER_RETENTION_MS,
        replicas=settings.replicas,
        replication=settings.replication,
        min_in_sync=settings.min_in_sync,
    )
    queue = yield from made(context, target, wanted, may_differ=True)
    yield from served(context, queue)


def _make_late_queue(context: RoutingContext, name: str, settings: QueueSettings) -> Steps[None]:
    """Creates the late queue, if it does not exist, because nodes create no queues."""
    if context.map.ready(name + LATE) is not None:
        return
    wanted = QueueSettings(
        retention_ms=DEAD_LETTER_RETENTION_MS,
        replicas=settings.replicas,
        replication=settings.replication,
        min_in_sync=settings.min_in_sync,
    )
    queue = yield from made(context, name + LATE, wanted, may_differ=True)
    yield from served(context, queue)


def served(context: RoutingContext, queue: QueueEntry) -> Steps[None]:
    """Returns when every partition has a primary that serves; raises where that takes too long."""
    if not context.map.serves(queue) and not (yield Until(lambda: context.map.serves(queue), PATIENCE_MS)):
        raise PenstockError(
            ErrorCode.UNREACHABLE,
            f"queue {queue.name!r} is created, but not all of its partitions are served yet; try again",
        )


def _difference(existing: QueueEntry, wanted: QueueSettings, setting: str) -> str:
    have, want = getattr(existing.settings, setting), getattr(wanted, setting)
    return f"queue {existing.name!r} exists with {setting} = {have!r}, not {want!r}; alter it, or use another name"


def _make(
    context: RoutingContext, name: str, settings: QueueSettings, version: int
) -> Steps[QueueEntry | None]:
    """Writes a queue in place of what has this version, 0 for nothing; None where another was quicker."""
    queue_id, *partitions = yield from _ids(context, 1 + settings.partitions)  # see `layout.first_partition`
    entries = _placed(context, name, queue_id, partitions, settings)
    for entry in entries:
        yield Put(partition_key(entry.partition), encode(entry), 0)
    queue = QueueEntry(
        name=name, queue_id=queue_id, settings=settings, created_ms=context.now_ms(), partitions=partitions
    )
    try:
        yield Put(queue_key(name), encode(queue), version)
    except VersionConflictError:
        for entry in entries:
            yield from _give_up(entry)
        return None
    return queue


def _placed(
    context: RoutingContext, name: str, queue_id: int, partitions: list[int], settings: QueueSettings
) -> list[PartitionEntry]:
    nodes = context.map.open_nodes()
    replicas = settings.replicas
    if settings.least_in_sync <= len(nodes) < replicas <= len(context.map.ever_known()):
        replicas = len(
            nodes
        )  # a node is away: the manager makes the missing replicas when it is back or replaced
    try:
        placed = place(nodes, partitions, replicas, context.map.census.copy())
    except TooFewNodesError as error:
        raise PenstockError(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"queue {name!r} cannot be created now: {error}"
        ) from None
    return first_entries(
        placed,
        queue=name,
        queue_id=queue_id,
        settings=settings_of_partition(settings),
        made_ms=context.now_ms(),
    )


def _give_up(entry: PartitionEntry) -> Steps[None]:
    """Gives up the partitions of a queue that was never completed; nodes that hold them drop them."""
    key = partition_key(entry.partition)
    for _ in range(ATTEMPTS):
        stored: Stored = yield Look(key)
        if stored.value is None:
            return
        # As it is now: the manager may have given it another replica, which has to be dropped as well.
        now = decode_partition(stored.value)
        retired = given_up(now, f"another front end made {entry.queue} first")
        try:
            yield Put(key, encode(retired), stored.version)
            return
        except VersionConflictError:
            continue


def _gone(context: RoutingContext, name: str) -> Steps[None]:
    """Waits until a queue that is being deleted is gone, so that its name is free."""
    if not (yield Until(lambda: context.map.named(name) is None, PATIENCE_MS)):
        raise PenstockError(
            ErrorCode.OVERLOADED, f"queue {name!r} is still being deleted; try again in a moment"
        )


def _ids(context: RoutingContext, count: int) -> Steps[list[int]]:
    """New ids. One request reserves them in the store for all requests that wait here meanwhile."""
    ids = context.ids
    taken = ids.take(count)
    for _ in range(ATTEMPTS):
        if taken is not None:
            break
        if ids.counting:
            ids.wanted += count
            yield Until(lambda: not ids.counting, PATIENCE_MS)
        else:
            yield from _counted(context, count)
        # At once: an attempt that got ids must not end without them.
        taken = ids.take(count)
    if taken is None:
        raise PenstockError(ErrorCode.OVERLOADED, "too many queues are created at the same time; try again")
    return list(taken)


def _counted(context: RoutingContext, count: int) -> Steps[None]:
    """Takes ids from the store's count; requests that need some meanwhile wait."""
    ids = context.ids
    ids.counting = True
    ids.above = max(ids.above, context.map.ids_above)
    try:
        yield from _count_on(ids, count)
    finally:
        ids.counting = False
        context.map.touch(NEXT_ID)


def _count_on(ids: FreeIds, count: int) -> Steps[None]:
    """Takes ids from the sealed count, and from the one that earlier versions go by: theirs has no seal, so it may raise and never lower.

    Each of two that count at once writes both, and only one of them can write the sealed one.
    """
    for _ in range(ATTEMPTS):
        sealed: Stored = yield Look(IDS)
        plain: Stored = yield Look(NEXT_ID)
        first = _first_free(ids, sealed.value, plain.value)
        after = first + max(IDS_AT_ONCE, count + ids.wanted)
        try:
            yield Put(NEXT_ID, str(after).encode(), plain.version)
            yield Put(IDS, encode(IdsEntry(next=after)), sealed.version)
        except VersionConflictError:
            continue
        ids.set_aside(range(first, after))
        return


def _first_free(ids: FreeIds, sealed: bytes | None, plain: bytes | None) -> int:
    """The first unused id, as far as the store and this process know."""
    try:
        counted = decode_ids(sealed).next if sealed is not None else 1
    except msgspec.MsgspecError as error:
        raise PenstockError(
            ErrorCode.METADATA_UNAVAILABLE,
            f"no queue can be created: the counter of ids in the metadata store ({IDS}) cannot be trusted: {error}",
        ) from None
    first = max(counted, ids.above)
    said = int(plain) if plain is not None and plain.isdigit() and len(plain) < _DIGITS else 1
    return max(first, said) if said - first <= AHEAD_AT_MOST or sealed is None else first

"""Changes queues of a cluster: writes the layout, and waits for the primaries."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.cluster.layout.entries import (
    QueueEntry,
    decode_partition,
    decode_queue,
    encode,
    partition_key,
    queue_key,
)
from penstock.cluster.layout.partition_settings import carried, settings_of_partition
from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.model.reserved_queues import check_may_alter, check_may_be
from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import changed_settings, check_in_sync, check_settings
from penstock.routing.context import RoutingContext
from penstock.routing.creating import make_dead_letter_queue
from penstock.routing.deleting import ATTEMPTS, stored_queue
from penstock.routing.describing import describe_asks, describe_entry
from penstock.steps.step import AskAll, Look, Outcome, Put, Reply, Steps, Stored, Until
from penstock.wire.messages import AlterQueue, QueueDescription

LOOKS = 100
LOOK_AGAIN_MS = 20


def alter(context: RoutingContext, request: AlterQueue) -> Steps[Reply]:
    """Changes settings of a queue, all or none; asked again after a failure it finishes what was begun."""
    check_may_alter(request.name, request.changes)
    queue, version = yield from stored_queue(request.name)
    settings = changed_settings(queue.settings, dict(request.changes))
    check_settings(request.name, settings)
    check_in_sync(settings)
    check_may_be(request.name, settings)
    if settings.replicas > max(queue.settings.replicas, len(context.map.ever_known())):
        raise PenstockError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            f"queue {request.name!r} cannot have {settings.replicas} replicas: the cluster has "
            f"{len(context.map.ever_known())} nodes; add some first",
        )
    if (
        "dead_letter_queue" in request.changes
    ):  # a user who changes something else was not checked for the right to create queues
        yield from make_dead_letter_queue(context, settings)
    if settings != queue.settings:
        queue = msgspec.structs.replace(queue, settings=settings)
        try:
            yield Put(queue_key(queue.name), encode(queue), version)
        except VersionConflictError:
            raise PenstockError(
                ErrorCode.OVERLOADED, f"queue {queue.name!r} is being changed by another request; try again"
            ) from None
    wanted: list[QueueSettings] = []
    for partition in queue.partitions:
        wanted += [(yield from _alter_partition(partition, queue))]
    yield from _done_by_primaries(context, queue, wanted)
    return Reply((yield from describe_entry(context, queue)))


def _done_by_primaries(
    context: RoutingContext, queue: QueueEntry, wanted: Sequence[QueueSettings]
) -> Steps[None]:
    """Returns when every primary uses the new settings; a partition that is not served will use them when it is."""
    for _ in range(LOOKS):
        outcomes: list[Outcome] = yield AskAll(describe_asks(context, queue))
        if not any(
            isinstance(outcome, Reply)
            and isinstance(outcome.answer, QueueDescription)
            and _behind(outcome.answer.settings, settings)
            for outcome, settings in zip(outcomes, wanted, strict=True)
        ):
            return
        yield Until(_never, LOOK_AGAIN_MS)


def _behind(present: QueueSettings, wanted: QueueSettings) -> bool:
    """Whether a primary goes by other settings; more replicas come when the manager has made them."""
    return present != msgspec.structs.replace(
        wanted, replicas=present.replicas, min_in_sync=present.min_in_sync
    )


def _never() -> bool:
    return False


def _alter_partition(partition: int, queue: QueueEntry) -> Steps[QueueSettings]:
    """A replica that is created later begins with the settings of the layout. Returns the settings that the partition uses
    from now on.

    These are the settings of its queue, read after the partition: another client may have changed the queue since, and
    rely on the answer. A client that changes the queue after that writes to the partition later, and one of the two writes
    finds a conflict.
    """
    share = settings_of_partition(queue.settings)
    for _ in range(ATTEMPTS):
        stored: Stored = yield Look(partition_key(partition))
        if stored.value is None:
            return share
        present: Stored = yield Look(queue_key(queue.name))
        if present.value is None or (says := decode_queue(present.value)).queue_id != queue.queue_id:
            return share  # it is deleted
        share = settings_of_partition(says.settings)
        entry = decode_partition(stored.value)
        settings = carried(share, entry)
        if entry.settings == settings and entry.settings_version >= present.version:
            return settings
        try:
            yield Put(
                partition_key(partition),
                encode(msgspec.structs.replace(entry, settings=settings, settings_version=present.version)),
                stored.version,
            )
            return settings
        except VersionConflictError:
            continue
    return share

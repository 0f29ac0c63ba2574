"""Bugs to plant in what operators do to queues of a cluster: the patches."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from penstock.cluster.layout.decoder import ReadFailure
from penstock.cluster.layout.entries import QueueEntry, decode_partition, encode, partition_key
from penstock.cluster.layout.partition_settings import carried, settings_of_partition
from penstock.model.batch import Buffer
from penstock.model.errors import VersionConflictError
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.decision import Decision
from penstock.queue.partition import Partition
from penstock.routing import altering, browsing, sending
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.simulation.patching import Patch
from penstock.steps.step import Ask, Look, Put, Reply, Steps, Stored
from penstock.wire.messages import Purge, Send


def purges_alone() -> Sequence[Patch]:
    """The record of a purge is never written: only the primary that was asked knows of it."""

    def purge(partition: Partition, now_ms: int) -> Decision[int]:
        decision = real(partition, now_ms)
        for written in decision.records:
            partition.apply(written.record)
            partition.index -= 1  # as if nothing had been appended
        return Decision((), decision.reply)

    real = settling.purge
    return [(settling, "purge", purge)]


def purges_one_partition() -> Sequence[Patch]:
    def purge(context: RoutingContext, request: Purge) -> Steps[Reply]:
        first = context.queue(request.queue_id).partitions[0]
        reply: Reply = yield Ask(Purge(first), partition=first)
        return reply

    return [(browsing, "purge", purge)]


def carries_old_settings() -> Sequence[Patch]:
    """Who changes a queue tells its partitions what the queue said when the change began."""

    def alter_partition(partition: int, queue: QueueEntry) -> Steps[QueueSettings]:
        share = settings_of_partition(queue.settings)
        stored: Stored = yield Look(partition_key(partition))
        if stored.value is None:
            return share
        entry = decode_partition(stored.value)
        settings = carried(share, entry)
        if settings != entry.settings:
            changed = msgspec.structs.replace(entry, settings=settings)
            try:
                yield Put(partition_key(partition), encode(changed), stored.version)
            except VersionConflictError:
                return (yield from alter_partition(partition, queue))
        return settings

    return [(altering, "_alter_partition", alter_partition)]


def sends_by_name() -> Sequence[Patch]:
    """What is sent to a queue that was deleted goes to the next one of its name."""
    names: dict[int, str] = {}

    def take_queue(
        self: ClusterMap, name: str, entry: QueueEntry | None, failure: ReadFailure | None
    ) -> None:
        real(self, name, entry, failure)
        if entry is not None:
            names[entry.queue_id] = entry.name

    def send(context: RoutingContext, request: Send, body: Buffer) -> Steps[Reply]:
        if context.map.incarnation(request.queue_id) is None:
            following = context.map.ready(names.get(request.queue_id, ""))
            if following is not None:
                request = msgspec.structs.replace(request, queue_id=following.queue_id)
        return real_send(context, request, body)

    real, real_send = ClusterMap._take_queue, sending.send
    return [(ClusterMap, "_take_queue", take_queue), (sending, "send", send)]

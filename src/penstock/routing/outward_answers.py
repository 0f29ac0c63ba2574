"""Converts answers of nodes for clients: the queue's id for the partition's, numbers with their ordinal."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from penstock.model.origin import Origin
from penstock.model.runs import Runs
from penstock.routing.cluster_map import PartitionOfQueue, queue_name
from penstock.routing.numbers import client_token, outward, outward_runs
from penstock.wire.messages import (
    DeliveredBatch,
    Delivery,
    LoggedBatch,
    LogSlice,
    QueueDelivery,
    ReceiptOutcome,
)

FindHome = Callable[[int], PartitionOfQueue | None]
"""The queue and ordinal of a partition; None if they are not known any more."""


def delivery(given: Delivery, home: PartitionOfQueue, find: FindHome) -> Delivery:
    """A delivery of a partition."""
    return Delivery(
        client_token(home.queue_id, given.token), given.until_ms, batches(given.batches, home.ordinal, find)
    )


def queue_delivery(given: Delivery, home: PartitionOfQueue, find: FindHome) -> QueueDelivery:
    """The same as part of the answer to a receive from several queues."""
    said = delivery(given, home, find)
    return QueueDelivery(home.queue_id, said.token, said.until_ms, said.batches)


def batches(given: list[DeliveredBatch], ordinal: int, find: FindHome) -> list[DeliveredBatch]:
    """Batches that a partition delivered or showed."""
    if not ordinal and all(batch.origin is None for batch in given):
        return given
    return [
        msgspec.structs.replace(
            batch,
            first=outward(ordinal, batch.first),
            origin=origin(batch.origin, find) if batch.origin is not None else None,
        )
        for batch in given
    ]


def origin(given: Origin, find: FindHome) -> Origin:
    """The origin of messages, with the ids and numbers that clients knew there."""
    home = find(given.source_id)
    roots = given.roots
    if roots is not None:
        roots = [_root(partition, number, find) for partition, number in roots]
    return msgspec.structs.replace(
        given,
        source_id=home.queue_id if home is not None else given.source_id,
        source=queue_name(given.source),
        runs=outward_runs(home.ordinal, given.runs) if home is not None else given.runs,
        roots=roots,
    )


def _root(partition: int, number: int, find: FindHome) -> tuple[int, int]:
    home = find(partition)
    return (home.queue_id, outward(home.ordinal, number)) if home is not None else (partition, number)


def outcome(given: ReceiptOutcome, ordinal: int) -> ReceiptOutcome:
    """The outcome for the messages of a receipt."""
    stale: Runs = outward_runs(ordinal, given.stale)
    return given if stale is given.stale else ReceiptOutcome(given.done, given.gone, stale)


def log_slice(given: LogSlice, ordinal: int) -> LogSlice:
    """A slice of a partition's log."""
    if not ordinal:
        return given
    return LogSlice(
        [_logged(batch, ordinal) for batch in given.batches],
        outward(ordinal, given.next),
        outward(ordinal, given.end),
    )


def _logged(batch: LoggedBatch, ordinal: int) -> LoggedBatch:
    return msgspec.structs.replace(batch, first=outward(ordinal, batch.first))

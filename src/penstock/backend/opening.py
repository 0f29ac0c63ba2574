"""Opening a node's data: what recovery found becomes queues; what is damaged is fenced, never skipped silently."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from penstock.backend import log_membership
from penstock.backend.bodies import BodyReader
from penstock.backend.catalogue import Catalogue
from penstock.backend.logbook import Logbook
from penstock.backend.moves import forget_finished_origins
from penstock.backend.parts import NodeParts
from penstock.model.batch import Batch
from penstock.model.errors import PenstockError
from penstock.model.records import CATALOGUE, QueueCreated, QueueDeleted, QueueRemoved, Sent, decode_record
from penstock.queue import living_files, snapshot
from penstock.queue.partition import Partition
from penstock.queue.receipts import ReceiptSeal
from penstock.storage.errors import StorageDamagedError
from penstock.storage.recovery import Entry
from penstock.storage.store import Store


class OpeningReport(NamedTuple):
    """What an operator should know about a start."""

    queues: int
    messages: int
    replayed: int
    torn: str | None
    damages: list[str]


def open_node(store: Store, now_ms: int) -> tuple[NodeParts, OpeningReport]:
    """The queues as they were when the last acknowledged record was written."""
    parts = NodeParts(
        store, Catalogue(), Logbook(store), BodyReader(store), ReceiptSeal(store.identity.secret)
    )
    _load_snapshots(parts)
    replayed = 0
    for entry in store.recovery.entries():
        replayed += 1
        _replay(parts, entry)
    for damage in store.recovery.damages:
        if damage.partition == CATALOGUE:
            raise StorageDamagedError(
                f"the catalogue of queues is damaged: {damage}; restore it from a replica or backup"
            )
        parts.catalogue.fence(damage.partition, str(damage))
    _check_files(parts)
    forget_finished_origins(parts, now_ms)
    log_membership.restore(parts, now_ms)
    for partition in parts.catalogue.partitions.values():
        living_files.take_emptied(partition)
        parts.timed.add(partition.queue_id)
        if partition.moves or partition.queue_id in parts.catalogue.deleting:
            parts.movers.add(partition.queue_id)
    return parts, _report(parts, replayed)


def _load_snapshots(parts: NodeParts) -> None:
    sections = parts.store.recovery.snapshots
    if CATALOGUE in sections:
        _, state = sections.pop(CATALOGUE)
        parts.logbook.catalogue_index = parts.catalogue.load(state)
    for queue_id in list(sections):
        _, state = sections.pop(queue_id)
        if queue_id not in parts.catalogue.partitions:
            continue
        try:
            parts.catalogue.partitions[queue_id] = snapshot.load(state)
        except (msgspec.DecodeError, ValueError) as error:
            parts.catalogue.fence(queue_id, f"its part of the snapshot cannot be read: {error}")


def _replay(parts: NodeParts, entry: Entry) -> None:
    record = decode_record(entry.head)
    if entry.partition == CATALOGUE:
        assert isinstance(record, QueueCreated | QueueDeleted | QueueRemoved)
        parts.catalogue.apply(record)
        parts.logbook.catalogue_index = entry.index
        return
    partition = parts.catalogue.partitions.get(entry.partition)
    if partition is None or entry.partition in parts.catalogue.damage:
        return
    if entry.index != partition.index + 1:
        parts.catalogue.fence(
            entry.partition,
            f"record {partition.index + 1} is missing before position {entry.position:#x} of the journal",
        )
        return
    assert not isinstance(record, QueueCreated | QueueDeleted | QueueRemoved)
    try:
        batch = Batch(entry.payload) if isinstance(record, Sent) else None
    except PenstockError as error:
        parts.catalogue.fence(
            entry.partition, f"a stored batch at position {entry.position:#x}: {error.message}"
        )
        return
    partition.apply(record, batch, entry.position)


def _check_files(parts: NodeParts) -> None:
    """Segments that hold nothing living are removed; a missing one is found when it is read."""
    store = parts.store
    for partition in parts.catalogue.partitions.values():
        store.keep_only(partition.queue_id, living_files.files_of(partition))
    store.keep_partitions(parts.catalogue.partitions)


def _messages(partition: Partition) -> int:
    if partition.log is not None and not partition.settings.has_queue:
        return partition.log.messages
    return partition.table.messages


def _report(parts: NodeParts, replayed: int) -> OpeningReport:
    torn = parts.store.recovery.torn
    return OpeningReport(
        queues=len(parts.catalogue.names),
        messages=sum(map(_messages, parts.catalogue.partitions.values())),
        replayed=replayed,
        torn=f"{torn.file} was cut at offset {torn.offset} ({torn.bytes} bytes never acknowledged)"
        if torn
        else None,
        damages=parts.catalogue.damages(),
    )

"""Opens a node's data: turns the results of recovery into queues, and fences damaged ones; nothing is skipped silently."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from penstock.backend.admin.catalogue import Catalogue
from penstock.backend.logs import membership as log_membership
from penstock.backend.logs.waiting import ReaderRoom
from penstock.backend.node.logbook import Logbook
from penstock.backend.node.parts import NodeParts
from penstock.backend.node.whole_state import place_batches
from penstock.backend.receive.bodies import BodyReader
from penstock.backend.receive.waiting import WaitingRoom
from penstock.backend.send.moves import forget_finished_origins
from penstock.model.batch import Batch
from penstock.model.document import TooOldError
from penstock.model.errors import PenstockError
from penstock.model.records import CATALOGUE, QueueCreated, QueueDeleted, QueueRemoved, Sent, decode_record
from penstock.queue import living_files
from penstock.queue.decisions.receipts import ReceiptSeal
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot
from penstock.replication.interface import ReplicationModel
from penstock.storage.entry import BATCH, OFFSET_MASK, POSITION_SHIFT, RECORD, decode_part
from penstock.storage.errors import Damage, StorageDamagedError, StorageVersionError
from penstock.storage.journal_file import journal_name
from penstock.storage.recovery import Entry
from penstock.storage.store import Store


class OpeningReport(NamedTuple):
    """What an operator should know about a start."""

    queues: int
    messages: int
    replayed: int
    torn: str | None
    damages: list[str]
    newest_ms: int
    """When the newest message was sent: the clock must not begin before."""


def open_node(
    store: Store,
    now_ms: int,
    make_model: Callable[[NodeParts], ReplicationModel],
    cluster_secret: bytes | None = None,
) -> tuple[NodeParts, OpeningReport]:
    """The queues as they were when the last acknowledged record was written, and the model by which they are replicated.

    With a secret it is a node of a cluster: receipts are sealed with it, so that they are good on every node, and nothing
    is written to partitions before it is known who leads them.
    """
    parts = NodeParts(
        store,
        Catalogue(),
        Logbook(store),
        BodyReader(store),
        ReceiptSeal(store.identity.secret if cluster_secret is None else cluster_secret),
        waiting=WaitingRoom(of_front_ends=cluster_secret is not None),
        readers=ReaderRoom(of_front_ends=cluster_secret is not None),
    )
    if cluster_secret is not None:
        store.keep_replica_log()
        parts.catalogue.serves = set()
    _load_snapshots(parts)
    replayed = 0
    made: dict[int, int] = {}
    images: dict[int, list[bytes]] = {}
    try:
        for entry in store.recovery.entries():
            replayed += 1
            if entry.kind == RECORD:
                _replay(parts, entry, made)
            else:
                _replay_replica(parts, entry, images)
    except TooOldError as error:
        raise _too_new("the journal", error) from None
    for damage in store.recovery.damages:
        if damage.partition == CATALOGUE:
            raise _catalogue_damaged(str(damage))
        parts.catalogue.fence(damage.partition, str(damage))
    _check_unread(parts, made)
    _check_indexes(parts)
    _check_files(parts)
    parts.now_ms = now_ms
    parts.model = parts.outbox.commitment = make_model(parts)
    if cluster_secret is not None:
        return parts, _report(parts, replayed)
    forget_finished_origins(parts, now_ms)
    log_membership.restore(parts, parts.catalogue.partitions.values(), now_ms)
    for partition in parts.catalogue.partitions.values():
        living_files.take_emptied(partition)
        parts.timed.add(partition.partition_id)
        if partition.lifecycle is not None:
            parts.to_report.add(partition.partition_id)
        if partition.moves or partition.partition_id in parts.catalogue.deleting:
            parts.movers.add(partition.partition_id)
    return parts, _report(parts, replayed)


def _load_snapshots(parts: NodeParts) -> None:
    sections = parts.store.recovery.snapshots
    if CATALOGUE in sections:
        _, state = sections.pop(CATALOGUE)
        try:
            parts.logbook.catalogue_index = parts.catalogue.load(state)
        except TooOldError as error:
            raise _too_new("the snapshot", error) from None
    for partition_id in list(sections):
        _, state = sections.pop(partition_id)
        if partition_id not in parts.catalogue.partitions:
            continue
        try:
            parts.catalogue.partitions[partition_id] = snapshot.load(state)
        except TooOldError as error:
            raise _too_new("the snapshot", error) from None
        except (msgspec.DecodeError, ValueError) as error:
            _fence(parts, partition_id, f"its part of the snapshot cannot be read: {error}")


def _too_new(where: str, error: TooOldError) -> StorageVersionError:
    """Nothing has been written yet: the version that wrote it finds everything as it was."""
    return StorageVersionError(f"something in {where}: {error.message}, or start on another directory")


def _replay(parts: NodeParts, entry: Entry, made: dict[int, int]) -> None:
    record = decode_record(entry.head)
    if entry.partition == CATALOGUE:
        if not isinstance(record, QueueCreated | QueueDeleted | QueueRemoved):
            raise StorageDamagedError(
                f"the catalogue of queues is damaged: at position {entry.position:#x} of the journal it has a record "
                f"{type(record).__name__}; restore it from a replica or backup"
            )
        parts.catalogue.apply(record)
        parts.logbook.catalogue_index = entry.index
        if isinstance(record, QueueCreated):
            made[record.partition_id] = entry.position
        return
    partition = parts.catalogue.partitions.get(entry.partition)
    if partition is None or entry.partition in parts.catalogue.damage:
        return
    if entry.index != partition.index + 1:
        _fence(
            parts,
            entry.partition,
            f"record {partition.index + 1} is missing before position {entry.position:#x} of the journal",
        )
        return
    if isinstance(record, QueueCreated | QueueDeleted | QueueRemoved):
        parts.catalogue.fence(
            entry.partition,
            f"a record {type(record).__name__} of the catalogue is at position {entry.position:#x} of the journal",
        )
        return
    try:
        batch = Batch(entry.payload) if isinstance(record, Sent) else None
    except PenstockError as error:
        _fence(parts, entry.partition, f"a stored batch at position {entry.position:#x}: {error.message}")
        return
    partition.apply(record, batch, entry.position)
    if parts.store.replica_log is not None:
        parts.store.replica_log.appended(entry.partition, entry.index, entry.position)


def _replay_replica(parts: NodeParts, entry: Entry, images: dict[int, list[bytes]]) -> None:
    """Replays what came from another replica: a part of a state, or a batch that one refers to."""
    partition = parts.catalogue.partitions.get(entry.partition)
    if partition is None or (entry.partition in parts.catalogue.damage and entry.kind == BATCH):
        return
    if entry.kind == BATCH:
        sent = decode_record(entry.head)
        if not isinstance(sent, Sent):
            parts.catalogue.fence(
                entry.partition,
                f"a record {type(sent).__name__} is before a batch at position {entry.position:#x} of the journal",
            )
            return
        place_batches(partition, [(sent, entry.position)])
        return
    part, parts_in_all = decode_part(entry.head)
    if not part:
        images[entry.partition] = []
    images.setdefault(entry.partition, []).append(bytes(entry.payload))
    if part + 1 == parts_in_all and len(images[entry.partition]) == parts_in_all:
        state = b"".join(images.pop(entry.partition))
        parts.catalogue.partitions[entry.partition] = snapshot.load(state, elsewhere=True)
        parts.catalogue.damage.pop(entry.partition, None)
        if parts.store.replica_log is not None:
            parts.store.replica_log.image_replayed(entry.partition)


def _check_unread(parts: NodeParts, made: Mapping[int, int]) -> None:
    """A queue of which no record could be read may have had some: in a damaged stretch of the journal behind the record that made it."""
    recovery = parts.store.recovery
    for partition_id in (
        parts.catalogue.partitions.keys() - recovery.indexes.keys() - parts.catalogue.damage.keys()
    ):
        position = made.get(partition_id, 0)
        damage = recovery.unread(
            partition_id, journal_name(position >> POSITION_SHIFT), position & OFFSET_MASK
        )
        if damage is not None:
            parts.catalogue.fence(partition_id, str(damage))
            parts.store.fence(damage)


def _check_indexes(parts: NodeParts) -> None:
    """Every state must be at the last record that storage has read; otherwise it lacks something.

    There is one exception: a node of a cluster dropped a partition and holds it again, and has nothing of it yet. The
    journal has records of the earlier membership. `has_only_former_life` prevents that such a partition is led.
    """
    store = parts.store
    indexes = store.recovery.indexes
    expected = indexes.get(CATALOGUE, 0)
    if parts.logbook.catalogue_index != expected:
        raise _catalogue_damaged(f"it ends at record {parts.logbook.catalogue_index} instead of {expected}")
    for partition_id, partition in parts.catalogue.partitions.items():
        expected = indexes.get(partition_id, 0)
        if partition.index == expected or partition_id in parts.catalogue.damage:
            continue
        if not partition.index and store.replica_log is not None and store.replica_log.had(partition_id):
            continue
        _fence(
            parts, partition_id, f"its state ends at record {partition.index}, and the journal at {expected}"
        )


def _fence(parts: NodeParts, partition_id: int, what: str) -> None:
    """Also in storage: else the next snapshot would have the state as a good one."""
    parts.catalogue.fence(partition_id, what)
    parts.store.fence(Damage(partition_id, "", 0, what))


def _catalogue_damaged(what: str) -> StorageDamagedError:
    return StorageDamagedError(
        f"the catalogue of queues is damaged: {what}; restore it from a replica or backup"
    )


def _check_files(parts: NodeParts) -> None:
    """Segments that hold nothing living are removed; a missing one is found when it is read."""
    store = parts.store
    for partition in parts.catalogue.partitions.values():
        store.keep_only(partition.partition_id, living_files.files_of(partition))
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
        newest_ms=max(
            (partition.last_sent_ms for partition in parts.catalogue.partitions.values()), default=0
        ),
    )

"""A replica that took in a whole state, was started anew and is then cut back must not begin with its old snapshot."""

from __future__ import annotations

import random

import pytest

from penstock.backend.node.alone import Alone
from penstock.backend.node.opening import open_node
from penstock.backend.node.parts import NodeParts
from penstock.model.records import CATALOGUE, EpochBegan, QueueCreated
from penstock.model.settings import QueueSettings
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.entry import HEADER_BYTES, IMAGE
from penstock.storage.identity import Identity
from penstock.storage.journal_file import journal_name, list_journal
from penstock.storage.options import StorageOptions
from penstock.storage.scan import JournalScan
from penstock.storage.store import Store

_OPTIONS = StorageOptions(
    journal_file_bytes=64 * 1024,
    entry_bytes_max=16 * 1024,
    free_bytes_min=0,
    checkpoint_journal_bytes=2**30,
)
_QUEUE = 7
_SECRET = b"secret of a cluster"


def _open(disk: SimulatedDisk) -> NodeParts:
    store = Store.open(disk, _OPTIONS, Identity("node", b"s" * 32))
    parts, _ = open_node(store, 0, Alone, _SECRET)
    return parts


def _flush(store: Store) -> None:
    for _ in range(20):
        work, jobs = store.take_flush(), store.take_jobs()
        if work is not None:
            work.run()
            store.flushed(work)
        for job in jobs:
            job.run()
            store.job_done(job)
        if work is None and not jobs:
            return


def _checkpoint(parts: NodeParts) -> None:
    checkpoint = parts.store.begin_checkpoint()
    catalogue, partition = parts.catalogue, parts.catalogue.partitions[_QUEUE]
    index = parts.logbook.catalogue_index
    checkpoint.add(CATALOGUE, index, b"".join(catalogue.capture(index)))
    checkpoint.add(_QUEUE, partition.index, snapshot.dump(partition))
    _flush(parts.store)
    job = checkpoint.snapshot_job()
    assert job is not None
    job.run()
    parts.store.finish_checkpoint(checkpoint)


def _began(*epochs: int) -> list[PendingRecord]:
    return [PendingRecord(EpochBegan(epoch, 0)) for epoch in epochs]


def test_what_the_snapshot_holds_is_no_part_of_a_state_that_came_later() -> None:
    disk = SimulatedDisk(random.Random(1))
    parts = _open(disk)
    created = QueueCreated(_QUEUE, "orders", QueueSettings(replicas=3), 0)
    parts.logbook.write_catalogue(created)
    parts.catalogue.apply(created)
    parts.logbook.write(parts.catalogue.partitions[_QUEUE], _began(1, 2, 3, 4))
    _flush(parts.store)
    _checkpoint(parts)
    # The epochs 2 to 4 were never committed: another replica's state takes their place, and its log goes on.
    other = Partition(_QUEUE, "orders", QueueSettings(replicas=3), 0)
    for written in _began(1, 5):
        other.apply(written.record)
    parts.logbook.write_image(_QUEUE, other.index, 0, 1, snapshot.dump(other))
    parts.catalogue.partitions[_QUEUE] = other
    parts.logbook.write(other, _began(6, 7, 8, 9))
    _flush(parts.store)
    parts = _open(disk.crash())
    partition, log = parts.catalogue.partitions[_QUEUE], parts.store.replica_log
    assert [epoch for epoch, _ in partition.epochs.pairs()] == [1, 5, 6, 7, 8, 9]
    assert log is not None
    # Its state after record 5 cannot be made of record 4 as the snapshot has it: it has to come whole again.
    assert log.rebuild_job(_QUEUE, 5, lambda state, entries: None) is None
    assert log.oldest(_QUEUE) == 3


@pytest.mark.parametrize("behind", range(4))
@pytest.mark.parametrize("lost", ["contents", "header"])
def test_a_lost_state_with_lower_numbers_than_the_snapshot_is_damage(lost: str, behind: int) -> None:
    """The records behind it belong to a state that is not there: nothing may be made of them and the one from before."""
    disk = SimulatedDisk(random.Random(1))
    parts = _open(disk)
    _create(parts, _QUEUE, "orders")
    parts.logbook.write(parts.catalogue.partitions[_QUEUE], _began(1, 2, 3, 4))
    _flush(parts.store)
    _checkpoint(parts)
    other = Partition(_QUEUE, "orders", QueueSettings(replicas=3), 0)
    for written in _began(1, 5):
        other.apply(written.record)
    parts.logbook.write_image(_QUEUE, other.index, 0, 1, snapshot.dump(other))
    parts.catalogue.partitions[_QUEUE] = other
    _flush(parts.store)
    for epoch in range(6, 6 + behind):
        parts.logbook.write(other, _began(epoch))
        _flush(parts.store)
    # Another queue goes on: what stands before that was on disk.
    _create(parts, 8, "other")
    _flush(parts.store)
    _spoil_images(disk, parts.store.identity.seed, 8 if lost == "header" else None)
    after = _open(disk.reopen())
    assert _QUEUE in after.catalogue.damage
    assert 8 not in after.catalogue.damage


def _create(parts: NodeParts, partition_id: int, name: str) -> None:
    created = QueueCreated(partition_id, name, QueueSettings(replicas=3), 0)
    parts.logbook.write_catalogue(created)
    parts.catalogue.apply(created)


def _spoil_images(disk: SimulatedDisk, seed: int, at: int | None) -> None:
    spoiled = 0
    for number in list_journal(disk)[0]:
        file = disk.open(journal_name(number))
        data = file.read_at(0, file.size())
        scan = JournalScan(number, data, seed)
        for offset, header in scan.headers_after(-8):
            if header.kind == IMAGE:
                place = offset + (HEADER_BYTES + header.head_size + 20 if at is None else at)
                file.write_at(place, [bytes([data[place] ^ 0x55])])
                file.sync()
                spoiled += 1
        file.close()
    assert spoiled == 1

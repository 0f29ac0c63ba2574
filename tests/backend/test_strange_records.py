"""Records that cannot be where they are: the queue is fenced, or the start refused with a sentence; nothing ends in a traceback."""

from __future__ import annotations

import random

import pytest

from penstock.model.records import CATALOGUE, Purged, QueueRemoved, Sent, encode_record
from penstock.queue.snapshot import snapshot
from penstock.simulation.disk import SimulatedDisk
from penstock.storage.errors import StorageDamagedError, StorageVersionError
from penstock.storage.identity import Identity
from penstock.storage.store import Store
from tests.backend.harness import OPTIONS, NodeHarness
from tests.storage.test_replica_log import flush, open_store

OF_THE_CATALOGUE = encode_record(QueueRemoved(7, 1))
OF_A_QUEUE = encode_record(Purged(0, 1))
UNKNOWN_KIND = 99


def written(node: NodeHarness, partition: int, head: bytes) -> None:
    """Appends a record as the node itself would, whatever it says."""
    parts = node.node._parts
    index = (
        parts.logbook.catalogue_index
        if partition == CATALOGUE
        else parts.catalogue.partitions[partition].index
    )
    parts.store.append(partition, index + 1, head)
    node.turn()


def test_a_record_of_the_catalogue_in_the_log_of_a_queue_fences_that_queue_alone() -> None:
    node = NodeHarness()
    orders, others = node.create("orders"), node.create("others")
    node.send(others, [b"one"])
    written(node, orders, OF_THE_CATALOGUE)
    node.crash()
    assert "QueueRemoved of the catalogue" in (node.show("orders").damage or "")
    assert node.drain(others) == [b"one"]


def test_a_record_of_a_queue_in_the_catalogue_refuses_the_start_with_a_sentence() -> None:
    node = NodeHarness()
    node.create("orders")
    written(node, CATALOGUE, OF_A_QUEUE)
    with pytest.raises(StorageDamagedError, match=r"the catalogue of queues is damaged: .* record Purged"):
        node.crash()


def test_an_entry_of_a_kind_that_nobody_knows_refuses_the_start_with_a_sentence() -> None:
    disk = SimulatedDisk(random.Random(1))
    store, _, _ = open_store(disk)
    store.append(1, 1, b"one")
    store._journal.append_replica(UNKNOWN_KIND, 1, 1, b"", (), last=1)
    flush(store)
    with pytest.raises(StorageVersionError, match=f"kind {UNKNOWN_KIND}, which this version does not know"):
        Store.open(disk.crash(), OPTIONS, Identity("node", b"s" * 32))


def test_a_batch_that_makes_no_sense_fences_its_queue_alone() -> None:
    node = NodeHarness()
    orders, others = node.create("orders"), node.create("others")
    node.send(others, [b"one"])
    parts = node.node._parts
    sent = encode_record(Sent(1, 1, 0, 0, 0, 0, 0))
    parts.store.append(orders, parts.catalogue.partitions[orders].index + 1, sent, (b"no batch",))
    node.turn()
    node.crash()
    assert "a stored batch at position" in (node.show("orders").damage or "")
    assert node.drain(others) == [b"one"]


def test_a_state_that_makes_no_sense_fences_its_queue_alone() -> None:
    """Its checksum is right: another program wrote it."""
    node = NodeHarness()
    orders, others = node.create("orders"), node.create("others")
    parts = node.node._parts
    checkpoint = parts.store.begin_checkpoint()
    index = parts.logbook.catalogue_index
    checkpoint.add(CATALOGUE, index, list(parts.catalogue.capture(index)))
    for partition_id, partition in parts.catalogue.partitions.items():
        state = b"\xc1" if partition_id == orders else snapshot.dump(partition)
        checkpoint.add(partition_id, partition.index, state)
    gone = max(parts.catalogue.partitions) + 1
    checkpoint.add(gone, 0, b"of a queue that the catalogue does not know")
    node.turn()
    job = checkpoint.snapshot_job()
    assert job is not None
    job.run()
    parts.store.finish_checkpoint(checkpoint)
    node.crash()
    assert "its part of the snapshot cannot be read" in (node.show("orders").damage or "")
    node.send(others, [b"one"])
    assert node.drain(others) == [b"one"]

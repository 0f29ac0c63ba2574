"""Entries that a newer version wrote: what this one does not know of them goes with every change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.decoder import partitions_in
from penstock.cluster.layout.entries import (
    CapacityEntry,
    DrainEntry,
    LayoutEntry,
    NodeEntry,
    PartitionEntry,
    PositionsEntry,
    QueueEntry,
    UncleanEntry,
)
from penstock.model.document import DOCUMENTS, TooOldError
from penstock.model.settings import QueueSettings
from tests.cluster.obedient_cluster import ObedientCluster

SETTINGS = QueueSettings(partitions=2, max_messages=10)
QUEUE = QueueEntry(name="orders", queue_id=1, settings=SETTINGS, created_ms=5, partitions=[2, 3])
PARTITION = PartitionEntry(
    partition=2,
    queue_id=1,
    queue="orders",
    ordinal=0,
    settings=SETTINGS,
    epoch=1,
    primary="a",
    replicas=["a"],
    in_sync=["a"],
)
NODE = NodeEntry(node="a", native="a:1", peers="a:2", started_ms=1)
CAPACITY = CapacityEntry(
    queue="orders", measured_ms=1, messages=1, bytes=1, messages_per_hour=0.0, bytes_per_hour=0.0, limit="", fill=0.0,
    full_at_ms=None, partitions=1, recommended_partitions=1,
)  # fmt: skip


def planted(entry: LayoutEntry, **fields: Any) -> bytes:
    return msgspec.json.encode({**msgspec.to_builtins(entry, str_keys=True), **fields})


@pytest.mark.parametrize(
    ("decode", "entry"),
    [
        (layout.decode_queue, QUEUE),
        (layout.decode_partition, PARTITION),
        (layout.decode_drain, DrainEntry(node="a")),
        (layout.decode_unclean, UncleanEntry(partition=2, epoch=1)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_several_write_keeps_what_a_newer_version_put_there(decode: Any, entry: Any) -> None:
    read = decode(planted(entry, flavour={"sweet": [1]}))
    assert read == msgspec.structs.replace(entry, later={"flavour": {"sweet": [1]}})
    assert decode(layout.encode(read)) == read
    with pytest.raises(TooOldError):
        decode(planted(entry, needs=DOCUMENTS + 1))


@pytest.mark.parametrize(
    ("decode", "entry"),
    [
        (layout.decode_node, NODE),
        (layout.decode_positions, PositionsEntry(node="a", started_ms=1, positions={})),
        (layout.decode_capacity, CAPACITY),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_only_its_owner_writes_is_read_without_it(decode: Any, entry: Any) -> None:
    assert decode(planted(entry, flavour="sweet")) == entry


def test_the_manager_and_its_elections_change_nothing_that_they_do_not_know() -> None:
    cluster = ObedientCluster()
    cluster.create("orders", partitions=1, replicas=3)
    (seen,) = cluster.view.partitions.values()
    newer = {**msgspec.to_builtins(seen.entry), "flavour": "sweet"}
    settings = msgspec.structs.replace(seen.entry.settings, later={"taste": 7})
    cluster.change_queue("orders", settings=settings)  # whose partitions get what it has
    cluster.version += 1
    key = layout.partition_key(seen.entry.partition)
    cluster.view.apply(key, msgspec.json.encode(newer), cluster.version, cluster.now_ms)
    assert seen.entry.primary is not None
    cluster.kill(seen.entry.primary)
    cluster.settle()
    (after,) = cluster.view.partitions.values()
    assert after.entry.epoch == seen.entry.epoch + 1
    assert (after.entry.later, after.entry.settings.later) == ({"flavour": "sweet"}, {"taste": 7})


def test_the_manager_leaves_alone_what_it_is_too_old_for() -> None:
    cluster = ObedientCluster()
    cluster.create("orders", partitions=1, replicas=3)
    (partition,) = cluster.view.partitions
    entry = cluster.view.partitions[partition].entry
    key = layout.partition_key(partition)
    cluster.version += 1
    cluster.view.apply(key, planted(entry, needs=DOCUMENTS + 1), cluster.version, cluster.now_ms)
    assert entry.primary is not None
    cluster.kill(entry.primary)
    cluster.settle()
    assert partition not in cluster.view.partitions, "nothing was written over it"
    assert "this process is too old for it" in cluster.view.unreadable[key]
    assert "orders" in cluster.view.queues


def test_entries_that_cannot_be_read_do_not_hide_the_others() -> None:
    values = [
        layout.encode(PARTITION),
        planted(PARTITION, needs=DOCUMENTS + 1),
        b"{",
        layout.encode(PARTITION),
    ]
    stored = [(layout.partition_key(1), value, version) for version, value in enumerate(values)]
    assert list(partitions_in(stored)) == [(PARTITION, 0), (PARTITION, 3)]

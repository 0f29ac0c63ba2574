"""An entry of the layout goes from the store and comes back: an operator, or the restoring of a prefix. What was consumed stays so."""

from __future__ import annotations

import msgspec
import pytest

from penstock.cluster.layout.deletion import given_up
from penstock.cluster.layout.entries import PartitionEntry
from penstock.replication.primary_secondary.node import layout_view
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_many_journeys import everything
from tests.replication.primary_secondary.node.test_settled_arrivals import (
    AGAIN,
    SOURCE,
    TARGET,
    arrived_without_a_word,
    consume,
    lose_entry,
    partition_of,
)


@pytest.mark.parametrize("deleted", [False, True])
def test_an_entry_that_is_missing_for_a_moment_does_not_double_what_arrived(deleted: bool) -> None:
    """Somebody takes the entry of the source out of the store, and puts it back. `deleted`: so is the queue that they arrived in."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    entry = cluster.entry(SOURCE)
    if deleted:
        cluster.delete(TARGET)
    lose_entry(cluster, SOURCE)
    cluster.settle(60_000, step_ms=500)
    started_ms = cluster.machines["c"].started_ms
    cluster.put(
        msgspec.structs.replace(entry, epoch=2, primary="c", primary_started_ms=started_ms, in_sync=["c"])
    )
    cluster.parted.clear()
    cluster.settle(8_000)
    assert everything(cluster, SOURCE) == []
    assert not partition_of(cluster, cluster.serving(SOURCE).name, SOURCE).moves
    if deleted:
        assert cluster.entry(TARGET).retired
    else:
        assert everything(cluster, TARGET) == []


def test_an_entry_that_is_missing_for_long_does_not_hold_a_deleted_target() -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    lose_entry(cluster, SOURCE)
    cluster.delete(TARGET)
    cluster.settle(300_000, step_ms=1_000)
    assert not cluster.entry(TARGET).retired
    assert "its entry is missing in the metadata store" in cluster.entry(TARGET).reason
    cluster.settle(310_000, step_ms=1_000)
    assert cluster.entry(TARGET).retired


def test_a_target_whose_entry_is_missing_for_a_moment_keeps_what_arrived() -> None:
    """The source does not take its messages back meanwhile."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    entry = cluster.entry(TARGET)
    lose_entry(cluster, TARGET)
    cluster.settle(60_000, step_ms=500)
    cluster.put(msgspec.structs.replace(entry, epoch=2))
    cluster.parted.clear()
    cluster.settle(8_000)
    assert everything(cluster, SOURCE) == []
    assert everything(cluster, TARGET) == []
    assert not partition_of(cluster, "a", SOURCE).moves


@pytest.mark.parametrize("made_again", [False, True])
def test_a_deleted_target_whose_entry_is_missing_for_a_moment_is_still_asked(made_again: bool) -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    cluster.delete(TARGET)
    _name_queue(cluster, None)
    cluster.settle(1_000)
    if made_again:
        cluster.create("target", AGAIN, ("c",))
        cluster.settle(1_000)
    entry = cluster.entry(TARGET)
    assert not entry.retired
    lose_entry(cluster, TARGET)
    cluster.settle(3_000)
    cluster.put(msgspec.structs.replace(entry, epoch=entry.epoch + 1))
    cluster.parted.clear()
    cluster.settle(8_000)
    _assert_nothing_is_left(cluster)
    if made_again:
        assert everything(cluster, AGAIN) == []


def test_a_target_whose_queue_is_missing_too_keeps_what_arrived() -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    entry = cluster.entry(TARGET)
    _name_queue(cluster, None)
    lose_entry(cluster, TARGET)
    cluster.settle(3_000)
    cluster.put(msgspec.structs.replace(entry, epoch=2))
    cluster.parted.clear()
    cluster.settle(8_000)
    _assert_nothing_is_left(cluster)


def test_a_deleted_target_waits_for_a_source_that_its_node_has_not_heard_of() -> None:
    """The node of the target starts while the entry of the source is missing."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    lost = cluster.entry(SOURCE)
    lose_entry(cluster, SOURCE)
    cluster.machines["b"].crash()
    cluster.machines["b"].start()
    cluster.settle(1_000)
    cluster.delete(TARGET)
    cluster.settle(3_000)
    assert not cluster.entry(TARGET).retired
    assert "its entry is not in the metadata store" in cluster.entry(TARGET).reason
    _come_back(cluster, lost)
    _assert_nothing_is_left(cluster)
    assert cluster.entry(TARGET).retired


def test_an_entry_that_could_not_be_read_and_is_missing_then_is_waited_for() -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    lost = cluster.entry(SOURCE)
    node = cluster.machines["b"].node
    assert node is not None
    node.replication.partition_gone(SOURCE, cluster.now_ms, unreadable=True)
    cluster.settle(100)
    lose_entry(cluster, SOURCE)
    cluster.settle(500)
    _come_back(cluster, lost)
    _assert_nothing_is_left(cluster)
    assert everything(cluster, TARGET) == []


def test_the_oldest_partitions_that_ended_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout_view, "ENDED_AT_MOST", 2)
    cluster = arrived_without_a_word()
    view = layout_view.LayoutView()
    for version, partition in enumerate((11, 12, 13), 1):
        entry = msgspec.structs.replace(cluster.entry(SOURCE), partition=partition)
        view.put(given_up(entry, "its queue is deleted"), version)
        view.gone(partition, 1_000)
    assert list(view.ended) == [12, 13]


def _name_queue(cluster: Cluster, partition: int | None) -> None:
    for machine in cluster.machines.values():
        if machine.node is not None:
            machine.node.replication.queue_named("target", partition, cluster.now_ms)


def _come_back(cluster: Cluster, entry: PartitionEntry) -> None:
    """The entry of the source is put back, with another primary."""
    started_ms = cluster.machines["c"].started_ms
    cluster.put(
        msgspec.structs.replace(entry, epoch=2, primary="c", primary_started_ms=started_ms, in_sync=["c"])
    )
    cluster.parted.clear()
    cluster.settle(8_000)


def _assert_nothing_is_left(cluster: Cluster) -> None:
    assert everything(cluster, SOURCE) == []
    assert not partition_of(cluster, cluster.serving(SOURCE).name, SOURCE).moves

"""Moves, drains and deletions, decision by decision, as an operator would see them."""

from __future__ import annotations

import msgspec
import pytest

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.entries import PartitionEntry, QueueEntry
from penstock.cluster.manager.placement import Census
from penstock.model.settings import QueueSettings
from tests.cluster.obedient_cluster import SETTINGS, ObedientCluster


def secondaries(entry: PartitionEntry) -> list[str]:
    return [node for node in entry.replicas if node != entry.primary]


# --- replicas -----------------------------------------------------------------------------------------------


def test_a_node_gone_for_long_is_replaced_and_drops_its_replica_when_it_returns() -> None:
    cluster = ObedientCluster(nodes=4)
    (partition,) = cluster.create("orders")
    lost = secondaries(cluster.entry(partition))[0]
    cluster.kill(lost)
    cluster.now_ms += SETTINGS.replace_after_ms - 60_000
    cluster.settle()
    assert lost in cluster.entry(partition).replicas, "it may come back"
    cluster.now_ms += SETTINGS.replace_after_ms
    done = cluster.settle()
    after = cluster.entry(partition)
    assert lost not in after.replicas
    assert (len(after.replicas), set(after.in_sync)) == (3, set(after.replicas))
    assert after.leaving == [lost]
    assert any("has been gone for long" in change.reason for change in done)
    cluster.start(lost)
    cluster.settle()
    assert cluster.entry(partition).leaving == []


def test_nobody_is_taken_off_before_the_new_one_is_in_sync() -> None:
    cluster = ObedientCluster(nodes=4)
    (partition,) = cluster.create("orders")
    leaving = secondaries(cluster.entry(partition))[0]
    cluster.drain(leaving)
    cluster.manage()
    new = cluster.entry(partition)
    assert len(new.replicas) == 4
    cluster.now_ms += 60_000
    assert cluster.decide() == []
    cluster.change(partition, in_sync=new.replicas)
    cluster.now_ms += SETTINGS.settle_ms
    cluster.manage()
    assert leaving not in cluster.entry(partition).replicas


def test_a_drained_node_hands_over_first_and_is_empty_then() -> None:
    cluster = ObedientCluster(nodes=4)
    ids = cluster.create("orders", partitions=8)
    cluster.drain("n1", remove=True)
    done = cluster.settle()
    for partition in ids:
        entry = cluster.entry(partition)
        assert "n1" not in (entry.primary, *entry.replicas, *entry.leaving)
        assert len(entry.replicas) == len(entry.in_sync) == 3
    assert any("hands over" in change.reason for change in done)
    assert "n1" in cluster.view.drains, "it lives, and is kept empty"
    cluster.kill("n1")
    (removed,) = cluster.settle()
    assert (removed.key, removed.entry) == (layout.drain_key("n1"), None)


def test_without_a_spare_node_a_drain_leaves_fewer_replicas_but_never_too_few() -> None:
    cluster = ObedientCluster(nodes=3)
    ids = cluster.create("orders", partitions=3)
    cluster.drain("n0")
    cluster.settle()
    assert all(set(cluster.entry(one).replicas) == {"n1", "n2"} for one in ids)
    cluster.drain("n1")
    cluster.settle()
    assert all(set(cluster.entry(one).replicas) == {"n1", "n2"} for one in ids), "two must be in sync"
    assert all(cluster.entry(one).primary == "n2" for one in ids)


def test_replicas_grow_and_shrink_with_the_settings() -> None:
    cluster = ObedientCluster(nodes=3)
    ids = cluster.create("orders", partitions=2, replicas=1)
    for wanted in (3, 2, 1):
        settings = msgspec.structs.replace(cluster.view.queues["orders"].entry.settings, replicas=wanted)
        cluster.change_queue("orders", settings=settings)
        cluster.settle()
        for partition in ids:
            entry = cluster.entry(partition)
            assert entry.settings == settings
            assert (len(entry.replicas), set(entry.in_sync)) == (wanted, set(entry.replicas))
            assert entry.leaving == []


def test_a_manager_that_knows_an_older_queue_does_not_take_back_its_change() -> None:
    """It has heard of the partition, not yet of the queue: somebody was answered that the queue is `sync` now."""
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders", replication="async")
    known = cluster.view.queues["orders"]
    settings = msgspec.structs.replace(known.entry.settings, replication="sync")
    cluster.change(partition, settings=settings, settings_version=known.version + 1)
    assert cluster.settle() == []
    assert cluster.entry(partition).settings == settings


def test_limits_of_a_queue_are_shared_out_over_its_partitions() -> None:
    cluster = ObedientCluster()
    ids = cluster.create("orders", partitions=3, max_messages=9)
    assert cluster.settle() == []
    settings = msgspec.structs.replace(cluster.view.queues["orders"].entry.settings, max_messages=100)
    cluster.change_queue("orders", settings=settings)
    assert [change.reason for change in cluster.settle()] == ["the settings of orders were changed"] * 3
    assert [cluster.entry(partition).settings.max_messages for partition in ids] == [34, 34, 34]


def test_a_removed_node_need_not_drop_anything() -> None:
    cluster = ObedientCluster(nodes=4)
    (partition,) = cluster.create("orders")
    lost = secondaries(cluster.entry(partition))[0]
    cluster.kill(lost)
    cluster.drain(lost, remove=True)
    cluster.settle()
    assert lost not in (*cluster.entry(partition).replicas, *cluster.entry(partition).leaving)
    assert cluster.view.drains == {}


@pytest.mark.parametrize("leaves", [False, True])
def test_a_removed_node_that_comes_back_drops_what_it_held_before_it_is_given_anything(leaves: bool) -> None:
    """`leaves`: it was to drop its replica already when it was removed."""
    cluster = ObedientCluster(nodes=3)
    (partition,) = cluster.create("orders", replicas=2)
    lost = secondaries(cluster.entry(partition))[0]
    cluster.kill(lost)
    if leaves:
        left = [node for node in cluster.entry(partition).replicas if node != lost]
        cluster.change(partition, replicas=left, in_sync=left, leaving=[lost])
    cluster.drain(lost, remove=True)
    cluster.settle()
    assert cluster.entry(partition).former == [lost]
    cluster.change_queue("orders", settings=QueueSettings(replicas=3))
    cluster.start(lost)
    cluster.now_ms += 60_000
    reasons = [change.reason for change in cluster.settle() if lost in change.reason]
    assert reasons[0] == f"{lost} was removed, has come back, and must drop its former replica"
    assert f"{lost} gets a replica" in reasons[-1]
    assert (cluster.entry(partition).former, cluster.entry(partition).leaving) == ([], [])
    assert lost in cluster.entry(partition).in_sync


# --- spreading ----------------------------------------------------------------------------------------------


def moves(done: list[Change]) -> int:
    return sum("gets a replica" in change.reason for change in done)


def spread(cluster: ObedientCluster, counts: dict[str, int]) -> int:
    held = [counts.get(node.node, 0) for node in cluster.view.members.places()]
    return max(held) - min(held)


def census(cluster: ObedientCluster) -> Census:
    return Census(seen.entry for seen in cluster.view.partitions.values())


def test_a_new_node_gets_its_share_with_few_moves() -> None:
    cluster = ObedientCluster(nodes=5, zones=1)
    cluster.create("orders", partitions=40)
    cluster.start("new", "z0")
    done = cluster.settle()
    assert moves(done) <= 40 * 3 // 6 + 3, "hardly more than it holds in the end"
    assert spread(cluster, census(cluster).held) <= 1
    assert spread(cluster, census(cluster).led) <= 2


def test_a_node_that_leaves_moves_only_what_it_held() -> None:
    cluster = ObedientCluster(nodes=6, zones=1)
    cluster.create("orders", partitions=40)
    held = census(cluster).held["n3"]
    cluster.drain("n3")
    done = cluster.settle()
    assert moves(done) <= held + 3
    assert spread(cluster, census(cluster).held) <= 1


def test_moves_are_few_at_once() -> None:
    cluster = ObedientCluster(nodes=4, zones=1)
    cluster.create("orders", partitions=60)
    cluster.start("new", "z0")
    cluster.now_ms += 60_000
    assert len(cluster.manage()) == SETTINGS.moves_at_once
    cluster.now_ms += 60_000
    assert cluster.decide() == [], "none of them is in sync yet"


def test_a_busy_node_is_given_nothing_only_to_spread() -> None:
    cluster = ObedientCluster(nodes=3, zones=1)
    cluster.create("orders", partitions=9)
    cluster.start("new", "z0", load=0.9)
    assert cluster.settle() == []


def test_replicas_move_to_a_zone_that_was_not_there_before() -> None:
    cluster = ObedientCluster(nodes=4, zones=1)
    ids = cluster.create("orders", partitions=3, replicas=2)
    cluster.start("far", "other")
    cluster.settle()
    for partition in ids:
        assert "far" in cluster.entry(partition).replicas
        assert len(cluster.entry(partition).replicas) == 2


def test_primaries_go_back_to_a_node_that_returned_but_not_at_once() -> None:
    cluster = ObedientCluster(nodes=3)
    cluster.create("orders", partitions=9)
    cluster.kill("n0")
    cluster.settle()
    assert census(cluster).led.get("n0", 0) == 0
    cluster.start("n0", "z0")
    cluster.now_ms += 1_200
    cluster.obey()
    cluster.now_ms += 1_200
    assert cluster.decide() == [], "it has hardly begun to live"
    cluster.settle()
    assert spread(cluster, census(cluster).led) <= 1


# --- handing over -------------------------------------------------------------------------------------------


def test_a_primary_that_does_not_hand_over_is_helped_where_that_is_safe() -> None:
    for replication, expected in (("sync", 2), ("async", 1)):
        cluster = ObedientCluster()
        (partition,) = cluster.create("orders", replication=replication)
        successor = secondaries(cluster.entry(partition))[0]
        cluster.change(partition, hand_over_to=successor)
        cluster.now_ms += SETTINGS.hand_over_ms - 1
        assert cluster.decide() == []
        cluster.now_ms += 1
        cluster.manage()
        after = cluster.entry(partition)
        assert (after.epoch, after.hand_over_to) == (expected, None)
        assert (after.primary == successor) == (replication == "sync")


def test_a_handing_over_is_called_off_when_the_successor_falls_behind() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    entry = cluster.entry(partition)
    first, second = secondaries(entry)
    cluster.change(partition, hand_over_to=first, in_sync=[entry.primary, second])
    cluster.manage()
    assert cluster.entry(partition).hand_over_to is None
    assert cluster.entry(partition).epoch == 1


# --- deletion -----------------------------------------------------------------------------------------------


def test_a_deleted_queue_goes_once_nothing_of_it_is_on_its_way_and_its_nodes_have_dropped_it() -> None:
    cluster = ObedientCluster()
    ids = cluster.create("orders", partitions=2)
    cluster.on_their_way = {ids[0]}
    cluster.change_queue("orders", state="deleting")
    cluster.manage()
    for partition in ids:
        entry = cluster.entry(partition)
        assert entry.deleted
        assert len(entry.replicas) == len(entry.in_sync) == 3
        assert entry.primary is not None
    cluster.settle()
    assert set(cluster.view.partitions) == {ids[0]}, "messages are still to leave it"
    assert cluster.view.queues == {}, "its name is free before that"
    cluster.on_their_way = set()
    cluster.settle()
    assert cluster.view.partitions == {}


def test_the_name_of_a_deleted_queue_is_free_when_all_of_its_partitions_know_it() -> None:
    cluster = ObedientCluster()
    ids = cluster.create("orders", partitions=2)
    cluster.on_their_way = set(ids)
    cluster.change_queue("orders", state="deleting")
    changes = cluster.decide()
    assert {change.key for change in changes} == {layout.partition_key(partition) for partition in ids}
    cluster.put(changes[0].key, changes[0].entry)  # whoever manages dies here
    assert {change.key for change in cluster.decide()} == {changes[1].key}
    cluster.manage()
    (change,) = cluster.decide()
    assert (change.key, change.entry) == (layout.queue_key("orders"), None)


def test_a_partition_of_a_deleted_queue_gets_a_primary_and_replicas_like_any_other() -> None:
    cluster = ObedientCluster(nodes=4)
    (partition,) = cluster.create("orders")
    cluster.on_their_way = {partition}
    cluster.change_queue("orders", state="deleting")
    cluster.settle()
    primary = cluster.entry(partition).primary
    assert primary is not None
    cluster.kill(primary)
    cluster.settle()
    entry = cluster.entry(partition)
    assert (entry.epoch, entry.serving) == (2, 2)
    cluster.now_ms += SETTINGS.replace_after_ms
    cluster.settle()
    assert len(cluster.entry(partition).in_sync) == 3
    assert primary not in cluster.entry(partition).replicas
    cluster.on_their_way = set()
    cluster.settle()
    assert cluster.entry(partition).leaving == [primary], "which may still hold what it held"


def test_a_partition_that_never_served_is_given_up_at_once() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    cluster.change(partition, serving=0, primary=None)
    cluster.change_queue("orders", state="deleting")
    cluster.manage()
    assert cluster.entry(partition).retired
    assert "nothing was ever sent to it" in cluster.entry(partition).reason


def test_a_partition_whose_nodes_were_all_removed_is_given_up() -> None:
    cluster = ObedientCluster(nodes=4)
    (partition,) = cluster.create("orders", replicas=2)
    replicas = cluster.entry(partition).replicas
    cluster.on_their_way = {partition}
    for node in replicas:
        cluster.kill(node)
    cluster.change_queue("orders", state="deleting")
    cluster.settle()
    assert cluster.entry(partition).replicas == replicas
    for node in replicas:
        cluster.drain(node, remove=True)
    cluster.settle()
    assert cluster.view.partitions == {}


def test_a_node_that_is_gone_holds_up_the_clean_up_but_not_the_name() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    cluster.kill("n2")
    cluster.settle()
    cluster.change_queue("orders", state="deleting")
    cluster.settle()
    assert cluster.view.queues == {}
    assert cluster.entry(partition).leaving == ["n2"]
    cluster.start("n2")
    cluster.settle()
    assert cluster.view.partitions == {}


def test_a_partition_without_its_queue_is_left_alone() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    cluster.put(layout.queue_key("orders"), None)
    cluster.now_ms += 10**9
    assert cluster.settle() == []
    other = QueueEntry(
        name="orders",
        queue_id=900,
        settings=cluster.entry(partition).settings,
        created_ms=0,
        partitions=[],
        state="deleting",
    )
    cluster.put(layout.queue_key("orders"), other)
    cluster.settle()
    assert cluster.entry(partition).serving == 1, "another queue of the same name is another queue"


def test_what_cannot_be_read_is_left_alone() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    cluster.view.apply(layout.partition_key(partition), b"{}", 999, cluster.now_ms)
    assert partition not in cluster.view.partitions
    assert list(cluster.view.unreadable) == [layout.partition_key(partition)]
    cluster.kill("n0")
    assert cluster.settle() == []


# --- queues that were never made ----------------------------------------------------------------------------


def half_made(cluster: ObedientCluster, name: str) -> list[int]:
    """The partitions of a queue whose maker died before it wrote the queue."""
    ids = cluster.create(name, partitions=2)
    cluster.put(layout.queue_key(name), None)
    for partition in ids:
        cluster.change(partition, made_ms=cluster.now_ms)
    return ids


def test_partitions_of_a_queue_that_was_never_made_are_deleted_after_a_while() -> None:
    cluster = ObedientCluster()
    ids = half_made(cluster, "orders")
    cluster.settle()
    assert set(ids) <= set(cluster.view.partitions), "somebody may be at it"
    cluster.now_ms += SETTINGS.abandoned_ms
    (change,) = cluster.decide()
    assert (change.key, change.version) == (layout.queue_key("orders"), 0), (
        "only where there is no such queue"
    )
    assert isinstance(change.entry, QueueEntry)
    assert change.entry.state == "deleting"
    cluster.settle()
    assert not cluster.view.partitions
    assert not cluster.view.queues


def test_they_are_deleted_too_where_another_made_the_queue_since() -> None:
    cluster = ObedientCluster()
    ids = half_made(cluster, "orders")
    kept = cluster.create("orders")
    cluster.now_ms += SETTINGS.abandoned_ms
    cluster.settle()
    assert not set(ids) & set(cluster.view.partitions)
    assert set(kept) == set(cluster.view.partitions)
    assert cluster.view.queues["orders"].entry.state == "ready"


def test_old_partitions_are_left_alone_whatever_became_of_their_queue() -> None:
    cluster = ObedientCluster()
    ids = half_made(cluster, "orders")
    cluster.now_ms += SETTINGS.never_abandoned_ms
    assert cluster.settle() == []
    assert set(ids) <= set(cluster.view.partitions)


def test_a_queue_that_cannot_be_read_is_not_missing() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders")
    cluster.change(partition, made_ms=cluster.now_ms)
    cluster.version += 1
    cluster.view.apply(layout.queue_key("orders"), b"{of a newer version", cluster.version, cluster.now_ms)
    cluster.now_ms += SETTINGS.abandoned_ms
    cluster.settle()
    assert partition in cluster.view.partitions


def test_partitions_that_took_messages_are_kept_though_their_queue_is_missing() -> None:
    """Somebody without the secret can delete the entry of a queue; its primaries know that it was made."""
    cluster = ObedientCluster()
    ids = half_made(cluster, "orders")
    cluster.took_messages.update(ids)
    cluster.now_ms += SETTINGS.abandoned_ms
    cluster.settle()
    assert set(ids) == set(cluster.view.partitions)
    for seen in cluster.view.partitions.values():
        assert (seen.entry.kept, seen.entry.deleted, len(seen.entry.replicas)) == (True, False, 3)
    assert not cluster.view.queues, "the name is not taken for ever"
    assert cluster.decide() == []


def test_they_are_kept_too_where_another_made_the_queue_since() -> None:
    cluster = ObedientCluster()
    ids = half_made(cluster, "orders")
    cluster.took_messages.update(ids)
    cluster.create("orders")
    cluster.now_ms += SETTINGS.abandoned_ms
    cluster.settle()
    assert set(ids) < set(cluster.view.partitions)
    assert all(cluster.view.partitions[one].entry.replicas for one in ids)


def test_they_are_kept_though_all_of_their_nodes_seem_to_be_removed() -> None:
    """The words of operators have no seals, and entries of nodes can be deleted."""
    cluster = ObedientCluster()
    ids = half_made(cluster, "orders")
    cluster.took_messages.update(ids)
    for name in ("n0", "n1", "n2"):
        cluster.kill(name)
        cluster.put(layout.drain_key(name), layout.DrainEntry(node=name, remove=True))
    cluster.now_ms += SETTINGS.abandoned_ms
    cluster.settle()
    assert all(cluster.view.partitions[one].entry.replicas for one in ids)


# --- more replicas ------------------------------------------------------------------------------------------


def test_more_replicas_are_made_before_they_are_asked_for_words() -> None:
    cluster = ObedientCluster()
    (partition,) = cluster.create("orders", replicas=1)
    settings = msgspec.structs.replace(cluster.view.queues["orders"].entry.settings, replicas=3)
    cluster.change_queue("orders", settings=settings)
    cluster.now_ms += SETTINGS.settle_ms
    cluster.manage()
    entry = cluster.entry(partition)
    assert (len(entry.replicas), entry.settings.least_in_sync) == (2, 1), "sends go on while it catches up"
    cluster.settle()
    after = cluster.entry(partition)
    assert (len(after.in_sync), after.settings.replicas, after.settings.least_in_sync) == (3, 3, 2)

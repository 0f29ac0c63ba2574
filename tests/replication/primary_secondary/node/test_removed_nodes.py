"""A node that an operator removed comes back with its old disk: what it has of before counts for nothing."""

from __future__ import annotations

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import DrainEntry, PartitionEntry, QueueEntry
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.decide import decide
from tests.replication.primary_secondary.node.loose_cluster import LooseCluster
from tests.replication.primary_secondary.node.test_numbers import unclean, with_a_stray

REMOVED = "a"


def manage(cluster: LooseCluster, removed: tuple[str, ...] = ()) -> None:
    """One look of the manager; nodes in `removed` will not come back, as an operator says."""
    entry, version = cluster.entries[1]
    living = next(machine.node for machine in cluster.machines.values() if machine.node is not None)
    view = ClusterView()
    for name, node in living.replication.state.nodes.items():
        view.apply(layout.node_key(name), layout.encode(node), 1, 0)
    for name in removed:
        view.apply(layout.drain_key(name), layout.encode(DrainEntry(node=name, remove=True)), 1, 0)
    queue = QueueEntry(name="q", queue_id=1, settings=entry.settings, created_ms=1, partitions=[1])
    view.apply(layout.queue_key("q"), layout.encode(queue), 1, 0)
    view.apply(layout.partition_key(1), layout.encode(entry), version, 0)
    for change in decide(view, cluster.now_ms):
        if isinstance(change.entry, PartitionEntry):
            cluster.put(change.entry)


def has(cluster: LooseCluster, name: str) -> bool:
    node = cluster.machines[name].node
    assert node is not None
    return 1 in node.replication.state.parts.catalogue.partitions


def test_a_removed_node_that_comes_back_drops_what_it_had_before_it_holds_the_partition_again() -> None:
    """It has a message that was never committed, and the number of that message was given to another one since."""
    cluster = LooseCluster(replication="sync", consumption="both", min_in_sync=1)
    with_a_stray(cluster)
    cluster.machines[REMOVED].crash()
    for name in ("b", "c"):
        cluster.machines[name].start()
    cluster.settle(3_000)
    manage(cluster, (REMOVED,))
    assert cluster.entry().replicas == ["b", "c"]
    cluster.settle(1_000)
    assert cluster.entry().dense == []
    cluster.machines[REMOVED].start()
    for _ in range(10):
        cluster.settle(200)
        manage(cluster)
        if REMOVED in cluster.entry().replicas:
            break
    for name in ("b", "c"):
        cluster.machines[name].crash()
    cluster.settle(500)
    unclean(cluster, REMOVED)
    cluster.settle(2_000)
    if cluster.entry().serving == cluster.entry().epoch:
        assert cluster.read_on(1) == [(1, b"all")]
    assert not cluster.partition_at(REMOVED).totals.sent
    for name in ("b", "c"):
        cluster.machines[name].start()
    unclean(cluster, "b")
    cluster.settle(4_000)
    assert cluster.read_on(1) == [(1, b"all"), (2, b"told")]
    assert cluster.entry().in_sync == ["b", "c", REMOVED]


def test_the_last_replica_of_a_node_that_was_removed_need_not_be_dropped_twice() -> None:
    """It comes back with an empty disk."""
    cluster = LooseCluster(replication="sync")
    cluster.machines["c"].crash()
    cluster.settle(3_000)
    manage(cluster, ("c",))
    assert (cluster.entry().replicas, cluster.entry().former) == (["a", "b"], ["c"])
    machine = cluster.add("c", type(cluster.machines["c"].disk)(cluster.random))
    machine.start()
    manage(cluster)
    assert (cluster.entry().leaving, cluster.entry().former) == (["c"], [])
    cluster.settle(500)
    assert (cluster.entry().leaving, has(cluster, "c")) == ([], False)
    manage(cluster)
    cluster.settle(3_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]

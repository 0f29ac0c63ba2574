"""A replica that is not wanted any more is dropped, and that is said only when the disk knows it too."""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import PartitionEntry
from tests.replication.primary_secondary.node.cluster import Cluster


def test_a_node_says_that_it_has_dropped_a_replica_when_that_is_on_disk() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    machine = cluster.machines["c"]
    node = machine.node
    assert node is not None
    assert machine.flush is None
    entry, version = cluster.entries[1]
    gone = msgspec.structs.replace(entry, replicas=["a", "b"], in_sync=["a", "b"], leaving=["c"])
    node.replication.apply_layout([(gone, version + 1)], cluster.now_ms)
    assert 1 not in node._parts.catalogue.partitions

    def said() -> list[PartitionEntry]:
        """What it wants of the layout within a while, without its disk getting on."""
        found = []
        for _ in range(20):
            cluster.now_ms += 20
            node.tick(cluster.now_ms)
            found += [proposal.entry for proposal in node.replication.take_proposals(cluster.now_ms)]
        return found

    assert said() == []
    flush = node.take_flush()
    assert flush is not None
    flush.run()
    node.flushed(flush, cluster.now_ms)
    assert said() == [msgspec.structs.replace(gone, leaving=[])]

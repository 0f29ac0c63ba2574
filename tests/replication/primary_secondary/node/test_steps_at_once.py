"""What somebody waits for is asked of the store in the turn that makes it possible: no look at intervals is in between."""

from __future__ import annotations

import msgspec

from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import send


def stand_still(cluster: Cluster, steps: int = 4) -> None:
    """Everybody gets on with everything, and no time passes."""
    for _ in range(steps):
        cluster.step()


def test_a_planned_move_takes_no_time_of_its_own() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    send(cluster, b"one")
    for epoch, successor in ((2, "b"), (3, "c"), (4, "a")):
        cluster.put(msgspec.structs.replace(cluster.entry(), hand_over_to=successor))
        stand_still(cluster)
        assert (cluster.entry().epoch, cluster.entry().serving) == (epoch, epoch)
        assert cluster.leader is cluster.machines[successor]
    send(cluster, b"two")


def test_new_queues_are_served_without_time_passing() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    for partition in (2, 3, 4):
        cluster.create(f"q{partition}", partition, ("b", "a", "c"))
        stand_still(cluster)
        assert cluster.entry(partition).serving == 1


def test_a_failover_waits_for_nothing_but_the_election() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    send(cluster, b"one")
    cluster.machines["a"].crash()
    stand_still(cluster)
    assert (cluster.entry().epoch, cluster.entry().serving) == (2, 2)

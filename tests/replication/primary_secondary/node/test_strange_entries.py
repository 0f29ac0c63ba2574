"""Sealed entries that are out of place: of another queue under the same id, or of an epoch that is over. No data goes by them."""

from __future__ import annotations

import logging

import msgspec
import pytest

from penstock.cluster.layout.deletion import given_up, marked
from penstock.cluster.layout.entries import PartitionEntry
from penstock.queue.partition import Partition
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import send
from tests.replication.primary_secondary.node.test_restoring import received

BODIES = [b"top secret %d" % number for number in range(3)]


def vault(*nodes: str) -> Cluster:
    """A queue with messages on some of the nodes."""
    cluster = Cluster()
    cluster.create("vault", nodes=nodes)
    cluster.settle(500)
    for body in BODIES:
        send(cluster, body)
    cluster.settle(200)
    return cluster


def of_mallory(cluster: Cluster, *nodes: str, epoch: int = 1) -> PartitionEntry:
    """The entry of another queue that was given the same id, led by the first of the nodes."""
    return PartitionEntry(
        partition=1,
        queue_id=1,
        queue="mallory",
        ordinal=0,
        settings=cluster.entry().settings,
        epoch=epoch,
        primary=nodes[0],
        primary_started_ms=cluster.machines[nodes[0]].started_ms,
        replicas=list(nodes),
        in_sync=list(nodes),
    )


def replica(cluster: Cluster, name: str) -> Partition:
    node = cluster.machines[name].node
    assert node is not None
    return node.replication.state.parts.catalogue.partitions[1]


def lose_entry(cluster: Cluster) -> None:
    """Somebody has deleted the entry in the store."""
    for machine in cluster.machines.values():
        assert machine.node is not None
        machine.node.replication.partition_gone(1, cluster.now_ms)


def assert_untouched(cluster: Cluster, *nodes: str) -> None:
    for name in nodes:
        partition = replica(cluster, name)
        assert partition.name == "vault"
        assert partition.totals.sent == len(BODIES)


def elected(cluster: Cluster, entry: PartitionEntry) -> PartitionEntry:
    """The entry of an epoch that no node has seen, so that the primary may begin it."""
    assert entry.primary is not None
    started_ms = cluster.machines[entry.primary].started_ms
    return msgspec.structs.replace(entry, epoch=entry.epoch + 10, primary_started_ms=started_ms)


def test_no_node_leads_another_queues_data(caplog: pytest.LogCaptureFixture) -> None:
    cluster = vault("a", "b")
    right = cluster.entry()
    lose_entry(cluster)
    with caplog.at_level(logging.ERROR, "penstock.backend"):
        cluster.put(of_mallory(cluster, "a", "b"))
        cluster.settle(500)
        cluster.put(of_mallory(cluster, "b", "a", epoch=right.epoch + 5))
        cluster.settle(2_000)
    assert cluster.entry().queue == "mallory"
    assert cluster.entry().serving == 0
    assert "to queue 'mallory' (id 1), but the data on this node belongs to 'vault'" in caplog.text
    for name in "ab":
        machine = cluster.machines[name]
        number = machine.request(messages.Receive(1, 10))
        cluster.settle(200)
        assert isinstance(machine.answers[number], messages.Failed)
    assert_untouched(cluster, "a", "b")
    cluster.put(elected(cluster, right))
    cluster.settle(2_000)
    assert received(cluster) == len(BODIES)


def test_no_node_drops_another_queues_data() -> None:
    cluster = vault("a", "b")
    entry = of_mallory(cluster, "c", epoch=9)
    cluster.put(msgspec.structs.replace(entry, leaving=["a", "b"]))
    cluster.settle(500)
    cluster.put(msgspec.structs.replace(entry, primary=None, replicas=[], in_sync=[], leaving=["a", "b"]))
    cluster.settle(1_000)
    assert cluster.entry().leaving == ["a", "b"]
    assert_untouched(cluster, "a", "b")


@pytest.mark.parametrize("hears", [False, True])
def test_no_replica_follows_the_primary_of_another_queue(hears: bool) -> None:
    """Also where the primary calls before this node has heard of the entry."""
    cluster = vault("a", "b")
    cluster.put(of_mallory(cluster, "c", "a", "b", epoch=9))
    if not hears:
        for name in "ab":
            cluster.machines[name].heard.clear()
    cluster.settle(2_000)
    assert_untouched(cluster, "a", "b")
    assert replica(cluster, "c").name == "mallory"


def test_an_entry_of_an_earlier_epoch_drops_nothing() -> None:
    cluster = vault("a")
    first = cluster.entry()
    now = elected(cluster, first)
    cluster.put(now)
    cluster.settle(1_000)
    now = cluster.entry()
    # Once it was to leave a; it came back since, and nobody else has anything of it.
    left = msgspec.structs.replace(
        first, epoch=now.epoch - 1, primary="b", replicas=["b"], in_sync=["b"], leaving=["a"]
    )
    cluster.put(left)
    cluster.settle(500)
    assert_untouched(cluster, "a")
    number = cluster.machines["a"].request(messages.Receive(1, 10))
    cluster.settle(200)
    assert isinstance(cluster.machines["a"].answers[number], messages.Failed)
    cluster.put(now)
    cluster.settle(1_000)
    assert received(cluster) == len(BODIES)


def test_an_entry_of_an_earlier_epoch_drops_nothing_after_a_restart() -> None:
    cluster = vault("a")
    first = cluster.entry()
    cluster.put(elected(cluster, first))
    cluster.settle(1_000)
    now = cluster.entry()
    machine = cluster.machines["a"]
    machine.crash()
    cluster.put(
        msgspec.structs.replace(
            first, epoch=now.epoch - 1, primary="b", replicas=["b"], in_sync=["b"], leaving=["a"]
        )
    )
    machine.start()
    cluster.settle(500)
    assert_untouched(cluster, "a")
    cluster.put(elected(cluster, now))
    cluster.settle(1_000)
    assert received(cluster) == len(BODIES)


def test_a_follower_that_knows_a_later_epoch_drops_nothing() -> None:
    cluster = vault("a", "b")
    first = cluster.entry()
    cluster.put(elected(cluster, first))
    cluster.settle(1_000)
    now = cluster.entry()
    cluster.put(
        msgspec.structs.replace(first, epoch=now.epoch - 1, replicas=["a"], in_sync=["a"], leaving=["b"])
    )
    cluster.settle(500)
    assert_untouched(cluster, "a", "b")


@pytest.mark.parametrize("taken", [False, True])
def test_a_primary_gives_up_no_partition_that_took_messages_because_its_queue_is_missing(taken: bool) -> None:
    cluster = vault("a", "b") if taken else Cluster()
    if not taken:
        cluster.create("vault", nodes=("a", "b"))
        cluster.settle(500)
    cluster.put(marked(cluster.entry(), abandoned=True))
    cluster.settle(3_000)
    entry = cluster.entry()
    if not taken:
        assert (entry.retired, cluster.holders(1)) == (True, [])
        return
    assert (entry.deleted, entry.abandoned, entry.kept, entry.retired) == (False, False, True, False)
    assert received(cluster) == len(BODIES)


def test_nothing_that_took_messages_is_dropped_by_an_entry_that_says_it_never_served() -> None:
    """The first entry of a partition, put back, looks like one that nobody ever used: a manager gives that up at once."""
    cluster = vault("a", "b")
    first = msgspec.structs.replace(cluster.entry(), serving=0)
    cluster.put(given_up(first, "nothing was ever sent to it"))
    cluster.settle(1_000)
    assert_untouched(cluster, "a", "b")


def test_a_primary_stands_down_where_its_epoch_is_given_to_another_node() -> None:
    cluster = vault("a", "b")
    entry = cluster.entry()
    cluster.put(
        msgspec.structs.replace(entry, primary="b", primary_started_ms=cluster.machines["b"].started_ms)
    )
    cluster.settle(500)
    node = cluster.machines["a"].node
    assert node is not None
    assert 1 not in node.replication.state.led

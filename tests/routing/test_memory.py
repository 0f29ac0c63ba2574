"""Queues that are made and deleted all day leave nothing behind in the memory of a front end or a node."""

from __future__ import annotations

from penstock.cluster.layout.entries import (
    DrainEntry,
    NodeEntry,
    PartitionEntry,
    QueueEntry,
    drain_key,
    encode,
    node_key,
    partition_key,
    queue_key,
)
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import DEPARTED_AT_MOST, ClusterMap, PartitionOfQueue
from penstock.routing.context import RoutingContext


def queue(number: int) -> QueueEntry:
    return QueueEntry(
        name=f"q{number}",
        queue_id=number,
        settings=QueueSettings(partitions=2),
        created_ms=0,
        partitions=[number + 1, number + 2],
    )


def partition(number: int, ordinal: int) -> PartitionEntry:
    return PartitionEntry(
        partition=number + 1 + ordinal,
        queue_id=number,
        queue=f"q{number}",
        ordinal=ordinal,
        settings=QueueSettings(partitions=2),
        epoch=1,
        primary="a",
        replicas=["a"],
        in_sync=["a"],
    )


def context_of(cluster: ClusterMap) -> RoutingContext:
    return RoutingContext(cluster, producer=1, now_ms=lambda: 0, load=lambda partition: 0.0)


def put(cluster: ClusterMap, number: int) -> None:
    for ordinal in (0, 1):
        entry = partition(number, ordinal)
        cluster.apply(partition_key(entry.partition), encode(entry))
    cluster.apply(queue_key(f"q{number}"), encode(queue(number)))


def test_nothing_is_left_of_queues_that_are_gone_in_whichever_order_they_go() -> None:
    cluster = ClusterMap()
    context = context_of(cluster)
    for number in range(10, 300, 10):
        put(cluster, number)
        for place in (number + 1, number + 2):
            context.next_number(place)
            assert cluster.home(place) == PartitionOfQueue(number, place - number - 1)
        gone = [queue_key(f"q{number}"), partition_key(number + 1), partition_key(number + 2)]
        for key in gone if number % 20 else reversed(gone):
            cluster.apply(key, None)
    assert not cluster._homes
    assert not context._numbers


def test_a_partition_is_known_by_its_queue_for_as_long_as_one_of_them_is_there() -> None:
    cluster = ClusterMap()
    put(cluster, 10)
    cluster.apply(partition_key(11), None)
    assert cluster.name_of(11) == "q10", "whoever waits for it looks the queue up once more"
    cluster.apply(queue_key("q10"), None)
    assert cluster.home(11) is None
    assert cluster.home(12) == PartitionOfQueue(10, 1)


def test_numbers_of_a_partition_that_seemed_gone_are_not_given_twice() -> None:
    cluster = ClusterMap()
    context = context_of(cluster)
    put(cluster, 10)
    assert [context.next_number(11) for _ in range(3)] == [1, 2, 3]
    assert context.next_number(12) == 1
    cluster.apply(partition_key(11), b"of a later version")
    put(cluster, 10)
    assert context.next_number(11) == 4
    assert context.next_number(12) == 2


def test_a_queue_is_news_until_it_is_heard_of_however_its_number_compares_with_others() -> None:
    cluster = ClusterMap()
    put(cluster, 100)
    assert not cluster.has_heard_of(20)  # made through another front end, which has ids of its own
    put(cluster, 20)
    assert cluster.has_heard_of(20)
    cluster.apply(queue_key("q20"), None)
    assert cluster.has_heard_of(20)


def test_not_every_queue_that_is_gone_is_remembered_for_ever() -> None:
    cluster = ClusterMap()
    for number in range(10, 10 * (DEPARTED_AT_MOST + 20), 10):
        put(cluster, number)
        cluster.apply(queue_key(f"q{number}"), None)
    assert len(cluster._departed) == DEPARTED_AT_MOST
    assert not cluster.has_heard_of(10)


def test_a_node_that_died_counts_and_one_that_was_removed_does_not() -> None:
    cluster = ClusterMap()
    for name in ("a", "b", "c"):
        entry = NodeEntry(node=name, native=f"{name}:1", peers=f"{name}:2", started_ms=1)
        cluster.apply(node_key(name), encode(entry))
    cluster.apply(drain_key("c"), encode(DrainEntry(node="c", remove=True)))
    for name in ("b", "c"):
        cluster.apply(node_key(name), None)
    assert cluster.ever_known() == {"a", "b", "c"}
    cluster.apply(drain_key("c"), None)
    assert cluster.ever_known() == {"a", "b"}

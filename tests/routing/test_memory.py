"""Queues that are made and deleted all day leave nothing behind in the memory of a front end or a node."""

from __future__ import annotations

from penstock.cluster.layout import PartitionEntry, QueueEntry, encode, partition_key, queue_key
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap, Home
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
            assert cluster.home(place) == Home(number, place - number - 1)
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
    assert cluster.home(12) == Home(10, 1)


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

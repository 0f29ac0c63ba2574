"""Messages that arrived in a queue which is deleted before their source knows it: none of them lives twice, and nothing waits for ever."""

from __future__ import annotations

import pytest

from penstock.model.batch import encode_parts
from penstock.queue.partition import Partition
from penstock.wire import messages
from tests.backend.replication.cluster import Cluster
from tests.backend.replication.test_many_journeys import everything

SOURCE, TARGET, AGAIN, FAR = 1, 2, 3, 4
DEAD_LETTERS = {"dead_letter_queue": "target", "max_receives": 1, "visibility_timeout_ms": 50}


def partition_of(cluster: Cluster, name: str, partition: int) -> Partition:
    node = cluster.machines[name].node
    assert node is not None
    return node.replication.state.parts.catalogue.partitions[partition]


def part(cluster: Cluster, one: str = "a", other: str = "b") -> None:
    cluster.parted.add(frozenset((one, other)))
    cluster.cut(one, other)


def a_cluster() -> Cluster:
    """`a` leads a queue, and `b` leads its dead-letter queue."""
    cluster = Cluster()
    cluster.create("target", TARGET, ("b",))
    cluster.create("source", SOURCE, ("a", "c"), **DEAD_LETTERS)
    cluster.settle(500)
    sent = cluster.ask(messages.Send(SOURCE), encode_parts([b"one", b"two"]))
    assert isinstance(sent, messages.SendResult)
    return cluster


def pump_without_answers(cluster: Cluster) -> None:
    cluster.now_ms += 1
    for machine in cluster.machines.values():
        machine.turn()
    for pair in list(cluster.pipes):
        if pair != ("b", "a"):
            cluster.deliver(pair)


def arrived_without_a_word() -> Cluster:
    """Dead letters are in their target, and the answer is lost with the connection."""
    cluster = a_cluster()
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    for _ in range(400):
        pump_without_answers(cluster)
        if partition_of(cluster, "b", TARGET).table.messages == 2:
            break
    assert partition_of(cluster, "b", TARGET).table.messages == 2
    part(cluster)
    return cluster


def consume(cluster: Cluster, partition: int) -> int:
    """Somebody receives what is there and deletes it."""
    received = cluster.ask(messages.Receive(partition, 10), partition=partition)
    assert isinstance(received, messages.Delivery)
    if not received.batches:
        return 0
    runs = [(batch.first, batch.count) for batch in received.batches]
    settled = cluster.ask(messages.Delete([messages.Receipt(received.token, runs)]), partition=partition)
    assert isinstance(settled, messages.Settled)
    return settled.outcomes[0].done


@pytest.mark.parametrize("failover", [False, True])
@pytest.mark.parametrize("made_again", [False, True])
def test_what_was_consumed_from_a_deleted_target_does_not_come_back(failover: bool, made_again: bool) -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    if failover:
        assert cluster.elect(SOURCE, "c")
        part(cluster, "b", "c")
    cluster.delete(TARGET)
    if made_again:
        cluster.create("target", AGAIN, ("c",))
    cluster.settle(1_000)
    assert not cluster.entry(TARGET).retired, "the source does not know yet what has arrived"
    cluster.parted.clear()
    cluster.settle(8_000)
    assert cluster.entry(TARGET).retired
    assert everything(cluster, SOURCE) == []
    assert not partition_of(cluster, cluster.serving(SOURCE).name, SOURCE).moves
    if made_again:
        assert everything(cluster, AGAIN) == []


def test_what_was_redriven_to_its_source_is_there_once() -> None:
    """The first move of the messages is not finished when they come back under other numbers."""
    cluster = arrived_without_a_word()
    part(cluster, "b", "c")
    assert cluster.ask(messages.Redrive(TARGET, "source"), partition=TARGET) == messages.Redriven(2, None)
    cluster.delete(TARGET)
    cluster.settle(1_000)
    cluster.parted.clear()
    cluster.settle(8_000)
    assert cluster.entry(TARGET).retired
    assert sorted(everything(cluster, SOURCE)) == [b"one", b"two"]


def test_a_target_whose_source_has_said_that_it_is_done_and_was_not_heard_is_given_up() -> None:
    cluster = a_cluster()
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    for _ in range(2_000):
        cluster.now_ms += 1
        for machine in cluster.machines.values():
            machine.turn()
        # The answer arrives. What follows it is lost.
        for pair in list(cluster.pipes):
            if pair != ("a", "b") or not partition_of(cluster, "b", TARGET).table.messages:
                cluster.deliver(pair)
        source = partition_of(cluster, "a", SOURCE)
        if not source.moves and not source.table.messages and cluster.pipes["a", "b"]:
            break
    part(cluster)
    assert list(partition_of(cluster, "b", TARGET).origins)
    cluster.parted.clear()
    cluster.settle(500)
    assert list(partition_of(cluster, "b", TARGET).origins), "nobody needs to know while the queue lives"
    cluster.delete(TARGET)
    cluster.settle(3_000)
    assert cluster.entry(TARGET).retired


def test_what_did_not_arrive_does_not_wait_for_the_end_of_a_deleted_target() -> None:
    """The target has messages on the way to a queue that cannot be reached, and so it is there for long."""
    cluster = arrived_without_a_word()
    cluster.parted.clear()
    cluster.settle(1_000)
    cluster.create("far", FAR, ("c",))
    cluster.settle(500)
    part(cluster, "b", "c")
    assert cluster.ask(messages.Redrive(TARGET, "far"), partition=TARGET) == messages.Redriven(2, None)
    cluster.delete(TARGET)
    cluster.create("target", AGAIN, ("a",))
    cluster.settle(500)
    sent = cluster.ask(messages.Send(SOURCE), encode_parts([b"three"]))
    assert isinstance(sent, messages.SendResult)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    cluster.settle(1_500)
    assert not cluster.entry(TARGET).retired
    assert everything(cluster, AGAIN) == [b"three"]


def test_a_source_that_is_gone_does_not_hold_a_deleted_target() -> None:
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    cluster.delete(TARGET)
    cluster.settle(1_000)
    assert not cluster.entry(TARGET).retired
    cluster.settle(2_000)
    assert "2 messages came from source" in cluster.entry(TARGET).reason
    b = cluster.machines["b"].node
    assert b is not None
    b.partition_gone(SOURCE, cluster.now_ms)
    cluster.settle(1_000)
    assert cluster.entry(TARGET).retired


def test_two_deleted_queues_with_messages_for_each_other_both_go() -> None:
    cluster = arrived_without_a_word()
    part(cluster, "b", "c")
    assert cluster.ask(messages.Redrive(TARGET, "source"), partition=TARGET) == messages.Redriven(2, None)
    cluster.delete(TARGET)
    cluster.delete(SOURCE)
    cluster.settle(1_000)
    cluster.parted.clear()
    cluster.settle(15_000)
    assert cluster.entry(TARGET).retired
    assert cluster.entry(SOURCE).retired

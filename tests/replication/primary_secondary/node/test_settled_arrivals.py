"""Messages that arrived in a queue which is deleted before their source knows it: none of them lives twice, and nothing waits for ever."""

from __future__ import annotations

import pytest

from penstock.cluster.layout.deletion import given_up
from penstock.cluster.layout.entries import QueueEntry, encode, partition_key, queue_key
from penstock.cluster.membership.node_layout import ApplyEntry, Effect, NodeLayout, QueueNamed
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.mirror.mirroring import Mirroring
from penstock.metadata.store.interface import Change, Entry, Listing
from penstock.model.batch import encode_parts
from penstock.model.settings import QueueSettings
from penstock.queue.partition import Partition
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_many_journeys import everything

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


def lose_entry(cluster: Cluster, partition: int) -> None:
    """The entry is taken out of the store."""
    del cluster.entries[partition]
    for machine in cluster.machines.values():
        if machine.node is not None:
            machine.node.replication.partition_gone(partition, cluster.now_ms)


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
    cluster.put(given_up(cluster.entry(SOURCE), "its queue is deleted"))
    cluster.settle(100)
    lose_entry(cluster, SOURCE)
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


class Follower:
    """Node `a` with a mirror of the store, as its process has one."""

    def __init__(self, cluster: Cluster, entries: dict[str, bytes]) -> None:
        self._cluster = cluster
        self._layout = NodeLayout("a", cluster.now_ms)
        cache = MetadataCache()
        cache.listen("cluster/", self._changed)
        cache.settled_listeners.append(lambda version: self._perform(self._layout.settled(version)))
        self.mirroring = Mirroring(cache)
        version = cluster.version
        listed = [Entry(key, value, version) for key, value in sorted(entries.items())]
        self.mirroring.loaded(Listing(tuple(listed), version))

    def _changed(self, change: Change) -> None:
        self._perform(self._layout.changed(change.key, change.value, change.version, self._cluster.now_ms))

    def _perform(self, effects: list[Effect]) -> None:
        node = self._cluster.machines["a"].node
        assert node is not None
        for effect in effects:
            if isinstance(effect, QueueNamed):
                node.replication.queue_named(effect.name, effect.queue_id, self._cluster.now_ms)
            elif isinstance(effect, ApplyEntry):
                node.replication.apply_layout([(effect.entry, effect.version)], self._cluster.now_ms)


@pytest.mark.parametrize("partition_too", [False, True])
def test_a_new_queue_that_is_looked_up_does_not_hide_that_the_one_before_is_deleted(
    partition_too: bool,
) -> None:
    """The manager in the node's process looks at the entry of the queue, and the watch is behind."""
    cluster = arrived_without_a_word()
    assert consume(cluster, TARGET) == 2
    queue = QueueEntry(
        name="target", queue_id=TARGET, settings=QueueSettings(), created_ms=1, partitions=[TARGET]
    )
    again = QueueEntry(
        name="target", queue_id=AGAIN, settings=QueueSettings(), created_ms=2, partitions=[AGAIN]
    )
    entries = {partition_key(one): encode(cluster.entry(one)) for one in (SOURCE, TARGET)}
    follower = Follower(cluster, entries | {queue_key("target"): encode(queue)})
    cluster.unmade.add("target")  # the node hears of the queue here alone
    cluster.delete(TARGET)
    cluster.create("target", AGAIN, ("c",))
    changes = [
        Change(partition_key(one), encode(entry), version)
        for one, (entry, version) in cluster.entries.items()
        if one in (TARGET, AGAIN)
    ]
    cluster.version += 1
    changes.append(Change(queue_key("target"), encode(again), cluster.version))
    cluster.machines["a"].heard.clear()
    for change in changes[1 if partition_too else 2 :]:
        follower.mirroring.apply_own(change)
    cluster.settle(1_000)
    for change in changes:
        follower.mirroring.heard(change)
    cluster.parted.clear()
    cluster.settle(8_000)
    assert cluster.entry(TARGET).retired
    assert everything(cluster, SOURCE) == []
    assert everything(cluster, AGAIN) == []


def dead_letter(cluster: Cluster, body: bytes) -> None:
    sent = cluster.ask(messages.Send(SOURCE), encode_parts([body]))
    assert isinstance(sent, messages.SendResult)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    cluster.settle(1_500)


@pytest.mark.parametrize("failover", [False, True])
def test_what_cannot_be_in_a_deleted_queue_does_not_wait_for_its_node(failover: bool) -> None:
    """Only what had set out when the queue was deleted may be there. What leaves its source later passes it."""
    cluster = arrived_without_a_word()
    cluster.settle(500)
    cluster.machines["b"].crash()
    cluster.settle(500)
    cluster.delete(TARGET)
    cluster.create("target", AGAIN, ("c",))
    cluster.settle(500)
    if failover:
        assert cluster.elect(SOURCE, "c")
        cluster.settle(500)
    dead_letter(cluster, b"three")
    assert everything(cluster, AGAIN) == [b"three"]
    dead_letter(cluster, b"four")
    assert everything(cluster, AGAIN) == [b"three", b"four"]
    cluster.machines["b"].start()
    cluster.parted.clear()
    cluster.settle(8_000)
    assert cluster.entry(TARGET).retired
    assert everything(cluster, AGAIN) == [b"three", b"four"]
    assert everything(cluster, SOURCE) == []


def test_what_was_never_sent_to_a_deleted_queue_does_not_wait_for_its_node() -> None:
    cluster = a_cluster()
    cluster.machines["b"].crash()
    cluster.settle(500)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    cluster.settle(1_000)
    cluster.delete(TARGET)
    cluster.create("target", AGAIN, ("c",))
    cluster.settle(1_500)
    assert everything(cluster, AGAIN) == [b"one", b"two"]


def test_messages_in_order_wait_for_those_before_them() -> None:
    cluster = Cluster()
    cluster.create("target", TARGET, ("b",), ordering="fifo")
    cluster.create("source", SOURCE, ("a", "c"), ordering="fifo", **DEAD_LETTERS)
    cluster.settle(500)
    dead_letters = encode_parts([b"one"], groups=[b"g"])
    assert isinstance(cluster.ask(messages.Send(SOURCE), dead_letters), messages.SendResult)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    for _ in range(400):
        pump_without_answers(cluster)
        if partition_of(cluster, "b", TARGET).table.messages:
            break
    part(cluster)
    cluster.delete(TARGET)
    cluster.create("target", AGAIN, ("c",), ordering="fifo")
    cluster.settle(500)
    later = encode_parts([b"two"], groups=[b"h"])
    assert isinstance(cluster.ask(messages.Send(SOURCE), later), messages.SendResult)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    cluster.settle(1_500)
    assert everything(cluster, AGAIN) == []
    cluster.parted.clear()
    cluster.settle(8_000)
    assert cluster.entry(TARGET).retired
    assert everything(cluster, AGAIN) == [b"two"]


def test_only_the_partition_that_messages_go_to_is_asked() -> None:
    """The other one of the deleted queue is on a node that is gone."""
    cluster = Cluster()
    two = QueueSettings(partitions=2, replicas=1)
    cluster.create_partition("target", TARGET, ("b",), two, queue_id=TARGET, ordinal=0)
    cluster.create_partition("target", FAR, ("c",), two, queue_id=TARGET, ordinal=1)
    cluster.create("source", SOURCE, ("a",), **DEAD_LETTERS)
    cluster.settle(500)
    cluster.machines["c"].crash()
    assert isinstance(cluster.ask(messages.Send(SOURCE), encode_parts([b"one"])), messages.SendResult)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    for _ in range(400):
        pump_without_answers(cluster)
        if partition_of(cluster, "b", TARGET).table.messages:
            break
    part(cluster)
    cluster.delete(TARGET)
    cluster.delete(FAR)
    cluster.settle(500)
    cluster.create("target", AGAIN, ("a",))
    cluster.parted.clear()
    dead_letter(cluster, b"two")
    assert everything(cluster, AGAIN) == [b"two"]

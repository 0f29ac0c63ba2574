"""Messages on their way to a queue that is deleted and made again meanwhile: none is lost, and none is in two queues."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.cluster.layout.deletion import marked
from penstock.cluster.layout.entries import PartitionEntry, QueueEntry, encode, queue_key
from penstock.cluster.membership.node_layout import NodeLayout, QueueNamed
from penstock.model.batch import encode_parts
from penstock.model.move_target import aimed_at, target_of
from penstock.model.settings import QueueSettings
from penstock.replication.primary_secondary.node.layout_view import LayoutView
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_many_journeys import everything

SOURCE, TARGET, AGAIN = 1, 2, 3


def retired(entry: PartitionEntry, *leaving: str) -> PartitionEntry:
    return msgspec.structs.replace(entry, primary=None, replicas=[], in_sync=[], leaving=list(leaving))


def a_cluster(**settings: object) -> Cluster:
    """A queue led by `a` whose messages go to one led by `b`, which `a` cannot reach for now."""
    cluster = Cluster()
    cluster.create("target", TARGET, ("b",))
    cluster.create("source", SOURCE, ("a", "c"), **settings)
    cluster.settle(500)
    sent = cluster.ask(messages.Send(SOURCE), encode_parts([b"one", b"two"]))
    assert isinstance(sent, messages.SendResult)
    return cluster


def part(cluster: Cluster) -> None:
    cluster.parted = {frozenset("ab")}
    cluster.cut("a", "b")


def make_again(cluster: Cluster) -> None:
    """The target is deleted, and a queue of the same name is made."""
    cluster.put(retired(cluster.entry(TARGET), "b"))
    cluster.create("target", AGAIN, ("c",))
    cluster.parted = set()
    cluster.settle(5_000)


def origins(cluster: Cluster, partition: int) -> list[tuple[str, str]]:
    peeked = cluster.ask(messages.Peek(partition), partition=partition)
    assert isinstance(peeked, messages.Peeked)
    return [(head.origin.source, head.origin.reason) for head in peeked.batches if head.origin is not None]


@pytest.mark.parametrize("failover", [False, True])
def test_a_redrive_does_not_go_to_a_queue_that_was_made_after_it(failover: bool) -> None:
    cluster = a_cluster()
    part(cluster)
    redriven = cluster.ask(messages.Redrive(SOURCE, "target"))
    assert redriven == messages.Redriven(2, None)
    cluster.settle(400)
    if failover:  # the next primary knows what it was meant for
        assert cluster.elect(SOURCE, "c")
        cluster.parted |= {frozenset("bc")}
        cluster.cut("b", "c")
        cluster.settle(400)
    make_again(cluster)
    assert everything(cluster, AGAIN) == []
    assert sorted(everything(cluster, SOURCE)) == [b"one", b"two"]
    assert set(origins(cluster, SOURCE)) == {("target", "queue-deleted")}
    # Asked for once more it is meant for the queue that is there now.
    assert cluster.ask(messages.Redrive(SOURCE)) == messages.Redriven(2, None)
    cluster.settle(1_000)
    assert sorted(everything(cluster, AGAIN)) == [b"one", b"two"]
    assert everything(cluster, SOURCE) == []


def test_what_arrived_in_a_queue_that_is_deleted_before_it_says_so_is_in_one_queue() -> None:
    cluster = a_cluster()
    machine = cluster.serving(SOURCE)
    machine.request(messages.Redrive(SOURCE, "target"))
    target = cluster.machines["b"].node
    assert target is not None
    table = target.replication.state.parts.catalogue.partitions[TARGET].table
    for _ in range(200):
        cluster.now_ms += 1
        for one in cluster.machines.values():
            one.turn()
        for pair in list(cluster.pipes):
            if pair != ("b", "a"):  # so that the answer never comes
                cluster.deliver(pair)
        for pair in [("c", "a"), ("a", "c")]:
            cluster.deliver(pair)
        if table.messages == 2:
            break
    assert table.messages == 2
    part(cluster)
    make_again(cluster)
    assert everything(cluster, AGAIN) == []
    assert sorted(everything(cluster, SOURCE)) == [b"one", b"two"]


def test_dead_letters_go_to_the_queue_that_has_the_name() -> None:
    cluster = a_cluster(dead_letter_queue="target", max_receives=1, visibility_timeout_ms=50)
    part(cluster)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    cluster.settle(1_000)
    make_again(cluster)
    found = [*everything(cluster, SOURCE), *everything(cluster, AGAIN)]
    assert sorted(found) == [b"one", b"two"]
    assert sorted(everything(cluster, AGAIN)) == [b"one", b"two"]
    assert set(origins(cluster, AGAIN)) == {("source", "max-receives")}


def test_dead_letters_do_not_go_to_a_queue_that_is_still_being_made() -> None:
    """Should another one be made under the name first, its partitions go, with what is in them."""
    cluster = a_cluster(dead_letter_queue="target", max_receives=1, visibility_timeout_ms=50)
    part(cluster)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    cluster.settle(1_000)
    cluster.unmade.add("target")
    cluster.put(retired(cluster.entry(TARGET), "b"))
    lost_race, made = AGAIN, AGAIN + 1
    cluster.create("target", lost_race, ("c",))
    cluster.parted = set()
    cluster.settle(5_000)
    assert everything(cluster, lost_race) == []
    cluster.put(retired(cluster.entry(lost_race), "c"))
    cluster.unmade.clear()
    cluster.create("target", made, ("c",))
    cluster.settle(5_000)
    assert sorted([*everything(cluster, SOURCE), *everything(cluster, made)]) == [b"one", b"two"]


def entry(partition: int, **changes: object) -> PartitionEntry:
    made = PartitionEntry(
        partition=partition,
        queue_id=partition,
        queue="orders",
        ordinal=0,
        settings=QueueSettings(),
        epoch=1,
        primary="a",
        primary_started_ms=1,
        replicas=["a"],
        in_sync=["a"],
    )
    return msgspec.structs.replace(made, **changes)


def test_a_name_means_the_queue_that_was_made_under_it() -> None:
    view = LayoutView()
    view.put(entry(1), 1)
    view.put(entry(2), 2)
    assert view.find("orders") is None, "both are still being made"
    view.name("orders", 1)
    assert view.find("orders") == entry(1)
    view.put(retired(entry(2), "a"), 3)
    assert view.find("orders") == entry(1)
    view.put(retired(entry(1), "a"), 4)
    assert view.find("orders") is None
    view.put(entry(3), 5)
    view.gone(1, 0)
    assert view.find("orders") is None
    view.name("orders", 3)
    assert view.find("orders") == entry(3)
    view.name("orders", None)
    assert view.find("orders") is None


@given(
    some.lists(
        some.tuples(some.integers(1, 5), some.sampled_from(["put", "retire", "gone", "name", "unname"])),
        max_size=30,
    )
)
def test_a_name_means_partitions_of_that_queue_that_are_not_given_up(steps: list[tuple[int, str]]) -> None:
    view, living, named = LayoutView(), set[int](), 0
    for version, (partition, step) in enumerate(steps, 1):
        if step in ("name", "unname"):
            named = partition if step == "name" else 0
            view.name("orders", named or None)
        elif step == "gone":
            view.gone(partition, 0)
        else:
            view.put(entry(partition) if step == "put" else retired(entry(partition), "a"), version)
        if step in ("put", "retire", "gone"):
            living = living | {partition} if step == "put" else living - {partition}
        assert view.find("orders") == (entry(named) if named in living else None)


def test_a_target_names_a_queue_or_one_incarnation_of_it() -> None:
    assert target_of("orders~2") == ("orders~2", None)
    assert target_of("orders").is_meant(7)
    aimed = target_of(aimed_at("111111111111.us-east-1.orders.fifo", 7))
    assert aimed.name == "111111111111.us-east-1.orders.fifo"
    assert [aimed.is_meant(queue_id) for queue_id in (7, 8)] == [True, False]


def arrive_without_a_word(cluster: Cluster) -> None:
    """Dead letters arrive at their target, whose answer is lost with the connection."""
    target = cluster.machines["b"].node
    assert target is not None
    table = target.replication.state.parts.catalogue.partitions[TARGET].table
    for _ in range(400):
        cluster.now_ms += 1
        for one in cluster.machines.values():
            one.turn()
        for pair in list(cluster.pipes):
            if pair != ("b", "a"):
                cluster.deliver(pair)
        if table.messages == 2:
            break
    assert table.messages == 2
    part(cluster)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_queue_whose_entry_is_missing_is_not_taken_for_deleted(restarted: bool) -> None:
    """Its partitions live on, with what has arrived there. Taken back, the messages would be in both queues."""
    cluster = a_cluster(dead_letter_queue="target", max_receives=1, visibility_timeout_ms=50)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    arrive_without_a_word(cluster)
    cluster.unmade.add("target")
    if restarted:
        cluster.machines["a"].crash(power=False)
        cluster.machines["a"].start()
    for machine in cluster.machines.values():
        assert machine.node is not None
        machine.node.replication.queue_named("target", None, cluster.now_ms)
    cluster.settle(3_000)
    assert sorted(everything(cluster, TARGET)) == [b"one", b"two"]
    received = cluster.ask(messages.Receive(SOURCE, 10))
    assert isinstance(received, messages.Delivery)
    assert received.batches == []
    # Somebody has put the entry back.
    cluster.parted = set()
    cluster.unmade.clear()
    for machine in cluster.machines.values():
        assert machine.node is not None
        machine.node.replication.queue_named("target", TARGET, cluster.now_ms)
    cluster.settle(3_000)
    assert sorted(everything(cluster, TARGET)) == [b"one", b"two"]
    assert everything(cluster, SOURCE) == []


def tell_of_queue(cluster: Cluster, queue: QueueEntry) -> None:
    """All nodes hear of the entry of a queue."""
    for machine in cluster.machines.values():
        layout = NodeLayout(machine.name, cluster.now_ms)
        assert layout.changed(queue_key(queue.name), encode(queue), 1, cluster.now_ms) == []
        for effect in layout.settled(1):
            assert isinstance(effect, QueueNamed)
            assert machine.node is not None
            machine.node.replication.queue_named(effect.name, effect.queue_id, cluster.now_ms)


@pytest.mark.parametrize("abandoned", [True, False])
def test_dead_letters_do_not_go_to_a_queue_that_is_being_deleted(abandoned: bool) -> None:
    """Also not to one that was never made, and has an entry only so that its name is taken while its partitions go."""
    cluster = a_cluster(dead_letter_queue="target", max_receives=1, visibility_timeout_ms=50)
    part(cluster)
    cluster.unmade.add("target")
    cluster.put(retired(cluster.entry(TARGET), "b"))
    cluster.create("target", AGAIN, ("c",))
    cluster.settle(500)
    queue = QueueEntry(
        name="target",
        queue_id=AGAIN,
        settings=QueueSettings(),
        created_ms=1,
        partitions=[AGAIN],
        state="deleting",
        abandoned=abandoned,
    )
    tell_of_queue(cluster, queue)
    assert isinstance(cluster.ask(messages.Receive(SOURCE, 10)), messages.Delivery)
    cluster.settle(1_000)
    cluster.put(marked(cluster.entry(AGAIN), abandoned=abandoned))
    cluster.settle(2_000)
    assert cluster.entry(AGAIN).retired, "nothing has arrived there, so it is given up"
    received = cluster.ask(messages.Receive(SOURCE, 10))
    assert isinstance(received, messages.Delivery)
    assert [batch.count for batch in received.batches] == [2]

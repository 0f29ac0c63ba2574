"""Requests to take messages in that come too late, or behind one that was refused: each message arrives once, and in order."""

from __future__ import annotations

import msgspec
import pytest

from penstock.cluster.layout.deletion import given_up
from penstock.model.batch import encode_parts
from penstock.model.origin import Origin
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.storage.errors import JournalBusyError
from penstock.wire import messages
from penstock.wire.peer_messages import MoveIn
from tests.replication.primary_secondary.node.cluster import Cluster, Machine

SOURCE, TARGET = 1, 2
BEHIND = frozenset({("a", "b")})
"""This connection brings nothing for a while."""


def node_of(machine: Machine) -> ReplicatedNode:
    assert machine.node is not None
    return machine.node


def held(cluster: Cluster, name: str, partition: int) -> Partition:
    return node_of(cluster.machines[name]).replication.state.parts.catalogue.partitions[partition]


def pump(cluster: Cluster, ms: int, behind: frozenset[tuple[str, str]] = frozenset()) -> None:
    for _ in range(ms // 5):
        cluster.now_ms += 5
        for machine in cluster.machines.values():
            cluster.hear(machine)
            machine.turn()
            cluster.propose(machine)
        for pair in list(cluster.pipes):
            if pair not in behind:
                cluster.deliver(pair)


def pump_until_arrived(cluster: Cluster) -> None:
    for _ in range(2_000):
        pump(cluster, 5, BEHIND)
        if held(cluster, "b", TARGET).table.messages and not list(held(cluster, "b", TARGET).origins):
            return
    raise AssertionError("the message does not arrive")


def on_its_way() -> Cluster:
    """A dead letter of a queue that a leads is in the connection to b, which leads its target."""
    cluster = Cluster()
    cluster.create("dead", TARGET, ("b", "c"))
    cluster.create(
        "orders", SOURCE, ("a", "c"), dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=100
    )
    cluster.settle(800)
    sent = cluster.ask(messages.Send(SOURCE), encode_parts([b"poison"]), SOURCE)
    assert isinstance(sent, messages.SendResult)
    cluster.ask(messages.Receive(SOURCE, 1), partition=SOURCE)
    for _ in range(200):
        pump(cluster, 5, BEHIND)
        if cluster.pipes["a", "b"]:
            return cluster
    raise AssertionError("nothing sets out")


def ask_b(cluster: Cluster, request: messages.Request) -> messages.Message:
    machine = cluster.machines["b"]
    number = machine.request(request)
    for _ in range(100):
        pump(cluster, 5, BEHIND)
        if number in machine.answers:
            return machine.answers.pop(number)
    raise AssertionError("no answer")


@pytest.mark.parametrize("change", ["hand-over", "failover"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_request_of_the_primary_before_is_not_taken_in_again(change: str, restarts: bool) -> None:
    """It waited in the connection until the move was finished, and the dead letter received and deleted."""
    cluster = on_its_way()
    if change == "hand-over":
        cluster.put(msgspec.structs.replace(cluster.entry(SOURCE), hand_over_to="c"))
    else:
        cluster.elect(SOURCE, "c")
    pump_until_arrived(cluster)
    assert cluster.entry(SOURCE).primary == "c"
    received = ask_b(cluster, messages.Receive(TARGET, 1))
    assert isinstance(received, messages.Delivery)
    receipt = messages.Receipt(received.token, [(received.batches[0].first, 1)])
    settled = ask_b(cluster, messages.Delete([receipt]))
    assert isinstance(settled, messages.Settled)
    assert settled.outcomes[0].done == 1
    if restarts:  # what is remembered of it is in the snapshot as well
        before = held(cluster, "b", TARGET)
        again = snapshot.load(snapshot.dump(before))
        assert again.origins.places() == before.origins.places() != []
        node_of(cluster.machines["b"])._parts.catalogue.partitions[TARGET] = again
        node_of(cluster.machines["b"]).replication.moves.arrivals.deposed(TARGET)
    pump(cluster, 200)
    assert not cluster.pipes["a", "b"]
    assert held(cluster, "b", TARGET).table.messages == 0
    assert held(cluster, "c", TARGET).table.messages == 0


def test_pieces_behind_one_that_was_refused_wait_for_it() -> None:
    """The journal of the target has no room for a large batch at the moment, and has room for the small ones behind it."""
    cluster = Cluster()
    cluster.create("target", TARGET, ("b", "c"), ordering="fifo")
    cluster.create("source", SOURCE, ("a", "c"), ordering="fifo")
    cluster.settle(800)
    for body in (b"first" + bytes(20_000), b"second", b"third"):
        sent = cluster.ask(messages.Send(SOURCE), encode_parts([body], groups=[b"g"]), SOURCE)
        assert isinstance(sent, messages.SendResult)
    journal = node_of(cluster.machines["b"])._store._journal
    put = journal._put
    refused: list[int] = []

    def busy_for_large(
        kind: int, partition: int, index: int, head: bytes, payload: list[bytes], *, reserve: bool
    ) -> int:
        if partition == TARGET and sum(map(len, payload)) > 10_000 and not refused:
            refused.append(index)
            raise JournalBusyError("the next journal file is not ready yet")
        return put(kind, partition, index, head, payload, reserve=reserve)

    journal._put = busy_for_large  # type: ignore[method-assign, assignment]  # of this object alone
    cluster.serving(SOURCE).request(messages.Redrive(SOURCE, "target"))
    cluster.settle(3_000)
    assert refused
    order = []
    for _ in range(3):
        received = cluster.ask(messages.Receive(TARGET, 1), partition=TARGET)
        assert isinstance(received, messages.Delivery)
        batch = received.batches[0]
        assert batch.origin is not None
        order += batch.origin.runs
        receipt = messages.Receipt(received.token, [(batch.first, 1)])
        cluster.ask(messages.Delete([receipt]), partition=TARGET)
    assert order == [(1, 1), (2, 1), (3, 1)]


def test_nothing_is_remembered_of_a_source_that_is_deleted() -> None:
    cluster = on_its_way()
    cluster.put(msgspec.structs.replace(cluster.entry(SOURCE), hand_over_to="c"))
    pump_until_arrived(cluster)
    assert held(cluster, "b", TARGET).origins.places()
    b = node_of(cluster.machines["b"])
    given_up_entry = given_up(cluster.entry(SOURCE), "its queue is deleted")
    b.replication.apply_layout([(given_up_entry, cluster.version + 1)], cluster.now_ms)
    b.replication.partition_gone(SOURCE, cluster.now_ms)
    pump(cluster, 100, BEHIND)
    assert held(cluster, "b", TARGET).origins.places() == []
    assert held(cluster, "c", TARGET).origins.places() == []
    pump(cluster, 100)
    assert held(cluster, "b", TARGET).table.messages == 1, "and what still comes from it is refused"


def test_a_node_of_the_version_before_is_served_as_before() -> None:
    """Its requests name no place: they are judged by what has arrived."""
    cluster = on_its_way()
    cluster.elect(SOURCE, "c")
    pump_until_arrived(cluster)
    b = node_of(cluster.machines["b"])
    request = MoveIn(
        77,
        TARGET,
        Origin(SOURCE, "orders", "max-receives", [(9, 1)], cluster.now_ms, [1], cluster.now_ms),
        (0, 0, 0),
    )
    b.replication.moves.arrivals.move_in("a", request, memoryview(encode_parts([b"another"])))
    assert held(cluster, "b", TARGET).table.messages == 2

"""A primary that was deposed and has not heard of it soon answers no reads."""

from __future__ import annotations

import pytest

from penstock.model.batch import encode_parts
from penstock.replication.primary_secondary.node.leader.read_proofs import READ_MS
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster, Machine

READS = [messages.FindOffset(1, None), messages.ReadLog(1, 1, 10, 0), messages.Peek(1, 1, 10)]


def logged(nodes: tuple[str, ...] = ("a", "b", "c")) -> Cluster:
    cluster = Cluster(seed=3)
    cluster.create(nodes=nodes, consumption="both")
    cluster.settle(800)
    cluster.ask(messages.Send(1), encode_parts([b"one"]))
    cluster.settle(200)
    return cluster


def cut_off(cluster: Cluster, machine: Machine) -> None:
    """The machine reaches no other, and hears nothing of the store."""
    for other in cluster.machines:
        if other != machine.name:
            cluster.parted.add(frozenset((machine.name, other)))
            cluster.cut(machine.name, other)
    hear, propose = cluster.hear, cluster.propose

    def hears(who: Machine, most: int = 10**9) -> None:
        if who is not machine:
            hear(who, most)

    def proposes(who: Machine, *, lost: float = 0.0) -> None:
        if who is not machine:
            propose(who, lost=lost)

    cluster.hear = hears  # type: ignore[assignment,method-assign]  # the names of arguments differ
    cluster.propose = proposes  # type: ignore[assignment,method-assign]  # as above


def answer(cluster: Cluster, machine: Machine, request: messages.Request) -> messages.Answer | None:
    number = machine.request(request)
    for _ in range(20):
        cluster.now_ms += 1
        machine.turn()
    return machine.answers.get(number)


@pytest.mark.parametrize("read", READS, ids=lambda read: type(read).__name__)
def test_a_deposed_primary_answers_no_reads(read: messages.Request) -> None:
    cluster = logged()
    a = cluster.machines["a"]
    cut_off(cluster, a)
    assert cluster.elect(leader="b")
    cluster.settle(1500)
    assert cluster.serving().name == "b"
    cluster.ask(messages.Send(1), encode_parts([b"two"]))
    cluster.now_ms += READ_MS
    assert answer(cluster, a, read) is None


def test_its_reads_are_refused_when_it_hears_of_its_successor() -> None:
    cluster = logged()
    a = cluster.machines["a"]
    hear, propose = cluster.hear, cluster.propose
    cut_off(cluster, a)
    cluster.elect(leader="b")
    cluster.settle(2500)
    number = a.request(messages.FindOffset(1, None))
    cluster.settle(100)
    assert number not in a.answers
    cluster.hear, cluster.propose = hear, propose  # type: ignore[method-assign]  # as it was
    cluster.parted.clear()
    cluster.settle(500)
    assert isinstance(a.answers[number], messages.Failed)


@pytest.mark.parametrize("read", READS, ids=lambda read: type(read).__name__)
def test_an_idle_partition_is_read_after_one_question_to_its_replicas(read: messages.Request) -> None:
    cluster = logged()
    cluster.settle(10 * READ_MS)
    assert not isinstance(cluster.ask(read), messages.Failed)
    a = cluster.machines["a"]
    sent = {node: stream.sent_bytes for node, stream in a.node.replication.state.streams.items()}  # type: ignore[union-attr]  # it leads
    for _ in range(10):
        assert answer(cluster, a, read) is not None  # without another word of the replicas
    assert sent == {node: stream.sent_bytes for node, stream in a.node.replication.state.streams.items()}  # type: ignore[union-attr]  # it leads


def test_a_partition_whose_primary_is_alone_in_sync_is_read_without_asking() -> None:
    cluster = logged(("a", "b"))
    a = cluster.machines["a"]
    cluster.machines["b"].crash()
    cluster.settle(6000)
    assert cluster.entry().in_sync == ["a"]
    cluster.settle(10 * READ_MS)
    assert isinstance(answer(cluster, a, messages.FindOffset(1, None)), messages.LogBounds)


def test_a_replica_that_says_nothing_to_a_read_leaves_the_in_sync_set() -> None:
    """Reads go on without it, as sends do."""
    cluster = logged()
    a = cluster.machines["a"]
    cluster.settle(3 * READ_MS)
    deliver = cluster.deliver
    cluster.deliver = lambda pair, most=10**9: None if "c" in pair else deliver(pair, most)  # type: ignore[method-assign]  # of this object alone
    number = a.request(messages.FindOffset(1, None))
    cluster.settle(500)
    assert number not in a.answers
    cluster.settle(3000)
    assert cluster.entry().in_sync == ["a", "b"]
    assert isinstance(a.answers[number], messages.LogBounds)


def test_a_read_does_not_wait_for_ever_beside_a_state_that_is_installed() -> None:
    """Replicas confirm what follows a state of another partition before they have taken all of that state."""
    cluster = logged()
    cluster.settle(3 * READ_MS)
    a = cluster.machines["a"]
    streams = a.node.replication.state.streams.values()  # type: ignore[union-attr]  # it leads
    for stream in streams:
        stream.sent_bytes += 50  # of the state, not taken yet
    number = a.request(messages.FindOffset(1, None))
    cluster.settle(100)
    assert number not in a.answers  # the question is confirmed, which tells nothing while more is under way
    for stream in streams:
        stream.taken(50)
    cluster.settle(100)
    assert isinstance(a.answers[number], messages.LogBounds)

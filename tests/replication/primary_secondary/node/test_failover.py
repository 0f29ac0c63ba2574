"""What was acknowledged by a primary is there after it is gone."""

from __future__ import annotations

import pytest

from penstock.model.batch import encode_parts
from penstock.queue.snapshot import pages, snapshot
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster


def send(cluster: Cluster, *bodies: bytes, **columns: object) -> messages.SendResult:
    answer = cluster.ask(messages.Send(1), encode_parts(list(bodies), **columns))  # type: ignore[arg-type]  # as the caller names them
    assert isinstance(answer, messages.SendResult), answer
    return answer


def states(cluster: Cluster, partition: int = 1) -> dict[str, bytes]:
    """What every living node has, without where its batches lie."""
    found = {}
    for name, machine in cluster.machines.items():
        if machine.node is not None:
            held = machine.node.replication.state.parts.catalogue.partitions[partition]
            state = b""
            for page in pages.pages_of(snapshot.dump(held)):
                if isinstance(page, pages.Messages):
                    page.positions = b""
                elif isinstance(page, pages.Log):
                    firsts, _, stored, sizes, sent_ms = page.columns
                    page.columns = (firsts, b"", stored, sizes, sent_ms)
                state += pages.encode_page(page)
            found[name] = state
    return found


def assert_same(cluster: Cluster, partition: int = 1) -> None:
    found = states(cluster, partition)
    assert len(set(found.values())) == 1, {name: hash(state) for name, state in found.items()}


def test_a_queue_is_made_served_and_replicated() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    assert cluster.entry().serving == 1
    assert send(cluster, b"one", b"two").runs == [(1, 2)]
    cluster.settle(100)
    assert_same(cluster)


def test_a_secondary_takes_over_with_messages_leases_and_receipts() -> None:
    cluster = Cluster()
    cluster.create(visibility_timeout_ms=20_000)
    cluster.settle(500)
    send(cluster, b"one", b"two", b"three")
    delivery = cluster.ask(messages.Receive(1, 1))
    assert isinstance(delivery, messages.Delivery)
    cluster.leader.crash()
    cluster.settle(3_000)
    assert cluster.entry().epoch == 2
    others = cluster.ask(messages.Receive(1, 10))
    assert isinstance(others, messages.Delivery)
    assert [(head.first, head.count) for head in others.batches] == [(2, 2)]
    settled = cluster.ask(messages.Delete([messages.Receipt(delivery.token, [(1, 1)])]))
    assert isinstance(settled, messages.Settled)
    assert settled.outcomes[0].done == 1


def test_nothing_is_acknowledged_while_a_replica_in_sync_does_not_have_it() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    cluster.parted = {frozenset("ab"), frozenset("ac")}
    for other in "bc":
        cluster.cut("a", other)
    machine = cluster.machines["a"]
    number = machine.request(messages.Send(1), encode_parts([b"x"]))
    for _ in range(20):
        cluster.now_ms += 20
        machine.turn()
    assert number not in machine.answers
    cluster.elect(leader="b")
    cluster.settle(2_000)
    answer = machine.answers[number]
    assert isinstance(answer, messages.Failed)
    assert cluster.leader.name == "b"
    cluster.parted = set()
    cluster.settle(3_000)
    assert_same(cluster)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert cluster.ask(messages.Receive(1, 10)) == messages.Delivery(b"", 0, [])


def test_a_replica_that_was_away_catches_up_and_is_in_sync_again() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.settle(2_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b"]
    for number in range(30):
        send(cluster, b"%d" % number * 100)
    cluster.machines["c"].start()
    cluster.settle(2_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)


def test_a_replica_that_has_taken_leave_is_not_waited_for() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    cluster.parted = {frozenset("ac")}
    cluster.cut("a", "c")
    cluster.settle(200)  # its stream broke, which may be mended
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    cluster.machines["c"].crash(power=False)  # its entry is gone too
    cluster.settle(200)
    assert sorted(cluster.entry().in_sync) == ["a", "b"]
    send(cluster, b"goes on")


def test_a_fenced_replica_does_not_lead_a_queue_that_never_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that it may have had was in a damaged stretch of its journal; another one is well."""
    cluster = Cluster()
    cluster.parted |= {frozenset("ab"), frozenset("ac")}
    with monkeypatch.context() as patched:  # everything but the store
        patched.setattr(cluster, "propose", lambda machine: machine.proposals.clear())
        cluster.create(nodes=("b", "a"))
        cluster.settle(100)
    assert cluster.entry().serving == 0
    node = cluster.machines["a"].node
    assert node is not None
    node.replication.state.parts.catalogue.fence(1, "a damaged stretch of the journal")
    cluster.machines["b"].crash()
    cluster.parted.clear()
    assert not cluster.elect(leader="a")
    cluster.machines["b"].start()
    cluster.settle(2_000)
    assert cluster.leader.name == "b"
    assert isinstance(cluster.ask(messages.Send(1), encode_parts([b"one"])), messages.SendResult)

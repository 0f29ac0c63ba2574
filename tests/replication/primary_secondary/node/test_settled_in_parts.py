"""A request with many receipts takes several turns: between two of them its partitions may be led elsewhere."""

from __future__ import annotations

import pytest

from penstock.backend.receive import settlements
from penstock.model.batch import encode_parts
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import NAMES, Cluster

PARTS = 3_000
"""More turns than two elections take."""


@pytest.fixture(autouse=True)
def one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlements, "RECEIPTS_AT_ONCE", 1)


def leased(cluster: Cluster, partition: int) -> messages.Receipt:
    """The receipt for a message that was sent to a partition."""
    cluster.ask(messages.Send(partition), encode_parts([b"one"]), partition)
    delivery = cluster.ask(messages.Receive(partition, 1, visibility_timeout_ms=600_000), partition=partition)
    assert isinstance(delivery, messages.Delivery)
    return messages.Receipt(delivery.token, [(1, 1)])


def living(cluster: Cluster) -> list[int]:
    """How many messages of the first queue each node has."""
    nodes = [cluster.machines[name].node for name in NAMES]
    return [node.catalogue.partitions[1].table.messages for node in nodes if node is not None]


def begun() -> tuple[Cluster, int]:
    """Primary `a` has carried out the first part of a request alone; the second part and all others are of another queue."""
    cluster = Cluster(seed=3)
    cluster.create("orders", 1)
    cluster.create("others", 2)
    cluster.settle(1000)
    first, other = leased(cluster, 1), leased(cluster, 2)
    a = cluster.machines["a"]
    for name in ("b", "c"):
        cluster.parted.add(frozenset(("a", name)))
        cluster.cut("a", name)
    number = a.request(messages.Delete([first, *[other] * PARTS]))
    for _ in range(3):
        a.turn()
    assert living(cluster) == [0, 1, 1]
    return cluster, number


def test_a_delete_that_a_failover_took_back_is_not_acknowledged() -> None:
    cluster, number = begun()
    a = cluster.machines["a"]
    assert cluster.elect(1, leader="b")
    cluster.parted.clear()
    cluster.settle(400)
    assert cluster.serving().name == "b"
    assert cluster.elect(1, leader="a")
    cluster.settle(400)
    assert cluster.serving().name == "a"
    assert number not in a.answers, "the request was to take longer than that"
    cluster.settle(20_000)
    assert living(cluster) == [1, 1, 1]
    assert isinstance(a.answers[number], messages.Failed)


def test_it_is_acknowledged_where_the_connections_only_broke() -> None:
    cluster, number = begun()
    a = cluster.machines["a"]
    cluster.parted.clear()
    cluster.settle(20_000)
    assert living(cluster) == [0, 0, 0]
    answer = a.answers[number]
    assert isinstance(answer, messages.Settled)
    assert answer.outcomes[0].done == 1

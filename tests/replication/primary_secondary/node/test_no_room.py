"""What finds no room in the journal waits, in the order in which it came, and nothing of it is lost."""

from __future__ import annotations

import pytest

from penstock.backend.node.logbook import busy
from penstock.model.batch import encode_parts
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.wire import messages
from penstock.wire.frames import Frame
from penstock.wire.peer_messages import Lead, Lost, PeerMessage, encode_peer_message
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same, send


def hear(node: ReplicatedNode, message: PeerMessage, now_ms: int) -> None:
    node.replication.peer_frame(
        "a", Frame(0, memoryview(encode_peer_message(message)), memoryview(b"")), now_ms
    )


def test_a_count_that_finds_no_room_takes_no_records_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.create()
    cluster.create("other", 2, ("b", "a", "c"))
    cluster.settle(500)
    send(cluster, b"one")
    cluster.settle(100)
    node = cluster.machines["b"].node
    assert node is not None
    logbook = node.replication.state.parts.logbook

    def no_room(*arguments: object) -> None:
        raise busy()

    machine = cluster.machines["a"]
    assert machine.node is not None
    with monkeypatch.context() as full:
        full.setattr(logbook, "copy", no_room)
        full.setattr(logbook, "write", no_room)
        machine.request(messages.Send(1), encode_parts([b"two"]))
        machine.turn()
        cluster.deliver(("a", "b"))  # records of the first queue
        hear(node, Lost(2, 1, 7), cluster.now_ms)  # about the second one, which it leads
    cluster.settle(500)
    assert "b" in cluster.entry().in_sync
    assert_same(cluster)
    assert node.replication.state.parts.catalogue.partitions[2].totals.lost == 7
    assert machine.node.replication.state.streams["b"]._under_way == 0  # its window is open again


def test_a_late_call_of_a_deposed_primary_does_not_replace_that_of_its_successor() -> None:
    """Both call before the replica has heard of the partition."""
    cluster = Cluster()
    cluster.settle(100)
    node = cluster.machines["c"].node
    assert node is not None
    for name, epoch in (("b", 2), ("a", 1)):
        call = memoryview(encode_peer_message(Lead(1, epoch)))
        node.replication.peer_frame(name, Frame(0, call, memoryview(b"")), cluster.now_ms)
    cluster.create()
    cluster.hear(cluster.machines["c"])
    follower_state = node.replication.follower.partitions[1]
    assert (follower_state.leader, follower_state.epoch) == ("b", 2)

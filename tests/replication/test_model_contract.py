"""What every replication model promises the node that asks it, and the clients behind: the same tests for each model."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.backend.node.environment import Environment
from penstock.backend.node.node import Node
from penstock.cluster.layout.elections import elected
from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.model.batch import encode_parts
from penstock.model.records import KINDS
from penstock.model.settings import QueueSettings
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.storage.store import Store
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import NodeHarness
from tests.replication.sole_replica import SoleReplica

LEASE_MS = 3_600_000


class AloneHarness(NodeHarness):
    """A node that is alone."""


class SoleHarness(NodeHarness):
    """The model of these tests."""

    def make_node(self, store: Store, environment: Environment) -> Node:
        return Node(store, environment, self.now_ms, make_model=SoleReplica)


class LedHarness(NodeHarness):
    """The model with a primary, over a layout in which this node is the only one."""

    def __init__(self) -> None:
        self._lives = 0
        self._entries: dict[int, tuple[PartitionEntry, int]] = {}
        super().__init__()

    def make_node(self, store: Store, environment: Environment) -> Node:
        self._lives += 1
        node = ReplicatedNode(
            store, environment, self.now_ms, name="a", secret=b"s" * 32, started_ms=self._lives
        )
        self._replication = node.replication
        living = NodeEntry(node="a", zone="z", native="", peers="", started_ms=self._lives, records=KINDS)
        self._replication.apply_nodes({"a": living}, self.now_ms)
        self._replication.lease_renewed(self.now_ms + LEASE_MS, self.now_ms)
        for known, version in list(self._entries.values()):
            self._tell(elected(known, living, "it started again"), version + 1)
        return node

    def _tell(self, entry: PartitionEntry, version: int) -> None:
        self._entries[entry.partition] = (entry, version)
        self._replication.queue_named(entry.queue, entry.queue_id, self.now_ms)
        self._replication.apply_layout([(entry, version)], self.now_ms)

    def turn(self) -> None:
        """As a node of its own, with a store that agrees to everything at once."""
        super().turn()
        while proposals := self._replication.take_proposals(self.now_ms):
            for proposal in proposals:
                self._tell(proposal.entry, proposal.version + 1)
            super().turn()

    def create(self, name: str, **settings: object) -> int:
        """A queue of one partition, led by this node."""
        partition = len(self._entries) + 1
        entry = PartitionEntry(
            partition=partition,
            queue_id=100 + partition,
            queue=name,
            ordinal=0,
            settings=QueueSettings(**settings),  # type: ignore[arg-type]  # as the caller names them
            epoch=1,
            primary="a",
            primary_started_ms=self._lives,
            replicas=["a"],
            in_sync=["a"],
        )
        self._tell(entry, 1)
        self.turn()
        return partition


HARNESSES: dict[str, Callable[[], NodeHarness]] = {
    "alone": AloneHarness,
    "primary-secondary": LedHarness,
    "sole": SoleHarness,
}


@pytest.fixture(params=sorted(HARNESSES))
def harness(request: pytest.FixtureRequest) -> NodeHarness:
    """A node with each model."""
    return HARNESSES[request.param]()


def test_a_send_is_answered_when_it_is_on_disk_and_not_before(harness: NodeHarness) -> None:
    partition = harness.create("orders")
    head = memoryview(messages.encode_message(messages.Send(partition)))
    harness.node.handle(1, Frame(999, head, memoryview(encode_parts([b"kept"]))), harness.now_ms)
    flush = harness.node.take_flush()
    assert flush is not None
    assert not harness.node.take_output()
    flush.run()
    harness.node.flushed(flush, harness.now_ms)
    harness.turn()
    ((_, answer, _),) = harness.answers(999)
    assert isinstance(answer, messages.SendResult)


def test_what_was_answered_is_there_after_power_was_lost(harness: NodeHarness) -> None:
    partition = harness.create("orders")
    harness.send(partition, [b"first", b"second"])
    harness.crash()
    harness.turn()
    assert harness.drain(partition) == [b"first", b"second"]


def test_what_was_deleted_does_not_come_back(harness: NodeHarness) -> None:
    partition = harness.create("orders", visibility_timeout_ms=1_000)
    harness.send(partition, [b"only"])
    assert harness.drain(partition) == [b"only"]
    harness.advance(5_000)
    assert not harness.drain(partition)
    harness.restart()
    harness.turn()
    assert not harness.drain(partition)


def test_checkpoints_keep_what_is_stored(harness: NodeHarness) -> None:
    partition = harness.create("orders")
    for number in range(60):
        harness.send(partition, [b"%d " % number + b"x" * 20_000])
    harness.advance(1_000)
    harness.restart()
    harness.turn()
    assert [int(body.split()[0]) for body in harness.drain(partition)] == list(range(60))


def test_names_are_known_and_statistics_are_told(harness: NodeHarness) -> None:
    partition = harness.create("orders")
    harness.send(partition, [b"a", b"b"])
    model = harness.node._parts.model
    assert model.incarnation_of("orders") is not None
    assert model.incarnation_of("invoices") is None
    assert harness.show("orders").statistics.ready == 2


def test_the_model_of_these_tests_is_asked() -> None:
    """Otherwise it would prove nothing: every answer about a partition waits for its word."""
    harness = SoleHarness()
    partition = harness.create("orders")
    harness.send(partition, [b"a"])
    model = harness.node._parts.model
    assert isinstance(model, SoleReplica)
    assert model.asked

"""A replica is taken off a node and added again: what the node said of the one before does not count for the new one.

Only the primary puts replicas in sync. If it took an empty replica for one that has everything, acknowledged messages could
be lost with the other replicas.
"""

from __future__ import annotations

from collections import deque

import msgspec
import pytest

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.placement import Census
from penstock.cluster.manager.replica_moves import mend_replicas
from penstock.cluster.manager.settings import ManagerSettings
from penstock.model.batch import encode_parts
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster, Machine

PRIMARY, AGAIN = "a", "c"


class Moved(Cluster):
    """The queue is led by `a`. The manager takes the replica off `c`, and adds it again."""

    def __init__(self) -> None:
        super().__init__()
        self.deaf: set[str] = set()
        """Nodes that hear nothing of the layout."""
        self.slow: set[tuple[str, str]] = set()
        """Pairs between which everything is under way for long."""
        self.in_sync_while_empty = False
        self.create()
        self.settle(500)
        self.send(b"one", b"two")
        self.settle(500)

    def hear(self, machine: Machine, most: int = 10**9) -> None:
        if machine.name not in self.deaf:
            super().hear(machine, most)

    def deliver(self, pair: tuple[str, str], most: int = 10**9) -> None:
        if pair not in self.slow:
            super().deliver(pair, most)

    def put(self, entry: PartitionEntry) -> None:
        super().put(entry)
        if AGAIN in entry.in_sync and entry.serving and not self.index(AGAIN):
            self.in_sync_while_empty = True

    def send(self, *bodies: bytes) -> None:
        answer = self.ask(messages.Send(1), bytes(encode_parts(list(bodies))))
        assert isinstance(answer, messages.SendResult), answer

    def index(self, name: str) -> int | None:
        """How far the log of a replica goes; None: the node has none."""
        node = self.machines[name].node
        assert node is not None
        partition = node.replication.state.parts.catalogue.partitions.get(1)
        return partition.index if partition is not None else None

    def manage(self, wanted: int) -> None:
        """What the manager makes of a partition that is to have so many replicas."""
        entry, version = self.entries[1]
        settings = msgspec.structs.replace(entry.settings, replicas=wanted)
        entry = msgspec.structs.replace(entry, settings=settings)
        view = ClusterView()
        node = self.machines[PRIMARY].node
        assert node is not None
        for name, living in node.replication.state.nodes.items():
            view.apply(layout.node_key(name), layout.encode(living), 1, self.now_ms)
        view.apply(layout.partition_key(1), layout.encode(entry), version, self.now_ms)
        change = mend_replicas(view, view.partitions[1], Census([entry]), self.now_ms, ManagerSettings())
        assert change is not None
        assert isinstance(change.entry, PartitionEntry)
        # A record that tells of other settings would be one that the former replica did not confirm.
        self.put(msgspec.structs.replace(change.entry, settings=self.entry().settings))

    def take_off(self) -> None:
        self.manage(2)
        assert AGAIN not in self.entry().replicas
        self.settle(500)
        assert (self.index(AGAIN), self.entry().leaving) == (None, [])

    def add_again(self) -> None:
        self.manage(3)
        assert AGAIN in self.entry().replicas

    def hear_the_newest(self, name: str) -> None:
        """A node hears of the entry as it is now, and never of those between."""
        self.deaf.discard(name)
        self.machines[name].heard = deque([self.entries[1]])

    def check(self) -> None:
        self.settle(3_000)
        assert not self.in_sync_while_empty
        assert set(self.entry().in_sync) == {"a", "b", "c"}
        assert self.index(AGAIN) == self.index(PRIMARY)


@pytest.fixture
def cluster() -> Moved:
    return Moved()


def test_a_primary_that_heard_of_neither_step_takes_the_new_replica_for_an_empty_one(cluster: Moved) -> None:
    cluster.deaf.add(PRIMARY)
    cluster.take_off()
    cluster.add_again()
    cluster.hear_the_newest(PRIMARY)
    cluster.check()


def test_so_it_is_where_the_new_replica_is_made_after_the_primary_heard(cluster: Moved) -> None:
    cluster.deaf.add(PRIMARY)
    cluster.take_off()
    cluster.deaf.add(AGAIN)
    cluster.add_again()
    cluster.hear_the_newest(PRIMARY)
    cluster.settle(1_000)
    assert AGAIN not in cluster.entry().in_sync
    cluster.deaf.clear()
    cluster.check()


def test_what_a_former_replica_confirmed_counts_for_nothing_when_it_arrives_late(cluster: Moved) -> None:
    cluster.slow.add((AGAIN, PRIMARY))
    cluster.machines[PRIMARY].request(messages.Send(1), bytes(encode_parts([b"three"])))
    cluster.settle(100)
    assert cluster.index(AGAIN) == cluster.index(PRIMARY)
    cluster.take_off()
    assert cluster.pipes[AGAIN, PRIMARY], "the word that it has everything is still under way"
    cluster.deaf.add(AGAIN)
    cluster.add_again()
    cluster.settle(100)
    cluster.slow.clear()
    cluster.settle(1_000)
    assert AGAIN not in cluster.entry().in_sync
    cluster.deaf.clear()
    cluster.check()


@pytest.mark.parametrize("earlier", [False, True])
def test_the_word_of_a_former_replica_counts_for_nothing_when_it_arrives_late(
    cluster: Moved, earlier: bool
) -> None:
    """`earlier`: the node is of an earlier version, and does not say of which of its replicas it speaks."""
    if earlier:
        node = cluster.machines[AGAIN].node
        assert node is not None
        node.replication.state.layout.joined = lambda *asked: None  # type: ignore[method-assign]  # of this node alone
    cluster.slow.add((AGAIN, PRIMARY))
    cluster.cut(PRIMARY, AGAIN)
    cluster.settle(100)
    assert cluster.pipes[AGAIN, PRIMARY], "it has said that it has everything"
    cluster.take_off()
    cluster.deaf.add(AGAIN)
    cluster.add_again()
    cluster.settle(100)
    cluster.slow.clear()
    cluster.settle(1_000)
    assert AGAIN not in cluster.entry().in_sync
    cluster.deaf.clear()
    if earlier:
        cluster.settle(1_000)
        assert AGAIN not in cluster.entry().in_sync, "until its node is upgraded"
        cluster.machines[AGAIN].crash()
        cluster.machines[AGAIN].start()
    cluster.check()

"""What became of messages is reported by whoever leads: nothing is lost or renumbered by failovers, nor by lost words."""

from __future__ import annotations

import msgspec
import pytest

from penstock.cluster.layout.elections import elected
from penstock.cluster.layout.entries import NodeEntry
from penstock.columnar.lifecycle import LIFECYCLE, Change
from penstock.columnar.reading import Row, rows_of
from penstock.model.batch import Batch, encode_parts
from penstock.simulation.lifecycle_ledger import LifecycleLedger
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same, send


class FollowedCluster(Cluster):
    """A cluster whose log of lifecycles is a list; it loses some reports, and some words about them."""

    def __init__(self, seed: int = 1, lost: float = 0.0) -> None:
        self.rows: list[Row] = []
        self.lost = lost
        super().__init__(seed)

    def step(self) -> None:
        super().step()
        for machine in self.machines.values():
            if machine.node is None:
                continue
            for report in machine.node.replication.take_lifecycle_reports(self.now_ms):
                is_lost = self.random.random() < self.lost
                if not is_lost:
                    (body,) = Batch(report.batch).bodies()
                    self.rows += rows_of(LIFECYCLE, bytes(body))
                is_told = not is_lost and self.random.random() >= self.lost
                machine.node.replication.lifecycle_reported(report, self.now_ms, stored=is_told)

    def waiting(self) -> set[int]:
        """How many rows wait, at each node."""
        nodes = [machine.node for machine in self.machines.values() if machine.node is not None]
        partitions = [node.replication.state.parts.catalogue.partitions[1] for node in nodes]
        return {len(partition.lifecycle.waiting) if partition.lifecycle else 0 for partition in partitions}

    def balanced(self) -> dict[int, list[Change]]:
        """What the log says, once it is checked."""
        ledger = LifecycleLedger(self.rows)
        assert not ledger.problems
        return {number: [event.change for event in events] for number, events in ledger.messages[1].items()}


def delete_one(cluster: Cluster) -> None:
    delivery = cluster.ask(messages.Receive(1, 1))
    assert isinstance(delivery, messages.Delivery)
    (head,) = delivery.batches
    cluster.ask(messages.Delete([messages.Receipt(delivery.token, [(head.first, head.count)])]))


ENDED = [Change.SENT, Change.LEASED, Change.DELETED]


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_complete_through_failovers_and_lost_words(seed: int) -> None:
    cluster = FollowedCluster(seed, lost=0.3)
    cluster.create(lifecycle=True)
    cluster.settle(500)
    for number in range(4):
        for _ in range(3):
            send(cluster, b"message")
            delete_one(cluster)
            cluster.settle(cluster.random.choice((0, 60, 200)))
        gone = cluster.leader
        gone.crash(power=bool(number % 2))
        cluster.settle(3_000)
        gone.start()
        cluster.settle(3_000)
    cluster.lost = 0.0
    cluster.settle(2_000)
    assert cluster.waiting() == {0}
    assert_same(cluster)
    assert cluster.balanced() == dict.fromkeys(range(1, 13), ENDED)


def test_a_queue_that_is_followed_later_has_the_same_rows_on_replicas_that_come_later() -> None:
    cluster = FollowedCluster()
    cluster.create(nodes=("a", "b"))
    cluster.settle(500)
    send(cluster, b"before")
    settings = msgspec.structs.replace(cluster.entry().settings, lifecycle=True)
    cluster.put(msgspec.structs.replace(cluster.entry(), settings=settings))
    cluster.settle(500)
    send(cluster, b"after")
    cluster.put(msgspec.structs.replace(cluster.entry(), replicas=["a", "b", "c"]))
    cluster.settle(3_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)
    assert cluster.balanced() == {1: [Change.STOOD], 2: [Change.SENT]}


def test_only_what_every_replica_in_sync_has_is_reported() -> None:
    cluster = FollowedCluster()
    cluster.create(lifecycle=True, replication="async")
    for machine in cluster.machines.values():
        assert machine.node is not None
        machine.node.replication.lease_renewed(cluster.now_ms + 10**9, cluster.now_ms)
    cluster.settle(500)
    cluster.parted = {frozenset("ab"), frozenset("ac")}
    for other in "bc":
        cluster.cut("a", other)
    send(cluster, b"acknowledged by the primary alone")
    cluster.settle(300)
    assert cluster.rows == []
    cluster.parted = set()
    cluster.settle(1_000)
    assert cluster.balanced() == {1: [Change.SENT]}


def test_a_deleted_queue_says_its_last_words_before_it_is_dropped() -> None:
    cluster = FollowedCluster(lost=0.4)
    cluster.create(lifecycle=True)
    cluster.settle(500)
    send(cluster, b"one", b"two")
    delete_one(cluster)
    entry = cluster.entry()
    cluster.put(msgspec.structs.replace(entry, primary=None, replicas=[], in_sync=[], leaving=entry.replicas))
    cluster.settle(5_000)
    assert cluster.entry().leaving == []
    for machine in cluster.machines.values():
        assert machine.node is not None
        assert 1 not in machine.node.replication.state.parts.catalogue.partitions
    assert cluster.balanced() == {1: ENDED, 2: [Change.SENT, Change.QUEUE_DELETED]}


def test_a_deleted_queue_does_not_wait_for_ever_for_its_log() -> None:
    cluster = FollowedCluster(lost=1.0)
    cluster.create(lifecycle=True)
    cluster.settle(500)
    send(cluster, b"one")
    entry = cluster.entry()
    cluster.put(msgspec.structs.replace(entry, primary=None, replicas=[], in_sync=[], leaving=entry.replicas))
    cluster.settle(5_000)
    assert cluster.entry().leaving == [entry.primary]
    cluster.settle(7_000)
    assert cluster.entry().leaving == []


def test_an_unclean_election_uses_no_number_of_a_row_again() -> None:
    """Rows that were reported are lost with the replicas that had them: rows go on with other numbers, and one says so."""
    cluster = FollowedCluster()
    cluster.create(lifecycle=True, min_in_sync=1)
    cluster.settle(500)
    send(cluster, b"all")
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.settle(3_000)
    for _ in range(3):
        send(cluster, b"lost")
    cluster.settle(500)
    before = [row["number"] for row in cluster.rows]
    assert before == [1, 2, 3, 4]
    for name in ("a", "b"):
        cluster.machines[name].crash()
    cluster.machines["c"].start()
    cluster.settle(500)
    node = NodeEntry(node="c", native="", peers="", started_ms=cluster.machines["c"].started_ms)
    cluster.put(elected(cluster.entry(), node, "an operator says so", in_sync=["c"], unclean=True))
    cluster.settle(1_000)
    for _ in range(3):
        send(cluster, b"new")
    cluster.settle(1_000)
    rows = cluster.rows[4:]
    renumbered = next(row for row in rows if row["change"] == Change.RENUMBERED)
    assert (renumbered["first"], renumbered["count"]) == (2, 0), "it has heard of row 1 only"
    after = [row["number"] for row in rows]
    assert after == list(range(renumbered["number"], renumbered["number"] + 4))
    assert renumbered["number"] > max(before)
    assert renumbered["number"] % 64 == 0
    cluster.machines["a"].start()
    cluster.machines["b"].start()
    cluster.settle(4_000)
    assert_same(cluster)
    assert cluster.waiting() == {0}
    send(cluster, b"newer")
    cluster.settle(500)
    assert cluster.rows[-1]["number"] == after[-1] + 1
    told = cluster.balanced()
    assert list(map(len, told.values())) == [1] * 8, "one, three that are lost, and four with other numbers"
    assert sorted(told)[:4] == [1, 2, 3, 4]


def test_a_deleted_queue_tells_of_what_left_it_before_it_is_dropped() -> None:
    cluster = FollowedCluster()
    cluster.create("dead", 2, ("b", "a", "c"))
    cluster.create(lifecycle=True, dead_letter_queue="dead")
    cluster.settle(500)
    send(cluster, b"stays")
    later = encode_parts([b"leaves"], delays_ms=[600_000])
    assert isinstance(cluster.ask(messages.Send(1), later), messages.SendResult)
    cluster.delete()
    cluster.settle(3_000)
    assert cluster.holders(1) == []
    assert cluster.balanced() == {
        1: [Change.SENT, Change.QUEUE_DELETED],
        2: [Change.SENT, Change.MOVE_STARTED, Change.MOVE_FINISHED],
    }

"""Replicas that cannot simply go on: cut logs, whole states, damage, lost disks; and messages that move between nodes."""

from __future__ import annotations

import random
from collections import deque

import msgspec
import pytest

from penstock.model.batch import encode_parts
from penstock.replication.primary_secondary.node.follower import installing
from penstock.replication.primary_secondary.node.leader import sender as leading
from penstock.simulation.disk import SimulatedDisk
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import START_MS, Cluster
from tests.replication.primary_secondary.node.test_failover import assert_same, send


def fill(cluster: Cluster, count: int, size: int = 2_000) -> None:
    for number in range(count):
        send(cluster, b"%06d" % number + b"x" * size)


def received(cluster: Cluster, partition: int = 1) -> int:
    """Receives and deletes everything that is ready."""
    total = 0
    while True:
        delivery = cluster.ask(messages.Receive(partition, 100), partition=partition)
        assert isinstance(delivery, messages.Delivery)
        runs = [(head.first, head.count) for head in delivery.batches]
        if not runs:
            return total
        settled = cluster.ask(messages.Delete([messages.Receipt(delivery.token, runs)]), partition=partition)
        assert isinstance(settled, messages.Settled)
        total += settled.outcomes[0].done


def test_a_replica_too_far_behind_gets_everything() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.settle(2_000)
    fill(cluster, 400)  # several checkpoints' worth
    cluster.machines["c"].start()
    cluster.settle(4_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)
    # and it has the messages themselves, also after a restart
    cluster.machines["c"].crash()
    cluster.machines["c"].start()
    cluster.settle(3_000)
    cluster.elect(leader="c")
    cluster.settle(2_000)
    assert cluster.leader.name == "c"
    assert received(cluster) == 400


@pytest.mark.parametrize("seed", range(20))
def test_a_crash_in_the_middle_of_a_restore_is_mended(seed: int) -> None:
    cluster = Cluster(seed)
    cluster.create()
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.settle(1_500)
    fill(cluster, 150, 4_000)
    dice = random.Random(seed)
    cluster.machines["c"].start()
    for _ in range(4):
        for _ in range(dice.randrange(1, 12)):
            cluster.connect()
            cluster.now_ms += 5
            for machine in cluster.machines.values():
                cluster.hear(machine)
                machine.turn(work=0.6)
            for pair in list(cluster.pipes):
                cluster.deliver(pair, 2)
        cluster.machines["c"].crash(power=dice.random() < 0.5)
        cluster.machines["c"].start()
    cluster.settle(4_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)
    cluster.elect(leader="c")
    cluster.settle(2_000)
    assert received(cluster) == 150


def test_what_was_never_committed_is_cut() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    fill(cluster, 5)
    for pair in ("ab", "ac"):
        cluster.parted.add(frozenset(pair))
        cluster.cut(*pair)
    old = cluster.machines["a"]
    for number in range(3):
        old.request(messages.Send(1), encode_parts([b"never %d" % number]))
    old.request(messages.Receive(1, 2))
    for _ in range(5):
        cluster.now_ms += 10
        old.turn()
    cluster.elect(leader="b")
    cluster.settle(2_000)
    send(cluster, b"after")
    cluster.parted.clear()
    cluster.settle(3_000)
    assert_same(cluster)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    old.crash()
    old.start()
    cluster.settle(3_000)
    assert_same(cluster)
    cluster.elect(leader="a")
    cluster.settle(1_000)
    assert received(cluster) == 6


def test_a_log_is_cut_on_a_node_that_never_rests() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.create("busy", 2, nodes=("a",))
    cluster.settle(500)
    fill(cluster, 5)
    for pair in ("ab", "ac"):
        cluster.parted.add(frozenset(pair))
        cluster.cut(*pair)
    old = cluster.machines["a"]
    old.request(messages.Send(1), encode_parts([b"never"]))
    old.turn()
    cluster.elect(leader="b")
    cluster.settle(2_000)
    cluster.parted.clear()
    for _ in range(200):
        cluster.now_ms += 10
        cluster.connect()
        for machine in cluster.machines.values():
            cluster.hear(machine)
            old.request(messages.Send(2), encode_parts([b"something in every turn"]))
            machine.turn()
            cluster.propose(machine)
        for pair_ in list(cluster.pipes):
            cluster.deliver(pair_)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]


def test_a_lost_disk_never_leads_and_is_filled_again() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    fill(cluster, 5)
    machine = cluster.machines["a"]
    machine.crash()
    machine.disk = SimulatedDisk(random.Random(7))
    machine.start()
    cluster.settle(3_000)
    assert cluster.leader.name != "a"
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)
    assert received(cluster) == 5


def test_a_lost_disk_that_is_being_filled_again_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "APPEND_BYTES", 10_000)  # so that it takes more than one step
    # The state is there before the batches that it refers to; what comes while it is built waits for it.
    monkeypatch.setattr(installing, "PAGES_PER_TURN", 1_000)
    cluster = Cluster()
    cluster.create(nodes=("a", "b"))
    cluster.settle(500)
    fill(cluster, 60, 3_000)  # little enough for the primary to have its log from the first record on
    machine = cluster.machines["b"]
    machine.crash()
    machine.disk = SimulatedDisk(random.Random(4))
    machine.start()
    assert machine.node is not None
    cluster.hear(machine)
    cluster.connect()
    while not machine.node.replication.positions([1])[1].last:
        cluster.now_ms += 5
        assert cluster.now_ms < START_MS + 60_000
        for each in cluster.machines.values():
            each.turn()
        cluster.deliver(("b", "a"))
        arriving = b"".join(cluster.pipes["a", "b"])
        cluster.pipes["a", "b"] = deque([arriving[:20_000], arriving[20_000:]])
        cluster.deliver(("a", "b"), 1)
    cluster.machines["a"].crash()
    # In sync it is on paper only: whoever has everything is gone for now, and must be waited for.
    assert "b" in cluster.entry().in_sync
    assert not cluster.elect()
    cluster.machines["a"].start()
    cluster.settle(3_000)
    assert cluster.leader.name == "a"
    assert sorted(cluster.entry().in_sync) == ["a", "b"]
    assert received(cluster) == 60


def test_damage_on_a_secondary_is_repaired_from_the_primary() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    fill(cluster, 20)
    machine = cluster.machines["b"]
    machine.crash(power=False)
    name = next(name for name in machine.disk.files() if name.startswith("journal/"))
    machine.disk.flip_bit(name, machine.disk.contents(name).index(b"000007x"))
    machine.start()
    assert machine.node is not None
    assert machine.node.opening_report.damages
    cluster.settle(4_000)
    assert not machine.node.replication.state.parts.catalogue.damage
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)
    machine.crash()
    machine.start()
    assert not machine.node.opening_report.damages
    cluster.settle(3_000)
    cluster.elect(leader="b")
    cluster.settle(1_000)
    assert received(cluster) == 20


def test_a_primary_that_is_damaged_leads_no_more() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    fill(cluster, 100)  # more than the cache holds
    machine = cluster.machines["a"]
    for name, contents in [(name, machine.disk.contents(name)) for name in machine.disk.files()]:
        if b"000003x" in contents:
            machine.disk.flip_bit(name, contents.index(b"000003x"))
    number = machine.request(messages.Receive(1, 10))
    cluster.settle(4_000)
    assert isinstance(machine.answers[number], messages.Failed)
    assert cluster.leader.name != "a"
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)


def test_a_retained_log_is_taken_over_whole() -> None:
    cluster = Cluster()
    cluster.create(consumption="both")
    cluster.settle(500)
    cluster.machines["c"].crash()
    cluster.settle(1_500)
    fill(cluster, 200)
    assert received(cluster) == 200
    cluster.machines["c"].start()
    cluster.settle(4_000)
    assert_same(cluster)
    cluster.elect(leader="c")
    cluster.settle(1_000)
    total, start = 0, 1
    while True:
        slice_ = cluster.ask(messages.ReadLog(1, start, 1_000))
        assert isinstance(slice_, messages.LogSlice), slice_
        if not slice_.batches:
            break
        total += sum(batch.count for batch in slice_.batches)
        start = slice_.next
    assert total == 200


def test_dead_letters_cross_from_node_to_node() -> None:
    cluster = Cluster()
    cluster.create("dead", 2, ("c", "a", "b"))
    cluster.create(
        "q", 1, ("a", "b", "c"), dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=50
    )
    cluster.settle(500)
    fill(cluster, 3)
    delivery = cluster.ask(messages.Receive(1, 10))
    assert isinstance(delivery, messages.Delivery)
    cluster.settle(3_000)
    assert received(cluster, 2) == 3
    assert received(cluster, 1) == 0
    target = cluster.machines["c"].node
    assert target is not None
    assert not list(target.replication.state.parts.catalogue.partitions[2].origins)


def test_a_message_does_not_leave_before_its_arrival_is_committed() -> None:
    cluster = Cluster()
    cluster.create("dead", 2, ("b", "c", "a"))
    cluster.create(
        "q", 1, ("a", "b", "c"), dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=50
    )
    cluster.settle(500)
    fill(cluster, 1)
    cluster.parted = {frozenset("bc")}
    cluster.cut("b", "c")  # so that nothing is committed at the target
    cluster.ask(messages.Receive(1, 10))
    cluster.settle(600)
    source = cluster.machines["a"].node
    assert source is not None
    assert source.replication.state.parts.catalogue.partitions[1].moves
    cluster.parted = set()
    cluster.settle(2_000)
    assert not source.replication.state.parts.catalogue.partitions[1].moves
    assert received(cluster, 2) == 1


def test_a_planned_move_hands_over_everything() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    fill(cluster, 3)
    cluster.put(msgspec.structs.replace(cluster.entry(), hand_over_to="b"))
    cluster.settle(500)
    assert (cluster.entry().primary, cluster.entry().epoch) == ("b", 2)
    assert received(cluster) == 3


def test_a_node_that_is_to_leave_drops_what_it_has_and_may_come_back() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    fill(cluster, 3)
    entry = cluster.entry()
    gone = msgspec.structs.replace(entry, replicas=["a", "b"], in_sync=["a", "b"], leaving=["c"])
    cluster.put(gone)
    cluster.settle(500)
    assert cluster.entry().leaving == []
    node = cluster.machines["c"].node
    assert node is not None
    assert 1 not in node.replication.state.parts.catalogue.partitions
    cluster.put(msgspec.structs.replace(cluster.entry(), replicas=["a", "b", "c"]))
    cluster.settle(2_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    cluster.machines["c"].crash()
    cluster.machines["c"].start()
    cluster.settle(2_000)
    assert_same(cluster)


def test_a_node_that_comes_back_and_crashes_before_it_has_anything_is_filled_again() -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    fill(cluster, 20, 100)
    entry = cluster.entry()
    cluster.put(msgspec.structs.replace(entry, replicas=["a", "b"], in_sync=["a", "b"], leaving=["c"]))
    cluster.settle(500)
    assert cluster.entry().leaving == []
    for name in ("a", "b"):
        cluster.parted.add(frozenset((name, "c")))
        cluster.cut(name, "c")
    cluster.put(msgspec.structs.replace(cluster.entry(), replicas=["a", "b", "c"]))
    cluster.settle(500)
    # It holds the partition again, empty, and its journal still has the records of the time before.
    cluster.machines["c"].crash(power=False)
    cluster.machines["c"].start()
    cluster.parted.clear()
    cluster.settle(3_000)
    assert sorted(cluster.entry().in_sync) == ["a", "b", "c"]
    assert_same(cluster)

"""A state is made for a replica, and taken in there, a little in each turn, while requests go on."""

from __future__ import annotations

import pytest

from penstock.backend.node import whole_state
from penstock.backend.node.whole_state import StateParts
from penstock.backend.upkeep import freeing
from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.queue.snapshot import taking_apart
from penstock.replication.primary_secondary.node.follower import installing
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster, Machine
from tests.replication.primary_secondary.node.test_failover import assert_same
from tests.replication.primary_secondary.node.test_installing import behind, messages_of, step


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PAGE_ROWS", 2)
    monkeypatch.setattr(limits, "CAPTURE_PAGES", 1)
    monkeypatch.setattr(whole_state, "IMAGE_PART_BYTES", 60)
    monkeypatch.setattr(installing, "PAGES_PER_TURN", 1)


def is_capturing(machine: Machine) -> bool:
    assert machine.node is not None
    return machine.node._parts.catalogue.partitions[1].table.capture is not None


def is_building(machine: Machine) -> bool:
    assert machine.node is not None
    return machine.node.replication.follower.installer.is_building


def without_checkpoints(cluster: Cluster) -> None:
    for machine in cluster.machines.values():
        assert machine.node is not None
        machine.node._parts.store.checkpoint_due = lambda now_ms: False  # type: ignore[method-assign]  # of this store alone


def test_requests_go_on_while_a_state_is_made_and_taken_in() -> None:
    cluster = behind()
    without_checkpoints(cluster)
    primary = cluster.machines[cluster.entry().primary or ""]
    c = cluster.machines["c"]
    capturing = building = sent = 0
    for turn in range(5_000):
        step(cluster)
        capturing += is_capturing(primary)
        building += is_building(c)
        if turn % 5 == 0 and (is_capturing(primary) or is_building(c)):
            # Each changes what is captured: the message, a lease on old ones, and what producers are known for.
            cluster.ask(messages.Send(1, 9, 1_000 + turn), encode_parts([b"meanwhile %d" % turn]))
            sent += 1
        if "c" in cluster.entry().in_sync:
            break
    assert "c" in cluster.entry().in_sync
    assert capturing > 20, "the state was made in one turn"
    assert building > 20, "the state was taken in in one turn"
    assert sent > 3
    cluster.settle(3_000)
    assert len({messages_of(machine) for machine in cluster.machines.values()}) == 1
    assert_same(cluster)


def test_a_primary_that_stops_in_the_middle_leaves_nothing_behind() -> None:
    cluster = behind()
    without_checkpoints(cluster)
    name = cluster.entry().primary or ""
    for _ in range(3_000):
        step(cluster)
        if is_capturing(cluster.machines[name]):
            break
    assert is_capturing(cluster.machines[name])
    cluster.machines[name].crash(power=True)
    cluster.settle(6_000)
    cluster.machines[name].start()
    cluster.settle(8_000)
    assert set(cluster.entry().in_sync) == {"a", "b", "c"}
    assert_same(cluster)


def test_a_replica_that_goes_away_ends_the_capture() -> None:
    cluster = behind()
    without_checkpoints(cluster)
    primary = cluster.machines[cluster.entry().primary or ""]
    for _ in range(3_000):
        step(cluster)
        if is_capturing(primary):
            break
    assert is_capturing(primary)
    for other in "ab":
        cluster.parted.add(frozenset((other, "c")))
        cluster.cut(other, "c")
    for _ in range(5):
        step(cluster)
    assert not is_capturing(primary)
    cluster.parted.clear()
    cluster.settle(8_000)
    assert "c" in cluster.entry().in_sync
    assert_same(cluster)


@pytest.mark.parametrize("turns", [0, 95, 110])
def test_no_state_is_made_of_a_partition_that_is_dropped_before_its_turn(
    monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    """It is being taken apart by then, or nothing is left of it."""
    monkeypatch.setattr(taking_apart, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(taking_apart, "_FEW", 1)
    monkeypatch.setattr(freeing, "STEPS_PER_TURN", 1)
    cluster = Cluster(seed=7)
    cluster.create()
    cluster.create("other", 2)
    cluster.settle(800)
    for other in "ab":
        cluster.parted.add(frozenset((other, "c")))
        cluster.cut(other, "c")
    cluster.settle(4000)
    for number in range(120):
        body = encode_parts([b"x" * 9000], ttls_ms=[600_000 + 10_000 * number])
        partition = 1 + number % 2
        cluster.ask(messages.Send(partition, 1, number + 1), body, partition=partition)
    cluster.settle(500)
    cluster.parted.clear()
    without_checkpoints(cluster)
    primary = cluster.machines["a"]
    assert primary.node is not None
    parts = primary.node._parts
    for _ in range(3_000):
        step(cluster)
        if len(parts.captures._waiting) == 2:
            break
    assert len(parts.captures._waiting) == 2
    waiting = 2 if is_capturing(primary) else 1
    dropped = parts.catalogue.partitions[waiting]
    for _ in range(turns):
        step(cluster)
    assert dropped.table.capture is None
    cluster.delete(waiting)
    for _ in range(1_000):
        step(cluster)
        if waiting not in parts.catalogue.partitions:
            assert dropped.table.capture is None
    assert waiting not in parts.catalogue.partitions
    assert not dropped.table.chunks
    cluster.settle(3_000)
    assert set(cluster.entry(3 - waiting).in_sync) == {"a", "b", "c"}


@pytest.mark.parametrize("sizes", [[], [1], [60], [59, 1, 60, 61], [0, 200, 0, 3]])
def test_parts_are_the_whole_state_in_order(sizes: list[int]) -> None:
    buffers = [bytes([place + 1]) * size for place, size in enumerate(sizes)]
    parts = StateParts(buffers)
    taken = [b"".join(parts.take()) for _ in range(parts.count)]
    assert b"".join(taken) == b"".join(buffers)
    assert all(len(part) == 60 for part in taken[:-1])
    assert not parts
    assert parts.taken == parts.count

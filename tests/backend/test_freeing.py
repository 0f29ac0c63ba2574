"""States that are no longer used are freed over many turns, and never while they are captured."""

from __future__ import annotations

import pytest

from penstock.backend.upkeep import freeing
from penstock.backend.upkeep.freeing import Freeing
from penstock.model.batch import encode_parts
from penstock.model.records import Purged
from penstock.queue.partition import Partition
from penstock.queue.snapshot import snapshot, taking_apart
from penstock.queue.snapshot.capture import Capture
from penstock.wire import messages
from tests.backend.harness import NodeHarness
from tests.queue import large_states, recount
from tests.replication.primary_secondary.node import test_installing
from tests.replication.primary_secondary.node.test_failover import assert_same

ROWS = 5_000


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of a few dozen messages takes many turns to free."""
    monkeypatch.setattr(taking_apart, "ROWS_AT_ONCE", 2)
    monkeypatch.setattr(taking_apart, "_FEW", 1)
    monkeypatch.setattr(freeing, "STEPS_PER_TURN", 1)


def step_to_the_end(freed: Freeing) -> int:
    turns = 0
    freed.step()
    while freed:
        freed.step()
        turns += 1
        assert turns < 10_000
    return turns


def test_a_large_state_takes_many_turns_and_a_small_one_none() -> None:
    freed = Freeing()
    freed.add(large_states.leases(10))
    assert not freed
    assert not step_to_the_end(freed)
    freed.add(large_states.leases(ROWS))
    assert step_to_the_end(freed) > 3


def test_what_is_captured_waits_and_what_is_not_goes_on() -> None:
    freed = Freeing()
    captured, other = large_states.timers(ROWS), large_states.timers(ROWS)
    expected = snapshot.dump(captured)
    capture = Capture(captured)
    freed.add(captured)
    freed.add(other)
    assert step_to_the_end(freed)
    assert not other.table.chunks
    while not capture.is_done:
        freed.step()
        assert not freed
        capture.step(1)
    assert snapshot.dump(snapshot.load(b"".join(capture.buffers))) == expected
    assert step_to_the_end(freed)
    assert not captured.table.chunks


def captured_through_a_purge(partition: Partition) -> None:
    """The capture shows what was there before the purge, though what is given up is freed as soon as it may be."""
    expected = snapshot.dump(partition)
    freed = Freeing()
    capture = Capture(partition)
    capture.step(1)
    partition.apply(Purged(partition.table.next, large_states.START_MS))
    freed.add(partition, partition.discarded)
    partition.discarded = []
    while not capture.is_done:
        freed.step()
        capture.step(1)
    assert snapshot.dump(snapshot.load(b"".join(capture.buffers))) == expected
    step_to_the_end(freed)
    recount.check(partition)


@pytest.mark.parametrize("name", large_states.MAKERS)
def test_a_capture_goes_on_through_a_purge(name: str) -> None:
    partition = large_states.MAKERS[name](2_000)
    captured_through_a_purge(partition)
    moving = sum(count for runs in partition.moves.values() for _, count in runs)
    assert partition.table.messages == moving
    dumped = snapshot.dump(partition)
    assert snapshot.dump(snapshot.load(dumped)) == dumped


def test_receives_beyond_a_byte_are_captured_through_a_purge() -> None:
    partition = large_states.plain(2_000)
    partition.table.many_attempts[5] = 300
    partition.table.chunks[0].make_attempts()[5] = 255
    captured_through_a_purge(partition)
    assert not partition.table.many_attempts


@pytest.mark.usefixtures("small")
def test_a_purge_and_a_deletion_leave_something_to_free(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[bool] = []
    step = Freeing.step

    def noted(freed: Freeing) -> None:
        step(freed)
        turns.append(bool(freed))

    monkeypatch.setattr(Freeing, "step", noted)
    node = NodeHarness()
    queue = node.create("orders")
    for number in range(50):
        node.call(messages.Send(queue), encode_parts([b"%d" % number], ttls_ms=[60_000 + 1_000 * number]))
    turns.clear()
    assert node.call(messages.Purge(queue)) == messages.Count(50)
    assert sum(turns) > 10
    assert not turns[-1]
    node.call(messages.Send(queue), encode_parts([b"after"]))
    assert node.show("orders").statistics.ready == 1
    node.restart()
    assert node.show("orders").statistics.ready == 1
    for number in range(50):
        node.call(messages.Send(queue), encode_parts([b"%d" % number], ttls_ms=[60_000 + 1_000 * number]))
    turns.clear()
    node.call(messages.DeleteQueue("orders"))
    assert sum(turns) > 10
    assert not turns[-1]


@pytest.mark.usefixtures("small")
def test_a_replica_frees_the_state_that_another_one_replaces() -> None:
    cluster = test_installing.behind()
    c = cluster.machines["c"]
    assert c.node is not None
    before = c.node._parts.catalogue.partitions[1]
    freed = 0
    for _ in range(5_000):
        test_installing.step(cluster)
        freed += bool(c.node._parts.freeing)
        if "c" in cluster.entry().in_sync:
            break
    assert "c" in cluster.entry().in_sync
    assert freed > 2
    assert c.node._parts.catalogue.partitions[1] is not before
    assert not before.table.chunks
    cluster.settle(1_000)
    assert_same(cluster)


@pytest.mark.parametrize("few", [0, 1, 64])
@pytest.mark.parametrize("rows_at_once", [1, 512])
def test_containers_of_containers_are_freed_whatever_the_sizes(
    monkeypatch: pytest.MonkeyPatch, few: int, rows_at_once: int
) -> None:
    monkeypatch.setattr(taking_apart, "ROWS_AT_ONCE", rows_at_once)
    monkeypatch.setattr(taking_apart, "_FEW", few)
    freed = Freeing()
    freed.add(large_states.strict_groups(ROWS))
    step_to_the_end(freed)
    assert not freed

"""A whole state that a replica takes in counts altogether or not at all, wherever a checkpoint or a restart falls."""

from __future__ import annotations

import logging

import msgspec
import pytest

from penstock.backend.node import whole_state
from penstock.backend.node.logbook import busy, disk_full
from penstock.model.batch import encode_parts
from penstock.model.errors import PenstockError
from penstock.replication.primary_secondary.node.follower import installing
from penstock.replication.primary_secondary.node.follower.installing import Installation
from penstock.wire import messages
from penstock.wire.peer_messages import Image
from tests.replication.primary_secondary.node.cluster import Cluster, Machine
from tests.replication.primary_secondary.node.test_failover import assert_same

EARLY = 5
LATER = 60


class AlwaysUnderWay:
    """A checkpoint that does not end."""

    is_under_way = True


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A state of a few hundred bytes has several parts, and one of them goes to the journal in a turn."""
    monkeypatch.setattr(whole_state, "IMAGE_PART_BYTES", 60)
    monkeypatch.setattr(installing, "BYTES_PER_TURN", 1)


def behind() -> Cluster:
    """A cluster whose node c lacks records that the primary has no more: it has to be sent everything."""
    cluster = Cluster(seed=7)
    cluster.create()
    cluster.settle(800)
    for number in range(EARLY):
        cluster.ask(messages.Send(1), encode_parts([b"early %d" % number]))
    cluster.settle(200)
    for other in "ab":
        cluster.parted.add(frozenset((other, "c")))
        cluster.cut(other, "c")
    cluster.settle(4000)
    for number in range(LATER):
        body = encode_parts([b"%d " % number + b"x" * 9000])
        cluster.ask(messages.Send(1, 1 + number % 7, number + 1), body)
    cluster.settle(500)
    assert cluster.entry().in_sync == ["a", "b"]
    cluster.parted.clear()
    return cluster


def step(cluster: Cluster) -> None:
    """Everybody takes one turn."""
    cluster.now_ms += 1
    cluster.connect()
    for machine in cluster.machines.values():
        cluster.hear(machine)
        machine.turn()
        cluster.propose(machine)
    for pair in list(cluster.pipes):
        cluster.deliver(pair)


def written(machine: Machine) -> int:
    """How many parts of the state are in the journal and do not count yet."""
    assert machine.node is not None
    rows = machine.node.replication.follower.installer._installations
    return sum(row.written for row in rows)


def messages_of(machine: Machine) -> int:
    assert machine.node is not None
    return machine.node._parts.catalogue.partitions[1].table.messages


def only_c_returns(cluster: Cluster) -> None:
    """All machines stop, and the one that took the state in is the only one left."""
    for name in "abc":
        cluster.machines[name].crash(power=False)
    cluster.machines["c"].start()
    cluster.settle(1500)


@pytest.mark.parametrize("parts_before", range(0, 40, 4))
def test_a_checkpoint_never_captures_between_the_parts(parts_before: int) -> None:
    """Wherever it falls due. A replica that went back to its old state would erase what was acknowledged everywhere."""
    cluster = behind()
    c = cluster.machines["c"]
    assert c.node is not None
    checkpointer, store = c.node._checkpointer, c.node._parts.store
    store.checkpoint_due = lambda now_ms: False  # type: ignore[method-assign]  # of this store alone
    seen: set[int] = set()
    begun = False
    for _ in range(3000):
        step(cluster)
        seen.add(written(c))
        assert not (checkpointer.is_under_way and written(c))
        begun = begun or checkpointer.is_under_way
        wanted = written(c) >= parts_before and not begun  # one, and none afterwards that would set it right
        store.checkpoint_due = lambda now_ms, wanted=wanted: wanted  # type: ignore[misc,method-assign]  # a lambda with its own value
        if "c" in cluster.entry().in_sync and not checkpointer.is_under_way:
            break
    assert "c" in cluster.entry().in_sync
    assert len(seen) > 40  # it took many turns
    assert begun
    only_c_returns(cluster)
    assert cluster.entry().primary == "c"
    assert messages_of(c) == EARLY + LATER
    for name in "ab":
        cluster.machines[name].start()
    cluster.settle(6000)
    assert [messages_of(machine) for machine in cluster.machines.values()] == [EARLY + LATER] * 3
    assert_same(cluster)


@pytest.mark.parametrize("power", [False, True])
@pytest.mark.parametrize("parts_before", range(1, 6))
def test_a_restart_between_the_parts_leaves_the_old_state(parts_before: int, power: bool) -> None:
    cluster = behind()
    c = cluster.machines["c"]
    for _ in range(3000):
        step(cluster)
        if written(c) == parts_before:
            break
    assert written(c) == parts_before
    c.crash(power=power)
    c.start()
    assert c.node is not None
    assert messages_of(c) == EARLY
    assert not c.node._parts.catalogue.damage
    cluster.settle(6000)
    assert "c" in cluster.entry().in_sync
    assert messages_of(c) == EARLY + LATER
    assert_same(cluster)


@pytest.mark.parametrize("refusal", [busy, disk_full])
@pytest.mark.parametrize("failing", range(6))
def test_no_room_in_the_journal_delays_an_installation(failing: int, refusal: object) -> None:
    """After a full disk it begins again from the first part, and a checkpoint may free space meanwhile."""
    cluster = behind()
    c = cluster.machines["c"]
    assert c.node is not None
    logbook, real = c.node._parts.logbook, c.node._parts.logbook.write_image
    refused: list[int] = []

    def write_image(partition_id: int, index: int, part: int, parts: int, data: bytes) -> None:
        if part == failing and len(refused) < 3:
            refused.append(part)
            error = busy() if refusal is busy else disk_full()
            assert isinstance(error, PenstockError)
            raise error
        real(partition_id, index, part, parts, data)

    logbook.write_image = write_image  # type: ignore[method-assign]  # of this object alone
    may_begin: set[bool] = set()
    for _ in range(6000):
        step(cluster)
        if refused and written(c) < 2:
            may_begin.add(c.node.replication.may_begin_checkpoint())
        if "c" in cluster.entry().in_sync:
            break
    assert refused == [failing] * 3
    if refusal is disk_full:
        assert True in may_begin
    only_c_returns(cluster)
    assert messages_of(c) == EARLY + LATER


@pytest.mark.parametrize("parts_before", [1, 3])
def test_a_state_that_is_given_up_takes_no_room_in_its_stream(parts_before: int) -> None:
    """What was sent counts as taken, or the connection would have less and less room for what comes later."""
    cluster = behind()
    c = cluster.machines["c"]
    for _ in range(3000):
        step(cluster)
        if written(c) == parts_before:
            break
    assert written(c) == parts_before
    cluster.elect(1, "b")
    for _ in range(3000):
        step(cluster)
    assert "c" in cluster.entry().in_sync
    a = cluster.machines["a"].node
    assert a is not None
    stream = a.replication.state.streams["c"]
    assert stream.confirmed_bytes == stream.sent_bytes > 0


def test_records_that_follow_a_state_wait_for_it_and_for_nothing_else() -> None:
    """Another partition that the same node leads goes on meanwhile."""
    cluster = behind()
    cluster.create("other", 2, ("a", "b", "c"))
    cluster.settle(500)
    cluster.parted.update({frozenset("ac"), frozenset("bc")})
    for other in "ab":
        cluster.cut(other, "c")
    cluster.settle(3000)
    for number in range(LATER):
        cluster.ask(messages.Send(1, 9, number + 1), encode_parts([b"%d " % number + b"y" * 9000]))
    cluster.settle(200)
    cluster.parted.clear()
    c = cluster.machines["c"]
    assert c.node is not None
    checkpointer = c.node._parts.checkpointer
    c.node._parts.checkpointer = AlwaysUnderWay()
    for _ in range(2000):
        step(cluster)
        if c.node.replication.follower.partitions[1].installing:
            break
    assert c.node.replication.follower.partitions[1].installing
    cluster.ask(messages.Send(1, 3, 1), encode_parts([b"after the state"]))
    cluster.ask(messages.Send(2, 3, 1), encode_parts([b"of another queue"]), partition=2)
    for _ in range(300):
        step(cluster)
    assert c.node._parts.catalogue.partitions[2].table.messages == 1
    assert messages_of(c) != EARLY + 2 * LATER + 1
    c.node._parts.checkpointer = checkpointer
    cluster.settle(4000)
    assert "c" in cluster.entry().in_sync
    assert messages_of(c) == EARLY + 2 * LATER + 1
    assert_same(cluster)
    streams = cluster.machines["a"].node.replication.state.streams  # type: ignore[union-attr]  # it leads
    assert streams["c"]._under_way == 0


def test_a_state_whose_primary_is_gone_is_given_up() -> None:
    """What the replica had is as good as before; it could still lead."""
    cluster = behind()
    c = cluster.machines["c"]
    for _ in range(3000):
        step(cluster)
        if written(c) == 2:
            break
    assert c.node is not None
    assert not c.node.replication.positions([1])[1].fit
    for other in "ab":
        cluster.parted.add(frozenset((other, "c")))
        cluster.cut(other, "c")
    for _ in range(20):
        cluster.now_ms += 5
        c.turn()
    assert c.node.replication.positions([1])[1].fit
    assert c.node.replication.may_begin_checkpoint()
    assert messages_of(c) == EARLY
    cluster.parted.clear()
    cluster.settle(6000)
    assert messages_of(c) == EARLY + LATER


def test_a_state_that_cannot_be_read_stops_this_replica_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cluster = behind()
    c = cluster.machines["c"]
    assert c.node is not None
    installer = c.node.replication.follower.installer
    begin = installer.begin

    def begin_with_garbage(installation: Installation) -> None:
        installation.parts[-1] = installation.parts[-1][:-3]
        begin(installation)

    installer.begin = begin_with_garbage  # type: ignore[method-assign]  # of this object alone
    with caplog.at_level(logging.ERROR, "penstock.backend"):
        for _ in range(600):
            step(cluster)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("stopped following partition 1 of 'q': the received state cannot be read (")
    assert messages_of(c) == EARLY
    assert "c" not in cluster.entry().in_sync
    assert isinstance(cluster.ask(messages.Send(1, 3, 1), encode_parts([b"x"])), messages.SendResult)
    c.crash(power=False)
    c.start()
    cluster.settle(6000)
    assert "c" in cluster.entry().in_sync
    assert_same(cluster)


def test_a_replica_that_is_elected_while_a_state_comes_in_leads_with_what_it_has() -> None:
    """It is in sync: until the state is here its own one counts. The manager does not ask where everything was acknowledged by all."""
    cluster = Cluster(seed=7)
    cluster.create()
    cluster.settle(800)
    cluster.ask(messages.Send(1), encode_parts([b"early"]))
    cluster.settle(200)
    machine, entry = cluster.machines["c"], cluster.entry()
    assert machine.node is not None
    assert "c" in entry.in_sync
    follower, stream = machine.node.replication.follower, machine.node.replication.state.streams["a"]
    follower_state = follower.partitions[1]
    follower.take_image(
        follower_state, stream, Image(1, entry.epoch, 99, 0, 2), memoryview(b"one of two parts")
    )
    assert follower_state.is_restoring
    cluster.put(
        msgspec.structs.replace(
            entry, epoch=entry.epoch + 1, primary="c", primary_started_ms=machine.started_ms
        )
    )
    cluster.settle(1_000)
    assert cluster.leader.name == "c"
    assert messages_of(machine) == 1
    cluster.ask(messages.Send(1), encode_parts([b"later"]))
    assert_same(cluster)


def test_what_waits_for_a_flush_does_not_wake_the_node_all_the_time() -> None:
    """Nothing goes on while the disk is at it, so a node that looks again at once would only burn a core."""
    cluster = behind()
    c = cluster.machines["c"]
    for _ in range(3000):
        step(cluster)
        if written(c) and c.flush is None:
            break
    assert c.node is not None
    c.flush = c.node.take_flush()
    assert c.flush is not None
    looks = 0
    for now_ms in range(cluster.now_ms, cluster.now_ms + 200):
        wakeup_ms = c.node.next_wakeup_ms()
        if wakeup_ms is not None and wakeup_ms <= now_ms:
            c.node.tick(now_ms)
            looks += 1
    assert 0 < looks <= 40
    cluster.settle(6000)
    assert messages_of(c) == EARLY + LATER

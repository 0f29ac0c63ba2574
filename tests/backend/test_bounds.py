"""What keeps the memory of a node bounded, and what must never stop it."""

from __future__ import annotations

import random

import pytest

from penstock.backend.logs.waiting import LogReader, ReaderRoom
from penstock.backend.receive.waiting import Waiter, WaitingRoom
from penstock.backend.upkeep.upkeep_times import UpkeepTimes
from penstock.model import limits
from penstock.model.errors import PenstockError
from penstock.queue.decisions import upkeep
from penstock.storage.errors import DamagedEntryError
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import NodeHarness


def test_a_queue_that_changes_often_has_one_time_to_be_looked_at() -> None:
    times = UpkeepTimes()
    for turn in range(10_000):
        times.ask(1, 1_000_000)
        times.ask(2, 1_000_000 - turn)
    assert len(times) < 100
    assert times.next_ms() == 1_000_000 - 9_999
    assert times.take_due(1_000_000) == [2, 1]
    assert times.next_ms() is None


def test_the_earliest_time_of_every_queue_is_found() -> None:
    dice = random.Random(4711)
    times, expected = UpkeepTimes(), dict[int, int]()
    for _ in range(5_000):
        partition_id = dice.randrange(20)
        match dice.randrange(10):
            case 0:
                times.forget(partition_id)
                expected.pop(partition_id, None)
            case 1:
                now_ms = dice.randrange(1_000)
                due = {queue for queue, time_ms in expected.items() if time_ms <= now_ms}
                assert set(times.take_due(now_ms)) == due
                expected = {queue: time_ms for queue, time_ms in expected.items() if queue not in due}
            case _:
                time_ms = dice.randrange(1_000)
                times.ask(partition_id, time_ms)
                expected[partition_id] = min(time_ms, expected.get(partition_id, time_ms))
        assert times.next_ms() == min(expected.values(), default=None)


def test_receivers_that_left_an_idle_queue_make_room_for_others() -> None:
    room = WaitingRoom()
    room.enter(Waiter(1, 1, 7, 10, 10, 1, None))  # a subscription, first in line for ever
    for number in range(3 * limits.WAITING_RECEIVERS_PER_QUEUE):
        room.enter(Waiter(2, number, 7, 1, 1, 1, None, deadline_ms=number))
        assert len(room.timed_out(number)) == 1
    assert room.count(7) == 1
    first = room.next_in_line(7)
    assert first is not None
    assert first.connection == 1
    assert room.next_in_line(7) is None
    assert not room.has_line(7)


def test_long_polls_that_were_served_are_forgotten_before_their_deadline() -> None:
    room = WaitingRoom()
    for number in range(1_000):
        room.enter(Waiter(2, number, 7, 1, 1, 1, None, deadline_ms=limits.RECEIVE_WAIT_MS))
        waiter = room.next_in_line(7)
        assert waiter is not None
        room.leave(waiter)
    assert len(room._deadlines) < 200
    assert room.next_ms() is None


def test_subscriptions_without_credit_are_bounded_too() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.node._parts.waiting._by_connection[1] = {
        -number: Waiter(1, -number, orders, 0, 1, 1, None) for number in range(limits.WAITING_PER_CONNECTION)
    }
    assert node.fail(messages.Subscribe(orders, credit=0)).code == "too-many-waiting"


@pytest.mark.parametrize(("of_front_ends", "connection"), [(True, 1), (False, -1)])
def test_clients_of_one_front_end_do_not_use_up_the_places_of_others(
    monkeypatch: pytest.MonkeyPatch, of_front_ends: bool, connection: int
) -> None:
    monkeypatch.setattr(limits, "WAITING_PER_CONNECTION", 2)
    monkeypatch.setattr(limits, "WAITING_RECEIVERS_PER_QUEUE", 3)
    monkeypatch.setattr(limits, "LOG_READERS_WAITING_PER_QUEUE", 3)
    room, readers = WaitingRoom(of_front_ends=of_front_ends), ReaderRoom(of_front_ends=of_front_ends)
    for number in range(3):
        room.enter(Waiter(connection, number, 7, 1, 1, 1, None))
        readers.enter(LogReader(connection, number, messages.ReadLog(7, 1), 1_000))
    room.enter(Waiter(connection, 3, 8, 1, 1, 1, None))
    readers.enter(LogReader(connection, 3, messages.ReadLog(8, 1), 1_000))
    with pytest.raises(PenstockError):
        room.enter(Waiter(connection, 4, 7, 1, 1, 1, None))
    with pytest.raises(PenstockError):
        readers.enter(LogReader(connection, 4, messages.ReadLog(7, 1), 1_000))


def test_garbage_in_a_good_frame_is_an_answer_not_the_end() -> None:
    node = NodeHarness()
    for head in (b"\x91" * 100_000 + b"\xc0", b"\x81\x01" * 100_000, b"\xdd\xff\xff\xff\xff", b"", b"\xc1"):
        node.node.handle(1, Frame(9, memoryview(head), memoryview(b"")), node.now_ms)
        node.turn()
        (arrived,) = node.answers(9)
        assert isinstance(arrived.answer, messages.Failed)
        assert arrived.answer.code == "unknown-request"


def test_a_receipt_of_a_queue_that_is_gone_is_checked_too() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    node.send(orders, [b"one"])
    token = node.receive(orders, 1).token
    node.call(messages.DeleteQueue("orders"))
    assert node.call(messages.Delete([messages.Receipt(token, [(1, 1)])])) == messages.Settled(
        [messages.ReceiptOutcome(0, 1, [])]
    )
    too_many = messages.Receipt(token, [(1, 2**64 - 1), (1, 2**64 - 1)])
    assert node.fail(messages.Delete([too_many])).code == "bad-request"


def test_a_receiver_that_left_a_queue_found_damaged_does_not_stop_the_node() -> None:
    node = NodeHarness()
    orders = node.create("orders")
    other = node.connect()
    node.send(orders, [b"one"])
    node.node.handle(
        other,
        Frame(9, memoryview(messages.encode_message(messages.Receive(orders, 1))), memoryview(b"")),
        node.now_ms,
    )
    node.node.disconnected(other, node.now_ms)
    node.node._parts.fence(orders, _damage())
    node.turn()
    assert node.fail(messages.Receive(orders, 1)).code == "queue-damaged"


def _damage() -> DamagedEntryError:
    return DamagedEntryError("segment", 0, "planted")


def test_what_ends_by_time_waits_while_too_much_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn ends a part of what is due, also while one flush takes very long."""
    monkeypatch.setattr(upkeep, "_TIMERS_AT_ONCE", 1)
    harness = NodeHarness()
    queue_id = harness.create("orders")
    count = 500
    harness.send(queue_id, [b"x"] * count, ttls_ms=[1_000 * (place % 2) for place in range(count)])
    node, store = harness.node, harness.node._store
    node._parts.max_unflushed_bytes = 4_096
    harness.now_ms += 1_000
    for _ in range(2 * count):  # turns in which the flush has not ended
        wakeup_ms = node.next_wakeup_ms()
        assert wakeup_ms is not None
        harness.now_ms = max(harness.now_ms, wakeup_ms) + 1
        node.tick(harness.now_ms)
    assert 4_096 <= store.unflushed_bytes <= 4_096 + 200
    assert node.catalogue.partitions[queue_id].table.messages > count // 2
    harness.turn()
    harness.advance(5_000)
    assert node.catalogue.partitions[queue_id].table.messages == count // 2

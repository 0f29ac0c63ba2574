"""Dead letters: how messages get there, with which reason, and how they come back. Never in neither place."""

from __future__ import annotations

import pytest

from penstock.model.batch import encode, encode_parts
from penstock.model.origin import Origin
from penstock.model.records import Sent
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import move as moving
from penstock.simulation.disk import PowerLoss
from penstock.storage.errors import DamagedEntryError
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import START_MS, NodeHarness, Received
from tests.queue.rig import Rig


def exhausted(node: NodeHarness) -> tuple[int, int]:
    """Two messages that were received once too often."""
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
    dead = node.show("dead").queue_id
    node.send(orders, [b"a", b"b"])
    node.receive(orders)
    node.advance(1_100)
    return orders, dead


def test_received_too_often() -> None:
    node = NodeHarness()
    orders, dead = exhausted(node)
    assert node.receive(orders).bodies == []
    received = node.receive(dead)
    assert received.bodies == [b"a", b"b"]
    origin = received.heads[0].origin
    assert origin is not None
    assert (origin.reason, origin.source, origin.receive_counts) == ("max-receives", "orders", [1, 1])
    assert node.show("orders").statistics.dead_lettered_total == 2


def test_what_waits_for_a_damaged_queue_holds_up_nothing_that_goes_elsewhere() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="first", max_receives=1, visibility_timeout_ms=1_000)
    damaged = DamagedEntryError("segment", 0, "a test says so")
    node.node._parts.fence(node.show("first").queue_id, damaged)
    for target, body in (("first", b"a"), ("second", b"b")):
        node.call(messages.AlterQueue("orders", {"dead_letter_queue": target}))
        node.send(orders, [body])
        assert node.receive(orders).bodies == [body]
        node.advance(1_100)
    assert node.receive(node.show("second").queue_id).bodies == [b"b"]
    assert node.show("orders").statistics.moving == 1


def test_a_release_counts_as_well_as_an_expiry() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_receives=2)
    node.send(orders, [b"a"])
    for _ in range(2):
        node.call(messages.Release([node.receive(orders).receipt()]))
    assert node.receive(orders).bodies == []
    assert node.receive(node.show("dead").queue_id).bodies == [b"a"]


def test_expired_goes_to_the_dead_letter_queue_and_does_not_expire_there_again() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", default_ttl_ms=1_000)
    node.send(orders, [b"a"])
    node.advance(1_100)
    node.advance(100_000)
    received = node.receive(node.show("dead").queue_id)
    assert received.bodies == [b"a"]
    assert received.heads[0].origin is not None
    assert received.heads[0].origin.reason == "expired"


@pytest.mark.parametrize("overflow", ["reject", "drop-oldest", "dead-letter"])
def test_overflow(overflow: str) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_messages=2, overflow=overflow)
    dead = node.show("dead").queue_id
    node.send(orders, [b"a", b"b"])
    if overflow == "reject":
        assert node.fail(messages.Send(orders), encode_parts([b"c"])).code == "queue-full"
        assert node.drain(orders) == [b"a", b"b"]
        return
    node.send(orders, [b"c"])
    assert node.drain(orders) == [b"b", b"c"]
    assert node.drain(dead) == ([b"a"] if overflow == "dead-letter" else [])


def test_overflow_without_its_dead_letter_queue_refuses() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_messages=2, overflow="dead-letter")
    node.send(orders, [b"a", b"b"])
    node.call(messages.DeleteQueue("dead"))
    assert node.fail(messages.Send(orders), encode_parts([b"c"])).code == "queue-full"
    assert node.drain(orders) == [b"a", b"b"]


def test_redrive_takes_each_back_to_where_it_died() -> None:
    node = NodeHarness()
    orders, dead = exhausted(node)
    assert node.call(messages.Redrive(dead)) == messages.Redriven(2, None)
    received = node.receive(orders)
    assert received.bodies == [b"a", b"b"]
    assert received.counts() == [1, 1]
    assert node.receive(dead).bodies == []


def test_redrive_of_a_selection_to_another_queue() -> None:
    node = NodeHarness()
    _, dead = exhausted(node)
    other = node.create("other")
    chosen = messages.Redrive(dead, target="other", filter=messages.PeekFilter(body_contains=b"b"))
    assert node.call(chosen) == messages.Redriven(1, None)
    assert node.drain(other) == [b"b"]
    assert node.drain(dead) == [b"a"]
    assert node.fail(messages.Redrive(dead, target="nowhere")).code == "queue-not-found"


def test_a_dead_letter_whose_queue_is_gone_stays_and_says_so() -> None:
    node = NodeHarness()
    _, dead = exhausted(node)
    node.call(messages.DeleteQueue("orders"))
    node.call(messages.Redrive(dead))
    received = node.receive(dead)
    assert sorted(received.bodies) == [b"a", b"b"]
    assert {head.origin.reason for head in received.heads if head.origin} == {"queue-deleted"}
    node.call(messages.Release([received.receipt(sorted(received.runs))]))
    assert node.call(messages.Redrive(dead)) == messages.Redriven(0, None)


def test_without_its_dead_letter_queue_a_message_stays_deliverable() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
    node.call(messages.DeleteQueue("dead"))
    node.send(orders, [b"a"])
    for _ in range(3):
        assert node.receive(orders).bodies == [b"a"]
        node.advance(1_100)


def test_a_crash_at_any_point_of_a_move_leaves_each_message_in_one_place() -> None:
    for point in range(1, 40):
        node = NodeHarness()
        orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
        dead = node.show("dead").queue_id
        node.send(orders, [b"%d" % n for n in range(5)])
        node.receive(orders)
        node.disk.power_off_after = node.disk.operations + point
        crashed = False
        try:
            node.advance(1_100)
        except PowerLoss:
            crashed = True
        node.now_ms += 10
        node.crash()
        node.advance(2_000)
        found = node.drain(orders) + node.drain(dead)
        assert sorted(found) == [b"%d" % n for n in range(5)]
        if not crashed:
            return
    raise AssertionError("the power never held until the end")


def test_without_its_dead_letter_queue_a_release_keeps_its_delay() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1)
    node.call(messages.DeleteQueue("dead"))
    node.send(orders, [b"a"])
    node.call(messages.Release([node.receive(orders).receipt()], delay_ms=1_000))
    node.advance(990)
    assert node.receive(orders).bodies == []
    node.advance(30)
    assert node.receive(orders).bodies == [b"a"]


def _roots(received: Received) -> list[tuple[int, int] | None]:
    """The first home of every message received; None where it is where it is."""
    found: list[tuple[int, int] | None] = []
    for head in received.heads:
        homes = head.origin.first_homes() if head.origin is not None else [None] * head.count
        assert len(homes) == head.count
        found += homes
    return found


def test_a_message_is_known_by_its_first_home_however_often_it_moves() -> None:
    node = NodeHarness()
    orders = node.create("orders", max_receives=1, dead_letter_queue="dead", visibility_timeout_ms=1_000)
    dead = node.show("dead").queue_id
    node.send(orders, [b"one", b"two", b"three"])
    assert _roots(node.receive(orders)) == [None] * 3
    homes = [(orders, 1), (orders, 2), (orders, 3)]
    for turn in range(3):
        node.advance(2_000)
        if turn == 1:
            node.crash()
        there = node.receive(dead, visibility_timeout_ms=500)
        assert _roots(there) == homes
        assert there.heads[0].origin is not None
        assert (there.heads[0].origin.roots is None) == (turn == 0)
        node.advance(600)
        node.call(messages.Redrive(dead))
        node.turn()
        back = node.receive(orders)
        assert _roots(back) == homes
        assert back.bodies == [b"one", b"two", b"three"]


def test_the_first_homes_of_a_slice_are_those_of_the_slice() -> None:
    node = NodeHarness()
    orders = node.create("orders", max_receives=1, dead_letter_queue="dead", visibility_timeout_ms=1_000)
    dead = node.show("dead").queue_id
    node.send(orders, [b"one", b"two", b"three", b"four"])
    node.receive(orders)
    node.advance(2_000)
    node.call(messages.Redrive(dead))
    node.turn()
    assert _roots(node.receive(orders, 1)) == [(orders, 1)]
    assert _roots(node.receive(orders, 2)) == [(orders, 2), (orders, 3)]
    answer = node.call(messages.Peek(orders, start=8))
    assert isinstance(answer, messages.Peeked)
    (head,) = answer.batches
    assert head.origin is not None
    assert (head.count, head.origin.roots) == (1, [(orders, 4)])
    assert head.origin.runs == [(4, 1)]
    assert len(head.origin.receive_counts) == 1


def test_a_move_that_is_repeated_after_half_of_it_arrived_keeps_the_first_homes_in_step() -> None:
    rig = Rig(QueueSettings(), partition_id=9)
    origin = Origin(2, "dead", "redrive", [(5, 1)], 0, [1], 0, [(1, 50)])
    rig.write(moving.arrive(rig.partition, encode([b"a"]), origin, START_MS))
    again = Origin(2, "dead", "redrive", [(5, 2)], 0, [1, 2], 0, [(1, 50), (1, 60)])
    (written,) = moving.arrive(rig.partition, encode([b"a", b"b"]), again, START_MS)
    record = written.record
    assert isinstance(record, Sent)
    assert record.origin == Origin(2, "dead", "redrive", [(6, 1)], 0, [2], 0, [(1, 60)])


def test_a_redrive_does_not_go_to_a_queue_that_was_made_after_it() -> None:
    node = NodeHarness()
    _, dead = exhausted(node)
    node.create("other")
    together = (messages.Redrive(dead, target="other"), messages.DeleteQueue("other"))
    for request in together:  # in one turn: nothing has set out yet
        node.node.handle(
            1, Frame(99, memoryview(messages.encode_message(request)), memoryview(b"")), node.now_ms
        )
    again = node.create("other")
    assert node.drain(again) == []
    received = node.receive(dead)
    assert received.bodies == [b"a", b"b"]
    origin = received.heads[0].origin
    assert origin is not None
    assert (origin.source, origin.reason) == ("other", "queue-deleted")

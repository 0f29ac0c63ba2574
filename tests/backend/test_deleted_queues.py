"""What becomes of the messages of a deleted queue: those that are on their way arrive, the others go with it."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from penstock.model.batch import encode_parts
from penstock.model.settings import QueueSettings
from penstock.storage.errors import DamagedEntryError, JournalBusyError
from penstock.storage.journal import Journal
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import NodeHarness
from tests.backend.lifecycle_log import rows_of


def hand_in(node: NodeHarness, *requests: messages.Request, body: bytes = b"") -> None:
    """Nothing is done about them yet. `body`: of the first."""
    for number, request in enumerate(requests):
        frame = Frame(
            900 + number, memoryview(messages.encode_message(request)), memoryview(b"" if number else body)
        )
        node.node.handle(1, frame, node.now_ms)


def in_one_turn(node: NodeHarness, *requests: messages.Request, body: bytes = b"") -> None:
    """Nothing moves between them."""
    hand_in(node, *requests, body=body)
    node.turn()


def exhausted(node: NodeHarness, *bodies: bytes) -> int:
    """Dead letters of the queue `orders`; returns the id of the queue that they are in."""
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
    node.send(orders, bodies)
    node.receive(orders)
    node.advance(1_100)
    return node.show("dead").queue_id


def holds(node: NodeHarness) -> set[str]:
    """The queues that the node has anything of, deleted ones too."""
    return {partition.name for partition in node.node._parts.catalogue.partitions.values()}


@pytest.mark.parametrize("crash", [False, True])
def test_redriven_messages_arrive_though_their_queue_is_deleted_at_once(crash: bool) -> None:
    node = NodeHarness()
    dead = exhausted(node, b"a", b"b")
    if crash:
        hand_in(node, messages.Redrive(dead), messages.DeleteQueue("dead"))
        flush = node.node._store.take_flush()  # before anything has set out
        assert flush is not None
        flush.run()
        node.crash()
        node.turn()
    else:
        in_one_turn(node, messages.Redrive(dead), messages.DeleteQueue("dead"))
    assert node.drain(node.show("orders").queue_id) == [b"a", b"b"]
    assert "dead" not in holds(node)


class PatientNode(NodeHarness):
    """Its turns end though the node wants another one: a move that finds no room is tried again in each."""

    def turn(self) -> None:
        for _ in range(20):
            flush = self.node.take_flush()
            if flush is not None:
                flush.run()
                self.node.flushed(flush, self.now_ms)
            for job in self.node.take_jobs():
                job.run()
                self.node.job_done(job, self.now_ms)
            self._collect()
        self.node.next_wakeup_ms()


class NoRoomForLargeEntries:
    """The journal has room for small entries only, as while its next file is not ready or the disk is nearly full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_on = True
        put = Journal._put

        def put_if_small(journal: Journal, *arguments: Any, **options: Any) -> int:
            if self.is_on and sum(map(len, arguments[4])) > 50_000:
                raise JournalBusyError("no room for a large entry: the test says so")
            return put(journal, *arguments, **options)

        monkeypatch.setattr(Journal, "_put", put_if_small)


def half_moved(monkeypatch: pytest.MonkeyPatch) -> tuple[PatientNode, int, int, NoRoomForLargeEntries]:
    """One step of a move of dead letters has two pieces: the first has arrived and is deleted, the second finds no room.

    With the ids of the queue that they leave and of the one that they move to.
    """
    node = PatientNode()
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
    node.send(orders, [b"small"])
    node.send(orders, [b"L" * 100_000])
    journal = NoRoomForLargeEntries(monkeypatch)
    assert len(node.receive(orders).bodies) == 2
    node.advance(1_500)
    dead = node.show("dead").queue_id
    assert node.drain(dead) == [b"small"]
    return node, orders, dead, journal


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("made_again", [False, True])
def test_dead_letters_that_were_deleted_stay_deleted_when_their_queue_is_deleted_in_the_middle_of_the_move(
    monkeypatch: pytest.MonkeyPatch, made_again: bool, crash: bool
) -> None:
    node, _, _, journal = half_moved(monkeypatch)
    node.call(messages.DeleteQueue("dead"))
    if made_again:
        node.create("dead")
    if crash:
        node.crash()
    journal.is_on = False
    node.advance(2_000)
    found = [
        body for name in ("orders", "dead") if name == "orders" or made_again for body in drained(node, name)
    ]
    assert [body[:1] for body in found] == [b"L"]


@pytest.mark.parametrize("repaired", [False, True])
def test_a_deleted_queue_stays_until_a_damaged_source_knows_what_has_arrived(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, repaired: bool
) -> None:
    """`repaired`: what was damaged can be read after a restart; else the damaged queue is deleted too."""
    node, orders, _, journal = half_moved(monkeypatch)
    node.node._parts.fence(orders, DamagedEntryError("a file", 0, "the test says so"))
    node.call(messages.DeleteQueue("dead"))
    assert "deletion of queue 'dead' waits: it has messages of a queue that is damaged" in caplog.text
    assert holds(node) == {"orders", "dead"}
    journal.is_on = False
    if repaired:
        node.crash()
        node.advance(2_000)
        assert [body[:1] for body in drained(node, "orders")] == [b"L"]
        assert holds(node) == {"orders"}
    else:
        node.call(messages.DeleteQueue("orders"))
        node.advance(2_000)
        assert holds(node) == set()


@pytest.mark.parametrize("target", ["kept", "deleted", "damaged"])
def test_what_arrived_from_a_damaged_source_is_remembered_over_restarts(
    monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """The sector of the source cannot be read at one start, and can at the next one. `target`: what happens to it between them."""
    node, orders, dead, journal = half_moved(monkeypatch)
    _flip_a_bit(node)
    node.crash()
    node.advance(500)
    assert orders in node.node._parts.catalogue.damage
    if target == "damaged":
        node.node._parts.fence(dead, DamagedEntryError("a file", 0, "the test says so"))
    if target != "kept":
        node.call(messages.DeleteQueue("dead"))
        node.advance(2_000)
        assert holds(node) == {"orders", "dead"}
    _flip_a_bit(node)
    journal.is_on = False
    node.crash()
    node.advance(3_000)
    found = drained(node, "orders") + (drained(node, "dead") if target == "kept" else [])
    assert [body[:1] for body in found] == [b"L"]


def _flip_a_bit(node: NodeHarness) -> None:
    """In the large message of the journal; a second time it is as it was."""
    for name in node.disk.files():
        at = node.disk.contents(name).find(b"L" * 400)
        if name.startswith("journal") and at >= 0:
            node.disk.flip_bit(name, at + 500)
            return
    raise LookupError("the message is in no file of the journal")


def drained(node: NodeHarness, name: str) -> list[bytes]:
    return node.drain(node.show(name).queue_id)


def test_the_name_of_a_deleted_queue_is_free_while_messages_of_it_are_on_their_way() -> None:
    node = NodeHarness()
    dead = exhausted(node, b"a")
    in_one_turn(
        node,
        messages.Redrive(dead),
        messages.DeleteQueue("dead"),
        messages.CreateQueue("dead", QueueSettings()),
    )
    assert node.show("dead").queue_id > dead
    assert node.drain(node.show("dead").queue_id) == []
    assert node.drain(node.show("orders").queue_id) == [b"a"]


def test_late_messages_of_a_deleted_queue_arrive_in_a_queue_that_is_made_for_them() -> None:
    node = NodeHarness()
    orders = node.create("orders", ordering="causal", window_ms=0)
    now_us = node.now_ms * 1_000
    node.send(orders, [b"a"], process=7, counter=1, time_us=now_us)
    node.advance(100)
    late = messages.Send(orders, process=7, counter=0, time_us=now_us - 50_000)
    in_one_turn(node, late, messages.DeleteQueue("orders"), body=bytes(encode_parts([b"b"])))
    assert node.drain(node.show("orders.late").queue_id) == [b"b"]
    assert "orders" not in holds(node)


def test_what_has_nowhere_to_go_goes_with_its_queue_and_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", lifecycle=True)
    node.send(orders, [b"later"], delays_ms=[60_000])
    node.call(messages.DeleteQueue("dead"))
    with caplog.at_level(logging.WARNING):
        node.call(messages.DeleteQueue("orders"))
    assert "deleted 1 messages with queue 'orders'" in caplog.text
    assert "'dead'" in caplog.text
    assert "orders" not in holds(node)
    changes = [row["change"] for row in rows_of(node, orders)]
    assert changes[-2:] == ["MOVE_STARTED", "QUEUE_DELETED"], (
        "it did not arrive anywhere, so nothing says that it did"
    )


def test_a_deleted_queue_stays_while_its_messages_wait_for_a_damaged_one() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead")
    node.send(orders, [b"later"], delays_ms=[60_000])
    damage = DamagedEntryError("segment", 0, "a test says so")
    node.node._parts.fence(node.show("dead").queue_id, damage)
    node.call(messages.DeleteQueue("orders"))
    node.advance(5_000)
    assert "orders" in holds(node)
    assert node.fail(messages.DescribeQueue("orders")).code == "queue-not-found"
    node.call(messages.DeleteQueue("dead"))  # it is not repaired: there is nothing to wait for any more
    node.advance(1_000)
    assert "orders" not in holds(node)


def test_a_damaged_queue_that_is_deleted_is_removed() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead")
    node.send(orders, [b"later"], delays_ms=[60_000])
    node.node._parts.fence(orders, DamagedEntryError("segment", 0, "a test says so"))
    node.call(messages.DeleteQueue("orders"))
    assert "orders" not in holds(node)


def test_a_deleted_queue_that_is_found_to_be_damaged_stays_for_whoever_repairs_it() -> None:
    node = NodeHarness()
    dead = exhausted(node, b"a", b"b")
    parts = node.node._parts
    hand_in(node, messages.Redrive(dead), messages.DeleteQueue("dead"))
    parts.fence(dead, DamagedEntryError("segment", 0, "a test says so"))
    node.turn()
    assert "dead" in holds(node)
    assert parts.catalogue.damages() != []


def test_a_deleted_queue_that_waits_does_not_expire_as_well() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", idle_expiry_ms=10_000)
    node.send(orders, [b"later"], delays_ms=[60_000])
    node.node._parts.fence(node.show("dead").queue_id, DamagedEntryError("segment", 0, "a test says so"))
    node.call(messages.DeleteQueue("orders"))
    node.advance(30_000)
    assert "orders" in holds(node)

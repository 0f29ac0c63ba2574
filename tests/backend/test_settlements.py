"""Requests with more receipts than a turn looks at: in parts, in the order of a client's requests, and as if at once."""

from __future__ import annotations

import pytest

from penstock.backend.receive import settlements
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import NodeHarness, Received


@pytest.fixture(autouse=True)
def few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settlements, "RECEIPTS_AT_ONCE", 3)


def received(node: NodeHarness, messages_wanted: int = 10) -> tuple[int, list[Received]]:
    """So many messages, each with a lease of its own."""
    queue_id = node.create("orders")
    node.send(queue_id, [b"%d" % number for number in range(messages_wanted)])
    return queue_id, [node.receive(queue_id, 1) for _ in range(messages_wanted)]


def hand_over(node: NodeHarness, request: messages.Request, request_id: int, connection: int = 1) -> None:
    """A request arrives; the turn goes on."""
    head = memoryview(messages.encode_message(request))
    node.node.handle(connection, Frame(request_id, head, memoryview(b"")), node.now_ms)


def left(node: NodeHarness, queue_id: int = 1) -> int:
    return node.node.catalogue.partitions[queue_id].table.messages


def turn_once(node: NodeHarness) -> None:
    """One turn with its flush, and no more."""
    flush = node.node.take_flush()
    assert flush is not None
    flush.run()
    node.node.flushed(flush, node.now_ms)


def test_each_turn_does_a_part_and_the_last_one_answers() -> None:
    node = NodeHarness()
    _, taken = received(node)
    hand_over(node, messages.Delete([one.receipt() for one in taken]), 99)
    for done in (3, 6, 9, 10):
        assert node.node.has_more()
        turn_once(node)
        assert left(node) == 10 - done
    node.turn()
    answer = node.answers(99)[0].answer
    assert isinstance(answer, messages.Settled)
    assert [(outcome.done, outcome.gone) for outcome in answer.outcomes] == [(1, 0)] * 10
    assert not node.node.has_more()


def test_another_client_passes_and_the_same_one_waits() -> None:
    node = NodeHarness()
    queue_id, taken = received(node)
    other = node.connect()
    hand_over(node, messages.Delete([one.receipt() for one in taken]), 99)
    hand_over(node, messages.Receive(queue_id, 1), 100, other)
    assert left(node) == 10
    hand_over(node, messages.Receive(queue_id, 1), 101)
    assert left(node) == 0
    node.turn()
    assert isinstance(node.answers(99)[0].answer, messages.Settled)
    for request_id, connection in ((100, other), (101, 1)):
        assert isinstance(node.answers(request_id, connection)[0].answer, messages.Delivery)


def test_what_a_client_asked_for_last_is_done_when_it_leaves() -> None:
    node = NodeHarness()
    queue_id, taken = received(node)
    hand_over(node, messages.Delete([one.receipt() for one in taken]), 99)
    node.node.disconnected(1, node.now_ms)
    assert left(node, queue_id) == 0


def test_one_bad_receipt_refuses_all() -> None:
    node = NodeHarness()
    _, taken = received(node)
    receipts = [one.receipt() for one in taken]
    node.fail(messages.Delete([*receipts, messages.Receipt(b"x" * 32, [(1, 1)])]))
    assert left(node) == 10


def test_a_queue_that_is_deleted_in_between_has_nothing_to_settle() -> None:
    node = NodeHarness()
    _, taken = received(node)
    other = node.connect()
    hand_over(node, messages.Delete([one.receipt() for one in taken]), 99)
    turn_once(node)
    hand_over(node, messages.DeleteQueue("orders"), 100, other)
    node.turn()
    answer = node.answers(99)[0].answer
    assert isinstance(answer, messages.Settled)
    assert [outcome.done for outcome in answer.outcomes] == [1] * 3 + [0] * 7
    assert [outcome.gone for outcome in answer.outcomes] == [0] * 3 + [1] * 7

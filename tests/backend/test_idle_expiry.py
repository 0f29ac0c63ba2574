"""Queues with an idle expiry: gone when nobody used them for so long, never while somebody does."""

from __future__ import annotations

import logging

import pytest

from penstock.wire import messages
from tests.backend.harness import NodeHarness

EXPIRY_MS = 10_000


def exists(node: NodeHarness, name: str) -> bool:
    answer = node.ask(messages.DescribeQueue(name)).answer
    return isinstance(answer, messages.QueueDescription)


def test_a_queue_that_nobody_uses_goes_when_its_time_is_up_and_says_so(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = NodeHarness()
    queue = node.create("reply", idle_expiry_ms=EXPIRY_MS)
    node.create("orders")
    node.send(queue, [b"left behind"])
    node.advance(EXPIRY_MS - 1)
    assert exists(node, "reply"), "looking at it is no use, but its time is not up either"
    with caplog.at_level(logging.INFO):
        node.advance(1)
    assert not exists(node, "reply")
    assert exists(node, "orders")
    assert "deleted queue 'reply' with 1 messages: it was unused for its idle expiry of 10 s" in caplog.text
    node.crash()
    assert not exists(node, "reply"), "the deletion is a record like any other"


@pytest.mark.parametrize("use", ["send", "receive", "group", "settle", "refused"])
def test_every_use_counts_anew(use: str) -> None:
    node = NodeHarness()
    queue, other = node.create("reply", idle_expiry_ms=EXPIRY_MS), node.create("other")
    node.send(queue, [b"one"])
    received = node.receive(queue)
    node.advance(EXPIRY_MS - 1)
    match use:
        case "send":
            node.send(queue, [b"two"])
        case "receive":
            node.receive(queue)
        case "group":
            node.call(messages.ReceiveAny([messages.WeightedQueue(n, 1) for n in (queue, other)]))
        case "settle":
            node.call(messages.Extend([received.receipt()], 1_000))
        case _:
            node.fail(messages.Receive(queue, 0))
    node.advance(EXPIRY_MS - 1)
    assert exists(node, "reply")
    node.advance(1)
    assert not exists(node, "reply")


def test_looking_and_purging_do_not_count() -> None:
    node = NodeHarness()
    queue = node.create("reply", idle_expiry_ms=EXPIRY_MS)
    node.advance(EXPIRY_MS - 1)
    node.call(messages.Peek(queue))
    node.call(messages.Purge(queue))
    node.show("reply")
    node.advance(1)
    assert not exists(node, "reply")


@pytest.mark.parametrize("how", ["subscription", "no credit", "receive", "group"])
def test_a_queue_that_is_waited_for_stays_and_its_time_counts_from_the_end_of_that(how: str) -> None:
    node = NodeHarness()
    queue, other = node.create("reply", idle_expiry_ms=EXPIRY_MS), node.create("other")
    consumer = node.connect()
    match how:
        case "subscription":
            node.start(messages.Subscribe(queue, 10), connection=consumer)
        case "no credit":
            node.start(messages.Subscribe(queue, 0), connection=consumer)
        case "receive":
            node.start(messages.Receive(queue, wait_ms=3_600_000), connection=consumer)
        case _:
            both = [messages.WeightedQueue(n, 1) for n in (queue, other)]
            node.start(messages.ReceiveAny(both, wait_ms=3_600_000), connection=consumer)
    node.advance(9 * EXPIRY_MS + 5_000)
    assert exists(node, "reply")
    node.node.disconnected(consumer, node.now_ms)
    node.turn()
    node.advance(EXPIRY_MS - 1)
    assert exists(node, "reply")
    node.advance(1)
    assert not exists(node, "reply")


def test_the_time_counts_anew_from_a_start() -> None:
    node = NodeHarness()
    node.create("reply", idle_expiry_ms=EXPIRY_MS)
    node.advance(EXPIRY_MS - 1)
    node.restart()
    node.advance(EXPIRY_MS - 1)
    assert exists(node, "reply")
    node.advance(1)
    assert not exists(node, "reply")


def test_the_setting_can_be_made_changed_and_lifted() -> None:
    node = NodeHarness()
    for name in ("shorter", "longer", "lifted", "made"):
        node.create(name, idle_expiry_ms=None if name == "made" else EXPIRY_MS)
    changes = {"shorter": 2_000, "longer": 20_000, "lifted": None, "made": 2_000}
    for name, expiry_ms in changes.items():
        node.call(messages.AlterQueue(name, {"idle_expiry_ms": expiry_ms}))
    node.advance(2_000)
    assert [exists(node, name) for name in changes] == [False, True, True, False]
    node.advance(EXPIRY_MS)
    assert exists(node, "longer")
    node.advance(EXPIRY_MS)
    assert [exists(node, name) for name in changes] == [False, False, True, False]
    assert not node.node._parts.idle, "nothing is kept of queues that are gone"


def test_a_queue_deleted_and_made_again_has_its_whole_time() -> None:
    node = NodeHarness()
    node.create("reply", idle_expiry_ms=EXPIRY_MS)
    node.advance(EXPIRY_MS - 1)
    node.call(messages.DeleteQueue("reply"))
    node.create("reply", idle_expiry_ms=EXPIRY_MS)
    node.advance(EXPIRY_MS - 1)
    assert exists(node, "reply")


def test_a_queue_that_dead_letters_arrive_in_is_in_use() -> None:
    node = NodeHarness()
    node.create("dead", idle_expiry_ms=EXPIRY_MS)
    orders = node.create("orders", dead_letter_queue="dead", default_ttl_ms=8_000)
    node.send(orders, [b"one"])
    node.advance(EXPIRY_MS + 5_000)
    assert exists(node, "dead")
    node.advance(EXPIRY_MS)
    assert not exists(node, "dead")


def test_a_queue_whose_idle_expiry_is_taken_away_stays() -> None:
    node = NodeHarness()
    node.create("reply", idle_expiry_ms=EXPIRY_MS)
    node.advance(EXPIRY_MS // 2)
    node.call(messages.AlterQueue("reply", {"idle_expiry_ms": None}))
    node.advance(10 * EXPIRY_MS)
    assert exists(node, "reply")


@pytest.mark.parametrize("forward_ms", [EXPIRY_MS, 3_600_000, 366 * 86_400_000])
def test_a_clock_that_is_set_forward_deletes_no_queue_that_is_in_use(forward_ms: int) -> None:
    node = NodeHarness()
    queue = node.create("reply", idle_expiry_ms=EXPIRY_MS)
    node.send(queue, [b"acknowledged"])
    node.advance(EXPIRY_MS // 2)
    node.now_ms += forward_ms
    node.node.tick(node.now_ms)
    node.turn()
    assert exists(node, "reply"), "it was used a moment ago"
    node.advance(EXPIRY_MS // 2 - 1)
    assert exists(node, "reply"), "the jump was no time in which it could have been used"
    node.advance(1)
    assert not exists(node, "reply"), "all other time counts"

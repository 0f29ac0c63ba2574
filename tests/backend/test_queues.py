"""Queues come and go: names, incarnations, settings, dead-letter queues made on the way."""

from __future__ import annotations

import msgspec
import pytest

from penstock.model.settings import QueueSettings
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.harness import NodeHarness


def test_create_is_idempotent_and_says_what_differs() -> None:
    node = NodeHarness()
    first = node.create("orders", visibility_timeout_ms=5_000)
    assert node.create("orders", visibility_timeout_ms=5_000) == first
    failed = node.fail(messages.CreateQueue("orders", QueueSettings(visibility_timeout_ms=6_000)))
    assert failed.code == "queue-exists"
    assert "visibility_timeout_ms = 5000" in failed.message


def test_bad_names_and_settings_are_refused_with_the_reason() -> None:
    node = NodeHarness()
    for name in ("", "a/b", "../x", ".hidden", "x" * 161):
        assert node.fail(messages.CreateQueue(name, QueueSettings())).code == "bad-request"
    for settings in (
        QueueSettings(max_receives=3),
        QueueSettings(max_message_bytes=0),
        QueueSettings(max_message_bytes=17 * 1024 * 1024),
        QueueSettings(retention_ms=10_000, delay_ms=20_000),
        QueueSettings(overflow="dead-letter"),
        QueueSettings(dead_letter_queue="orders"),
    ):
        assert node.fail(messages.CreateQueue("orders", settings)).code == "bad-request"


def test_a_missing_dead_letter_queue_is_made() -> None:
    node = NodeHarness()
    node.create("orders", dead_letter_queue="orders-dead", max_receives=2)
    assert node.show("orders-dead").settings.retention_ms == 14 * 24 * 3600 * 1000


def test_a_dead_letter_queue_that_was_deleted_is_made_again_only_where_it_is_named() -> None:
    node = NodeHarness()
    node.create("orders", dead_letter_queue="orders-dead", max_receives=2)
    node.call(messages.DeleteQueue("orders-dead"))
    node.call(messages.AlterQueue("orders", {"visibility_timeout_ms": 31_000}))
    assert node.fail(messages.DescribeQueue("orders-dead")).code == "queue-not-found"
    node.call(messages.AlterQueue("orders", {"dead_letter_queue": "orders-dead"}))
    node.show("orders-dead")


def test_a_queue_made_again_is_a_new_incarnation() -> None:
    node = NodeHarness()
    old = node.create("orders")
    node.send(old, [b"old"])
    held = node.receive(old)
    node.send(old, [b"old too"])
    node.call(messages.DeleteQueue("orders"))
    new = node.create("orders")
    assert new != old
    assert node.receive(new).bodies == []
    assert node.fail(messages.Send(old), b"").code == "queue-not-found"
    assert node.delete(held).gone == 1
    node.crash()
    assert node.receive(new).bodies == []
    assert node.show("orders").queue_id == new


def test_alter_changes_all_or_nothing() -> None:
    node = NodeHarness()
    node.create("orders")
    failed = node.fail(messages.AlterQueue("orders", {"delay_ms": 5, "no_such_setting": 1}))
    assert "no_such_setting" in failed.message
    assert node.show("orders").settings.delay_ms == 0
    node.call(messages.AlterQueue("orders", {"delay_ms": 5, "max_messages": 7}))
    assert node.fail(messages.AlterQueue("orders", {"ordering": "fifo"})).code == "bad-request"
    node.crash()
    assert (node.show("orders").settings.delay_ms, node.show("orders").settings.max_messages) == (5, 7)


def test_list_pages_by_name() -> None:
    node = NodeHarness()
    for name in ("b", "a", "ab", "c"):
        node.create(name)
    page = node.call(messages.ListQueues(limit=2))
    assert isinstance(page, messages.QueueList)
    assert [queue.name for queue in page.queues] == ["a", "ab"]
    assert page.more
    rest = node.call(messages.ListQueues(after="ab", limit=2))
    assert isinstance(rest, messages.QueueList)
    assert [queue.name for queue in rest.queues] == ["b", "c"]
    assert not rest.more
    some = node.call(messages.ListQueues(prefix="a"))
    assert isinstance(some, messages.QueueList)
    assert [queue.name for queue in some.queues] == ["a", "ab"]


def test_delayed_messages_of_a_deleted_queue_are_dead_lettered() -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead")
    dead = node.show("dead").queue_id
    node.send(orders, [b"now"])
    node.send(orders, [b"later"], delays_ms=[60_000])
    node.call(messages.DeleteQueue("orders"))
    received = node.receive(dead)
    assert received.bodies == [b"later"]
    assert received.heads[0].origin is not None
    assert received.heads[0].origin.reason == "queue-deleted"


def test_hello_comes_first_and_versions_are_agreed() -> None:
    node = NodeHarness()
    node.node.connected(9)
    node.readers[9] = type(node.readers[1])()
    node.arrived[9] = []
    assert isinstance(node.ask(messages.Ping(), connection=9).answer, messages.Failed)
    refused = node.ask(messages.Hello([99], "future"), connection=9).answer
    assert isinstance(refused, messages.Failed)
    assert refused.code == "unsupported-version"


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (msgspec.msgpack.encode([99, 1]), "unknown-request"),
        (msgspec.msgpack.encode([]), "unknown-request"),
        (msgspec.msgpack.encode([[1], 2]), "unknown-request"),
        (b"\xc1garbage", "unknown-request"),
        (msgspec.msgpack.encode([9, "not a queue id"]), "bad-request"),
        (msgspec.msgpack.encode([9]), "bad-request"),
    ],
)
def test_what_cannot_be_read_is_answered(head: bytes, code: str) -> None:
    node = NodeHarness()
    node.node.handle(1, Frame(77, memoryview(head), memoryview(b"")), node.now_ms)
    node.turn()
    answer = node.answers(77)[0].answer
    assert isinstance(answer, messages.Failed)
    assert answer.code == code

"""Messages that move while the journal has no room for a moment: at whichever append, none is lost and none is doubled."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.storage.errors import JournalBusyError, JournalExhaustedError, StorageError
from penstock.wire import messages
from penstock.wire.frames import Frame
from tests.backend.busy_journal import BusyJournal, at_every_append
from tests.backend.harness import NodeHarness

_RETRY_MS = 20
RETRYABLE = (ErrorCode.OVERLOADED, ErrorCode.DISK_FULL)


def until_done(node: NodeHarness, request: messages.Request, body: bytes = b"") -> messages.Answer:
    """Asks again while the journal has no room, as clients do."""
    for _ in range(100):
        answer = node.ask(request, body).answer
        if not isinstance(answer, messages.Failed) or answer.code not in RETRYABLE:
            return answer
        node.advance(_RETRY_MS)
    raise AssertionError(f"there is never room for {request}")


def everything(node: NodeHarness, *names: str) -> list[bytes]:
    """What is in queues, by looking."""
    found: list[bytes] = []
    for name in names:
        answer = node.ask(messages.DescribeQueue(name)).answer
        if isinstance(answer, messages.QueueDescription):
            found += node.drain(answer.queue_id)
    return sorted(found)


def left_behind(node: NodeHarness) -> set[str]:
    """Queues that are deleted and still hold something."""
    catalogue = node.node._parts.catalogue
    return {catalogue.partitions[partition_id].name for partition_id in catalogue.deleting}


def received_too_often(journal: BusyJournal) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
    node.send(orders, [b"a", b"b"])
    node.send(orders, [b"c"])
    node.receive(orders)
    journal.arm()
    node.advance(5_000)
    journal.disarm()
    assert everything(node, "orders") == []
    assert everything(node, "dead") == [b"a", b"b", b"c"]


def released_too_often(journal: BusyJournal) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=60_000)
    node.send(orders, [b"a", b"b"])
    received = node.receive(orders)
    journal.arm()
    until_done(node, messages.Release([received.receipt()]))
    node.advance(1_000)
    journal.disarm()
    assert everything(node, "orders") == []
    assert everything(node, "dead") == [b"a", b"b"]


def expired(journal: BusyJournal) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", default_ttl_ms=1_000)
    node.send(orders, [b"a", b"b"])
    journal.arm()
    node.advance(5_000)
    journal.disarm()
    assert everything(node, "dead") == [b"a", b"b"]


def overflowed(journal: BusyJournal) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_messages=2, overflow="dead-letter")
    node.send(orders, [b"a", b"b"])
    journal.arm()
    until_done(node, messages.Send(orders), bytes(encode_parts([b"c"])))
    node.advance(1_000)
    journal.disarm()
    assert everything(node, "dead", "orders") == [b"a", b"b", b"c"]
    assert node.show("orders").statistics.moving == 0


def overflowed_and_not_asked_again(journal: BusyJournal) -> None:
    """What made room for a send that then found none is on its way all the same, and arrives."""
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_messages=2, overflow="dead-letter")
    node.send(orders, [b"a", b"b"])
    journal.arm()
    answer = node.ask(messages.Send(orders), bytes(encode_parts([b"c"]))).answer
    node.advance(1_000)
    journal.disarm()
    stored = [b"c"] if isinstance(answer, messages.SendResult) else []
    assert node.show("orders").statistics.moving == 0
    assert everything(node, "dead", "orders") == [b"a", b"b", *stored]


def came_late(journal: BusyJournal) -> None:
    """The queue for late messages is made on the way, also for a queue that is deleted meanwhile."""
    node = NodeHarness()
    orders = node.create("orders", ordering="causal", window_ms=0)
    now_us = node.now_ms * 1_000
    node.send(orders, [b"a"], process=7, counter=1, time_us=now_us)
    node.advance(100)
    journal.arm()
    until_done(
        node,
        messages.Send(orders, process=7, counter=0, time_us=now_us - 50_000),
        bytes(encode_parts([b"b"])),
    )
    until_done(node, messages.DeleteQueue("orders"))
    node.advance(1_000)
    journal.disarm()
    assert everything(node, "orders.late") == [b"b"]
    assert left_behind(node) == set()


def redriven_and_deleted(journal: BusyJournal) -> None:
    """Redriven letters arrive though their queue is deleted at once; some of them have nowhere to go back to."""
    node = NodeHarness()
    for name in ("orders", "lost"):
        queue = node.create(name, dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
        node.send(queue, [name.encode() + b" 1", name.encode() + b" 2"])
        node.receive(queue)
    node.advance(3_000)
    node.call(messages.DeleteQueue("lost"))
    dead = node.show("dead").queue_id
    journal.arm()
    until_done(node, messages.Redrive(dead))
    until_done(node, messages.DeleteQueue("dead"))
    node.advance(1_000)
    journal.disarm()
    node.call(messages.AlterQueue("orders", {"max_receives": 5}))
    assert everything(node, "orders") == [b"orders 1", b"orders 2"]
    assert left_behind(node) == set()


def deleted_with_delayed(journal: BusyJournal) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", lifecycle=True)
    node.send(orders, [b"now"])
    node.send(orders, [b"a", b"b"], delays_ms=[60_000, 90_000])
    journal.arm()
    answer = until_done(node, messages.DeleteQueue("orders"))
    node.advance(1_000)
    journal.disarm()
    assert answer == messages.Done()
    assert everything(node, "dead") == [b"a", b"b"]
    assert left_behind(node) == set()
    assert node.fail(messages.DescribeQueue("orders")).code == "queue-not-found"


def deleted_because_idle(journal: BusyJournal) -> None:
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", idle_expiry_ms=5_000)
    node.send(orders, [b"a", b"b"], delays_ms=[60_000, 90_000])
    journal.arm()
    node.advance(10_000)
    journal.disarm()
    assert everything(node, "dead") == [b"a", b"b"]
    assert left_behind(node) == set()
    assert node.fail(messages.DescribeQueue("orders")).code == "queue-not-found"


def deleted_and_restarted(journal: BusyJournal) -> None:
    """The node stops after some of the deletion, and starts on a journal without room."""
    node = NodeHarness()
    orders = node.create("orders", dead_letter_queue="dead", max_receives=1, visibility_timeout_ms=1_000)
    node.send(orders, [b"dies"])
    node.receive(orders)
    node.send(orders, [b"a", b"b"], delays_ms=[60_000, 90_000])
    node.advance(1_000)
    journal.arm()
    node.node.handle(1, frame_of(messages.DeleteQueue("orders")), node.now_ms)
    node.turn()
    node.crash()
    node.advance(1_000)
    journal.disarm()
    until_done(node, messages.DeleteQueue("orders"))
    node.advance(1_000)
    assert everything(node, "dead") == [b"a", b"b", b"dies"]
    assert left_behind(node) == set()


def frame_of(request: messages.Request) -> Frame:
    return Frame(900, memoryview(messages.encode_message(request)), memoryview(b""))


SCENARIOS: list[Callable[[BusyJournal], None]] = [
    received_too_often,
    released_too_often,
    expired,
    overflowed,
    overflowed_and_not_asked_again,
    came_late,
    redriven_and_deleted,
    deleted_with_delayed,
    deleted_because_idle,
    deleted_and_restarted,
]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("error", [JournalBusyError, JournalExhaustedError])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_whichever_append_finds_no_room_nothing_is_lost_or_doubled(
    scenario: Callable[[BusyJournal], None], error: type[StorageError], times: int
) -> None:
    assert at_every_append(scenario, times=times, error=error) >= 4

"""Sends that follow each other on one connection: none is stored before the producer knows that one before it was refused."""

from __future__ import annotations

from penstock.model import limits
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.model.records import EpochBegan
from penstock.queue.decisions.decision import PendingRecord
from penstock.wire import messages
from tests.backend.harness import NodeHarness

OUT_OF_ORDER = "out-of-order"


def start(
    node: NodeHarness, queue: int, number: int, after: int = 0, *, connection: int = 1, body: bytes = b""
) -> int:
    request = messages.Send(queue, 7, number, after=after)
    return node.start(request, encode_parts([body or b"%d" % number]), connection)


def told(node: NodeHarness, request: int, connection: int = 1) -> str | None:
    """The code of a refusal, "stored", or None while it waits."""
    found = node.answers(request, connection)
    if not found:
        return None
    answer = found[0].answer
    return answer.code if isinstance(answer, messages.Failed) else "stored"


def send(node: NodeHarness, queue: int, number: int, after: int = 0, **more: object) -> str | None:
    return told(node, start(node, queue, number, after, **more))  # type: ignore[arg-type]  # as the caller names them


def test_what_follows_a_send_on_a_full_disk_waits_for_it() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    assert send(node, queue, 1) == "stored"
    node.disk.capacity = sum(node.disk.files().values())
    number = 1
    while (outcome := send(node, queue, number + 1, after=number, body=b"x" * 4_000)) == "stored":
        number += 1
    assert outcome == ErrorCode.DISK_FULL
    node.disk.capacity = None
    node.advance(5_000)  # by now there would be room
    assert send(node, queue, number + 2, after=number + 1) == OUT_OF_ORDER
    assert send(node, queue, number + 3, after=number + 2) == OUT_OF_ORDER
    assert send(node, queue, number + 1, after=number) == "stored"
    assert send(node, queue, number + 2, after=number + 1) == "stored"


def test_what_never_arrived_is_waited_for_too() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    assert send(node, queue, 1) == "stored"
    # 2 was refused on its way, by a limit of its user
    assert send(node, queue, 3, after=2) == OUT_OF_ORDER
    assert send(node, queue, 2, after=1) == "stored"
    assert send(node, queue, 3, after=2) == "stored"
    assert node.drain(queue) == [b"1", b"2", b"3"]


def test_a_stamp_that_is_past_when_its_batch_comes_again_does_not_put_it_behind_the_next() -> None:
    """The answers are lost with their connection. By the time the producer sends both again the stamp of the first may be taken."""
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", stamps="producer", window_ms=100)
    now_us = node.now_ms * 1_000
    first = messages.Send(queue, 7, 1, process=3, counter=1, time_us=now_us + 5_000_000)
    second = messages.Send(queue, 7, 2, process=3, counter=2, time_us=now_us, after=1)
    body = encode_parts([b"x"])
    assert node.fail(first, body).code == ErrorCode.STAMP_IN_FUTURE
    assert node.fail(second, body).code == OUT_OF_ORDER
    node.advance(6_000)
    other = node.connect()
    for place, request in enumerate((first, second), 1):
        answer = node.call(request, body, other)
        assert isinstance(answer, messages.SendResult)
        assert answer.runs == [(place, 1)]


def test_what_a_higher_limit_lets_in_later_is_not_stored_behind_the_next() -> None:
    node = NodeHarness()
    queue = node.create("orders", max_message_bytes=10)
    assert send(node, queue, 1) == "stored"
    assert send(node, queue, 2, after=1, body=b"x" * 11) == "message-too-large"
    assert send(node, queue, 3, after=2) == OUT_OF_ORDER
    assert send(node, queue, 4, after=3) == OUT_OF_ORDER
    # the answers are lost
    other = node.connect()
    node.call(messages.AlterQueue("orders", {"max_message_bytes": 20}))
    assert told(node, start(node, queue, 2, body=b"x" * 11, connection=other), other) == "stored"
    assert told(node, start(node, queue, 3, after=2, connection=other), other) == "stored"
    assert node.drain(queue) == [b"1", b"x" * 11, b"3"]


def test_what_is_refused_holds_nobody_up_once_its_producer_knows() -> None:
    node = NodeHarness()
    queue = node.create("orders", max_message_bytes=10)
    assert send(node, queue, 1, body=b"x" * 11) == "message-too-large"
    assert send(node, queue, 2, after=1) == OUT_OF_ORDER
    assert [send(node, queue, 2), send(node, queue, 3, after=2)] == ["stored", "stored"]


def test_what_follows_a_batch_that_found_the_queue_full_waits_until_its_client_knows() -> None:
    node = NodeHarness()
    queue = node.create("orders", max_bytes=10)
    assert send(node, queue, 1) == "stored"
    assert send(node, queue, 2, after=1, body=b"x" * 11) == "queue-full"
    assert send(node, queue, 3, after=2) == OUT_OF_ORDER
    assert send(node, queue, 3) == "stored"


def test_duplicates_are_as_good_as_stored() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    for _ in range(2):
        body = encode_parts([b"a"], deduplication_ids=[b"id"])
        node.call(messages.Send(queue, 7, 1), body)
        node.call(messages.Send(queue, 7, 2, after=1), body)
        assert send(node, queue, 3, after=2) == "stored"


def test_every_connection_begins_by_itself() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    other = node.connect()
    assert send(node, queue, 1) == "stored"
    assert told(node, start(node, queue, 2, after=1, connection=other), other) == OUT_OF_ORDER
    assert told(node, start(node, queue, 1, connection=other), other) == "stored"
    assert told(node, start(node, queue, 2, after=1, connection=other), other) == "stored"
    assert node.drain(queue) == [b"1", b"2"]


def test_a_send_that_was_held_for_too_long_takes_those_that_follow_it_along() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    node.uncertainty_us = None
    first = start(node, queue, 1)
    node.advance(limits.SEND_HELD_MS // 2)
    second = start(node, queue, 2, after=1)
    alone = node.start(messages.Send(queue, 8, 1), encode_parts([b"of another"]))
    node.advance(limits.SEND_HELD_MS // 2 + 20)
    assert told(node, first) == ErrorCode.CLOCK_UNCERTAIN
    assert told(node, second) is None
    node.uncertainty_us = 0
    node.advance(20)
    assert (told(node, second), told(node, alone)) == (OUT_OF_ORDER, "stored")
    assert send(node, queue, 3, after=2) == OUT_OF_ORDER
    again = [start(node, queue, 1), start(node, queue, 2, after=1)]
    node.advance(20)
    assert [told(node, request) for request in again] == ["stored", "stored"]
    assert node.drain(queue) == [b"of another", b"1", b"2"]


def test_held_sends_that_follow_each_other_are_stored_in_order() -> None:
    node = NodeHarness()
    queue = node.create("orders", ordering="clock", when_uncertain="hold")
    node.uncertainty_us = None
    requests = [start(node, queue, number, after=number - 1) for number in (1, 2, 3)]
    node.uncertainty_us = 0
    node.advance(20)
    assert [told(node, request) for request in requests] == ["stored"] * 3
    assert node.drain(queue) == [b"1", b"2", b"3"]


def test_what_was_taken_under_an_earlier_epoch_may_be_lost() -> None:
    """A node that was deposed has cut what its successor did not have, and may lead again by the time more arrives."""
    node = NodeHarness()
    queue = node.create("orders")
    assert send(node, queue, 1) == "stored"
    parts = node.node._parts
    partition = parts.catalogue.partitions[queue]
    parts.write(partition, [PendingRecord(EpochBegan(3, node.now_ms))])
    assert send(node, queue, 2, after=1) == OUT_OF_ORDER
    assert send(node, queue, 1) == "stored"
    assert send(node, queue, 2, after=1) == "stored"
    assert node.drain(queue) == [b"1", b"2"]


def test_clients_that_say_nothing_are_served_as_ever() -> None:
    node = NodeHarness()
    queue = node.create("orders")
    assert [send(node, queue, number) for number in (1, 5, 3)] == ["stored"] * 3
    node.send(queue, [b"of nobody"])
    assert len(node.node._parts.send_order) == 1

"""DeleteMessage and ChangeMessageVisibility, single and in batches: in time, late, twice, and forged."""

from __future__ import annotations

import base64

import pytest

from penstock.frontend.messages.receipt_handle import encode_handles
from tests.frontend.actions.messages import Queue
from tests.frontend.harness import FrontEnd


def received(queue: Queue, count: int = 1) -> list[str]:
    for number in range(count):
        more = (
            {"MessageGroupId": "g", "MessageDeduplicationId": str(number)}
            if queue.name.endswith(".fifo")
            else {}
        )
        queue.send(str(number), **more)
    return [message.receipt_handle or "" for message in queue.receive()]


def test_a_deleted_message_stays_away_and_may_be_deleted_again() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="1")
    (handle,) = received(queue)
    queue.delete(handle)
    queue.delete(handle)
    queue.front.node.advance(5_000)
    assert queue.receive() == []


def test_late_but_not_received_again_it_is_still_deleted() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="1")
    (handle,) = received(queue)
    queue.front.node.advance(5_000)
    queue.delete(handle)
    assert queue.receive() == []


def test_a_receipt_of_an_earlier_receive_deletes_nothing() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="1")
    (handle,) = received(queue)
    queue.front.node.advance(5_000)
    newer = queue.receive_one()
    queue.delete(handle)  # accepted, as the service does
    queue.front.node.advance(5_000)
    assert queue.receive_one().message_id == newer.message_id


def test_on_a_fifo_queue_a_late_receipt_has_expired() -> None:
    queue = Queue(FrontEnd(), "orders.fifo", VisibilityTimeout="1")
    (handle,) = received(queue)
    queue.front.node.advance(5_000)
    assert queue.delete_refused(handle).message.endswith("Reason: The receipt handle has expired.")
    assert queue.change_refused(handle, 5).message.endswith("Reason: The receipt handle has expired.")
    assert len(queue.receive()) == 1


@pytest.mark.parametrize("text", ["garbage", "", "é", "AAAA", base64.b64encode(bytes(44)).decode()])
def test_what_was_never_given_out_is_refused(text: str) -> None:
    queue = Queue(FrontEnd())
    assert queue.delete_refused(text).message == (
        f'The input receipt handle "{text}" is not a valid receipt handle.'
    )


def test_a_forged_receipt_fails_alone() -> None:
    queue = Queue(FrontEnd())
    good = received(queue, 2)
    raw = base64.b64decode(good[0])
    (forged,) = encode_handles(raw[:31] + bytes([raw[31] ^ 1]), 0, [1])
    result = queue.delete_batch({"a": good[0], "b": forged, "c": good[1], "d": "junk"})
    assert sorted(entry.id for entry in result.successful) == ["a", "c"]
    assert {entry.id: entry.code for entry in result.failed} == {
        "b": "ReceiptHandleIsInvalid",
        "d": "ReceiptHandleIsInvalid",
    }
    queue.front.node.advance(60_000)
    assert queue.receive() == []


def test_a_receipt_is_worth_nothing_on_another_queue() -> None:
    front = FrontEnd()
    queue, other = Queue(front), Queue(front, "other")
    (handle,) = received(queue)
    assert other.delete_refused(handle).query_code == "ReceiptHandleIsInvalid"


def test_ten_messages_are_deleted_at_once() -> None:
    queue = Queue(FrontEnd())
    handles = received(queue, 10)
    result = queue.delete_batch({str(index): handle for index, handle in enumerate(handles)})
    assert len(result.successful) == 10
    queue.front.node.advance(60_000)
    assert queue.receive() == []


def test_visibility_is_changed_from_now_on() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="10")
    (handle,) = received(queue)
    queue.front.node.advance(5_000)
    queue.change(handle, 20)
    queue.front.node.advance(19_000)
    assert queue.receive() == []
    queue.front.node.advance(1_100)
    assert len(queue.receive()) == 1


def test_late_but_not_received_again_it_is_hidden_again() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="1")
    (handle,) = received(queue)
    queue.front.node.advance(5_000)
    queue.change(handle, 20)
    queue.front.node.advance(19_000)
    assert queue.receive() == []
    queue.front.node.advance(1_100)
    message = queue.receive_one(AttributeNames=["All"])
    assert message.attributes["ApproximateReceiveCount"] == "2"


def test_late_messages_are_hidden_again_and_given_back_in_a_batch() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="1")
    first, second = received(queue, 2)
    queue.front.node.advance(5_000)
    result = queue.change_batch({"hide": (first, 20), "back": (second, 0)})
    assert [entry.id for entry in result.successful] == ["hide", "back"]
    assert queue.bodies() == ["1"]
    queue.delete(first)
    queue.front.node.advance(60_000)
    assert queue.bodies() == ["1"]


def test_a_receipt_of_an_earlier_receive_changes_nothing() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="1")
    (handle,) = received(queue)
    queue.front.node.advance(5_000)
    queue.receive_one()
    assert "not available for visibility timeout change" in queue.change_refused(handle, 60).message
    queue.front.node.advance(5_000)
    assert "not available for visibility timeout change" in queue.change_refused(handle, 0).message
    assert len(queue.receive()) == 1


def test_visibility_zero_gives_the_message_back_at_once() -> None:
    queue = Queue(FrontEnd())
    (handle,) = received(queue)
    queue.change(handle, 0)
    message = queue.receive_one(AttributeNames=["All"])
    assert message.attributes["ApproximateReceiveCount"] == "2"


def test_the_visibility_of_a_deleted_message_cannot_be_changed() -> None:
    queue = Queue(FrontEnd())
    first, second = received(queue, 2)
    queue.delete(first)
    assert queue.change_refused(first, 5).message == (
        f"Value {first} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not "
        "available for visibility timeout change."
    )
    result = queue.change_batch({"gone": (first, 5), "there": (second, 5), "odd": (second, -1)})
    assert [entry.id for entry in result.successful] == ["there"]
    assert {entry.id for entry in result.failed} == {"gone", "odd"}


def test_batches_change_each_message_by_its_own_time() -> None:
    queue = Queue(FrontEnd())
    first, second, third = received(queue, 3)
    queue.change_batch({"a": (first, 0), "b": (second, 5), "c": (third, 50)})
    assert queue.bodies(VisibilityTimeout=600) == ["0"]
    queue.front.node.advance(5_100)
    assert queue.bodies(VisibilityTimeout=600) == ["1"]
    queue.front.node.advance(30_000)
    assert queue.receive() == []

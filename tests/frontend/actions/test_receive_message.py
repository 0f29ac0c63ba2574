"""ReceiveMessage: what is shown, what is leased, what waits, what is only looked at."""

from __future__ import annotations

import json

from penstock.frontend.actions.receive_message import receive_message
from penstock.model.batch import encode_parts
from penstock.sqs.compatibility import STRICT
from penstock.wire.messages import DescribeQueue, QueueDescription, Send
from tests.frontend.actions.messages import Queue
from tests.frontend.harness import FrontEnd


def test_system_attributes_are_given_when_they_are_asked_for() -> None:
    front = FrontEnd()
    queue = Queue(front)
    sent_ms = front.node.now_ms
    queue.send(MessageGroupId="tenant")
    front.node.now_ms += 1_000
    message = queue.receive_one(MessageSystemAttributeNames=["All"], VisibilityTimeout=0)
    assert message.attributes == {
        "SenderId": "000000000000",
        "SentTimestamp": str(sent_ms),
        "ApproximateReceiveCount": "1",
        "ApproximateFirstReceiveTimestamp": str(sent_ms + 1_000),
        "MessageGroupId": "tenant",
    }
    front.node.advance(100)
    again = queue.receive_one(AttributeNames=["ApproximateReceiveCount", "SequenceNumber"])
    assert again.attributes == {"ApproximateReceiveCount": "2"}
    assert again.receipt_handle != message.receipt_handle


def test_a_fifo_message_shows_its_number_group_and_id() -> None:
    queue = Queue(FrontEnd(), "orders.fifo")
    sent = queue.send(MessageGroupId="g", MessageDeduplicationId="d")
    attributes = queue.receive_one(AttributeNames=["All"]).attributes
    assert attributes["SequenceNumber"] == sent.sequence_number
    assert len(attributes["SequenceNumber"]) == 20
    assert (attributes["MessageGroupId"], attributes["MessageDeduplicationId"]) == ("g", "d")


def test_only_the_attributes_asked_for_are_given_and_digested() -> None:
    queue = Queue(FrontEnd())
    queue.send(
        MessageAttributes={
            name: {"DataType": "String", "StringValue": "x"} for name in ("Hello", "Help.Me", "Other")
        }
    )
    message = queue.receive_one(MessageAttributeNames=["Hel.*"], VisibilityTimeout=0)
    assert sorted(message.message_attributes) == ["Hello", "Help.Me"]
    queue.front.node.advance(50)
    nothing = queue.receive_one(MessageAttributeNames=["Missing"])
    assert (nothing.message_attributes, nothing.md5_of_message_attributes) == ({}, None)


def test_a_long_poll_is_answered_by_a_send() -> None:
    queue = Queue(FrontEnd())
    polling = queue.front.begin(receive_message, "ReceiveMessage", QueueUrl=queue.url, WaitTimeSeconds=20)
    polling.step()
    assert not polling.finished
    queue.send("at last")
    polling.step()
    assert [message.body for message in polling.result.messages] == ["at last"]


def test_the_queues_own_wait_counts_unless_another_is_given() -> None:
    queue = Queue(FrontEnd(), ReceiveMessageWaitTimeSeconds="20")
    assert queue.receive(WaitTimeSeconds=0) == []
    polling = queue.front.begin(receive_message, "ReceiveMessage", QueueUrl=queue.url)
    polling.step()
    assert not polling.finished


def test_a_message_comes_back_after_its_visibility_timeout() -> None:
    queue = Queue(FrontEnd(), VisibilityTimeout="5")
    queue.send()
    queue.receive_one()
    queue.front.node.advance(4_900)
    assert queue.receive() == []
    queue.front.node.advance(200)
    assert queue.receive_one(AttributeNames=["All"]).attributes["ApproximateReceiveCount"] == "2"


def test_parameters_out_of_range_are_refused() -> None:
    queue = Queue(FrontEnd(compatibility=STRICT))
    assert queue.receive_refused(MaxNumberOfMessages=11).message == (
        "Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."
    )
    assert queue.receive_refused(WaitTimeSeconds=21).query_code == "InvalidParameterValue"
    assert queue.receive_refused(VisibilityTimeout=43_201).query_code == "InvalidParameterValue"


def redrive_policy(target: str, most: int) -> str:
    return json.dumps({"deadLetterTargetArn": target, "maxReceiveCount": most})


def test_dead_letters_keep_their_id_and_say_where_and_why_they_died() -> None:
    front = FrontEnd()
    dead = Queue(front, "dead")
    policy = redrive_policy(front.arn("dead"), 2)
    queue = Queue(front, VisibilityTimeout="1", RedrivePolicy=policy)
    sent_ms = front.node.now_ms
    sent = queue.send("unlucky")
    for _ in range(2):
        assert queue.receive_one().message_id == sent.message_id
        front.node.advance(1_100)
    assert queue.receive() == []
    message = dead.receive_one(AttributeNames=["All"])
    assert message.message_id == sent.message_id
    assert message.attributes["DeadLetterQueueSourceArn"] == front.arn("orders")
    assert message.attributes["Penstock.DeadLetterReason"] == "max-receives"
    assert message.attributes["ApproximateReceiveCount"] == "3"
    assert message.attributes["SentTimestamp"] == str(sent_ms)


def test_strict_servers_show_no_attributes_of_ours() -> None:
    front = FrontEnd(compatibility=STRICT)
    dead = Queue(front, "dead")
    policy = redrive_policy(front.arn("dead"), 1)
    queue = Queue(front, VisibilityTimeout="1", RedrivePolicy=policy)
    queue.send()
    queue.receive_one()
    front.node.advance(1_100)
    assert "Penstock.DeadLetterReason" not in dead.receive_one(AttributeNames=["All"]).attributes


def test_an_attempt_is_answered_with_the_same_messages() -> None:
    queue = Queue(FrontEnd(), "orders.fifo")
    for number in range(3):
        queue.send(str(number), MessageGroupId="g", MessageDeduplicationId=str(number))
    first = queue.receive(2, ReceiveRequestAttemptId="try")
    again = queue.receive(2, ReceiveRequestAttemptId="try")
    assert [message.body for message in again] == ["0", "1"]
    assert [m.receipt_handle for m in again] == [m.receipt_handle for m in first]
    queue.delete(first[0].receipt_handle)
    refused = queue.receive_refused(ReceiveRequestAttemptId="try")
    assert refused.message.startswith("Value try for parameter ReceiveRequestAttemptId is invalid.")


def test_peeking_leases_nothing() -> None:
    queue = Queue(FrontEnd())
    for number in range(3):
        queue.send(str(number))
    peeked = queue.receive(2, MessageAttributeNames=["Penstock.Peek"])
    assert [(message.body, message.receipt_handle) for message in peeked] == [("0", None), ("1", None)]
    assert queue.bodies(MessageAttributeNames=["Penstock.Peek.99"]) == []
    assert queue.bodies() == ["0", "1", "2"]


def test_a_body_that_is_no_text_arrives_as_base64() -> None:
    front = FrontEnd()
    queue = Queue(front)
    description = front.node.call(DescribeQueue("orders"))
    assert isinstance(description, QueueDescription)
    front.node.call(Send(description.queue_id), encode_parts([b"\xff\xfe"]))
    message = queue.receive_one(AttributeNames=["All"])
    assert (message.body, message.attributes["Penstock.BodyEncoding"]) == ("//4=", "base64")

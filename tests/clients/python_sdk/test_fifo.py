"""boto3: FIFO queues, their order, groups and deduplication."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

MakeQueue = Callable[..., str]


def receive(sqs: Any, url: str, **more: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sqs.receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], **more
    ).get("Messages", [])
    return found


def send(sqs: Any, url: str, body: str, group: str = "g", deduplication: str | None = None) -> dict[str, Any]:
    sent: dict[str, Any] = sqs.send_message(
        QueueUrl=url,
        MessageBody=body,
        MessageGroupId=group,
        MessageDeduplicationId=deduplication or f"{group}-{body}",
    )
    return sent


def test_order_holds_inside_a_group_and_a_group_is_locked_while_one_is_out(sqs: Any, fifo: str) -> None:
    numbers = [int(send(sqs, fifo, body, group)["SequenceNumber"]) for group in "ab" for body in "123"]
    assert numbers == sorted(set(numbers))
    (first,) = sqs.receive_message(QueueUrl=fifo, AttributeNames=["All"], WaitTimeSeconds=5)["Messages"]
    assert first["Body"] == "1"
    system = first["Attributes"]
    assert system["MessageGroupId"] == "a"
    assert system["MessageDeduplicationId"] == "a-1"
    assert int(system["SequenceNumber"]) == numbers[0]
    assert [m["Attributes"]["MessageGroupId"] + m["Body"] for m in receive(sqs, fifo)] == ["b1", "b2", "b3"]
    assert receive(sqs, fifo) == []
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=first["ReceiptHandle"])
    assert [message["Body"] for message in receive(sqs, fifo)] == ["2", "3"]


def test_a_message_given_back_keeps_its_place(sqs: Any, fifo: str) -> None:
    for body in "123":
        send(sqs, fifo, body)
    messages = receive(sqs, fifo)
    for message in messages:
        sqs.change_message_visibility(
            QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=0
        )
    assert [message["Body"] for message in receive(sqs, fifo)] == ["1", "2", "3"]


def test_the_same_id_is_sent_once(sqs: Any, fifo: str) -> None:
    first = send(sqs, fifo, "one", deduplication="same")
    second = send(sqs, fifo, "two", deduplication="same")
    assert second["MessageId"] == first["MessageId"]
    assert second["SequenceNumber"] == first["SequenceNumber"]
    (message,) = receive(sqs, fifo)
    assert message["Body"] == "one"
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=message["ReceiptHandle"])
    # Also after it was deleted.
    send(sqs, fifo, "three", deduplication="same")
    assert receive(sqs, fifo) == []


def test_the_content_can_be_the_id(sqs: Any, make_queue: MakeQueue) -> None:
    url = make_queue("ordered", FifoQueue="true", ContentBasedDeduplication="true")
    for body in ("one", "two", "one"):
        sqs.send_message(QueueUrl=url, MessageBody=body, MessageGroupId="g")
    messages = receive(sqs, url)
    assert [message["Body"] for message in messages] == ["one", "two"]
    assert messages[0]["Attributes"]["MessageDeduplicationId"] == hashlib.sha256(b"one").hexdigest()


def test_the_scope_can_be_the_group(sqs: Any, make_queue: MakeQueue) -> None:
    url = make_queue(
        "ordered",
        FifoQueue="true",
        DeduplicationScope="messageGroup",
        FifoThroughputLimit="perMessageGroupId",
    )
    for group in "aab":
        send(sqs, url, f"in {group}", group, deduplication="same")
    assert [message["Body"] for message in receive(sqs, url)] == ["in a", "in b"]


def test_a_batch_is_in_order_and_deduplicated(sqs: Any, fifo: str) -> None:
    sent = sqs.send_message_batch(
        QueueUrl=fifo,
        Entries=[
            {
                "Id": str(n),
                "MessageBody": f"m{n}",
                "MessageGroupId": "g",
                "MessageDeduplicationId": str(n % 4),
            }
            for n in range(6)
        ],
    )
    assert len(sent["Successful"]) == 6
    assert sent["Successful"][4]["MessageId"] == sent["Successful"][0]["MessageId"]
    assert [message["Body"] for message in receive(sqs, fifo)] == ["m0", "m1", "m2", "m3"]


def test_a_repeated_attempt_gets_the_same_messages(sqs: Any, fifo: str) -> None:
    for body in "123":
        send(sqs, fifo, body)
    first = receive(sqs, fifo, ReceiveRequestAttemptId="attempt")
    again = receive(sqs, fifo, ReceiveRequestAttemptId="attempt")
    assert [message["MessageId"] for message in again] == [message["MessageId"] for message in first]
    assert receive(sqs, fifo, ReceiveRequestAttemptId="other") == []


def test_what_fifo_needs_and_refuses(sqs: Any, fifo: str) -> None:
    refused: list[tuple[str, dict[str, Any]]] = [
        ("MissingParameter", {"MessageDeduplicationId": "d"}),
        ("InvalidParameterValue", {"MessageGroupId": "g"}),
        ("InvalidParameterValue", {"MessageGroupId": "g", "MessageDeduplicationId": "d", "DelaySeconds": 2}),
        ("InvalidParameterValue", {"MessageGroupId": "g g", "MessageDeduplicationId": "d"}),
        ("InvalidParameterValue", {"MessageGroupId": "g", "MessageDeduplicationId": "d" * 129}),
    ]
    for code, arguments in refused:
        with pytest.raises(ClientError) as caught:
            sqs.send_message(QueueUrl=fifo, MessageBody="x", **arguments)
        assert caught.value.response["Error"]["Code"] == code, arguments
    assert receive(sqs, fifo) == []
    with pytest.raises(ClientError) as caught:
        sqs.set_queue_attributes(QueueUrl=fifo, Attributes={"FifoQueue": "false"})
    assert caught.value.response["Error"]["Code"] == "InvalidAttributeValue"


def test_a_standard_queue_takes_groups_as_tenants(sqs: Any, queue: str) -> None:
    sqs.send_message(QueueUrl=queue, MessageBody="x", MessageGroupId="tenant")
    (message,) = receive(sqs, queue, WaitTimeSeconds=5)
    assert message["Attributes"]["MessageGroupId"] == "tenant"
    assert "SequenceNumber" not in message["Attributes"]

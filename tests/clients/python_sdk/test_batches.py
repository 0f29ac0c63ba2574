"""boto3: the three batch actions, whole, in part and refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import pytest

MakeQueue = Callable[..., str]

BAD_ID = (
    "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
    "It can be at most 80 letters long."
)


def entries(count: int, **more: object) -> list[dict[str, Any]]:
    return [{"Id": f"id-{number}", "MessageBody": f"body {number}", **more} for number in range(count)]


def test_ten_go_in_and_ten_come_out(sqs: Any, queue: str) -> None:
    attribute = {"a": {"DataType": "String", "StringValue": "v"}}
    sent = sqs.send_message_batch(QueueUrl=queue, Entries=entries(10, MessageAttributes=attribute))
    assert "Failed" not in sent
    assert [entry["Id"] for entry in sent["Successful"]] == [f"id-{number}" for number in range(10)]
    for number, entry in enumerate(sent["Successful"]):
        assert entry["MD5OfMessageBody"] == hashlib.md5(f"body {number}".encode()).hexdigest()
        assert entry["MD5OfMessageAttributes"]
    messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
    assert [message["Body"] for message in messages] == [f"body {number}" for number in range(10)]
    assert [message["MessageId"] for message in messages] == [
        entry["MessageId"] for entry in sent["Successful"]
    ]

    changed = sqs.change_message_visibility_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": f"c{number}", "ReceiptHandle": message["ReceiptHandle"], "VisibilityTimeout": 0}
            for number, message in enumerate(messages)
        ],
    )
    assert len(changed["Successful"]) == 10
    assert "Failed" not in changed
    again = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
    assert {message["MessageId"] for message in again} == {message["MessageId"] for message in messages}

    deleted = sqs.delete_message_batch(
        QueueUrl=queue,
        Entries=[
            {"Id": f"d{number}", "ReceiptHandle": message["ReceiptHandle"]}
            for number, message in enumerate(again)
        ],
    )
    assert {entry["Id"] for entry in deleted["Successful"]} == {f"d{number}" for number in range(10)}
    assert "Failed" not in deleted
    found = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["All"])["Attributes"]
    assert found["ApproximateNumberOfMessages"] == found["ApproximateNumberOfMessagesNotVisible"] == "0"


def test_one_bad_entry_does_not_spoil_the_others(sqs: Any, make_queue: MakeQueue) -> None:
    url = make_queue(MaximumMessageSize=1024)
    sent = sqs.send_message_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "good", "MessageBody": "fits"},
            {"Id": "large", "MessageBody": "x" * 1025},
            {"Id": "early", "MessageBody": "fits", "DelaySeconds": -1},
            {
                "Id": "attribute",
                "MessageBody": "fits",
                "MessageAttributes": {"a": {"DataType": "What", "StringValue": "v"}},
            },
            {"Id": "also-good", "MessageBody": "fits too"},
        ],
    )
    assert [entry["Id"] for entry in sent["Successful"]] == ["good", "also-good"]
    failed = {entry["Id"]: entry for entry in sent["Failed"]}
    assert set(failed) == {"large", "early", "attribute"}
    for entry in failed.values():
        assert entry["SenderFault"] is True
        assert entry["Code"] == "InvalidParameterValue"
    assert "Message must be shorter than 1024 bytes" in failed["large"]["Message"]

    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
    assert [message["Body"] for message in messages] == ["fits", "fits too"]
    handles = [messages[0]["ReceiptHandle"], "garbage"]
    changed = sqs.change_message_visibility_batch(
        QueueUrl=url,
        Entries=[
            {"Id": str(number), "ReceiptHandle": handle, "VisibilityTimeout": 60}
            for number, handle in enumerate(handles)
        ],
    )
    deleted = sqs.delete_message_batch(
        QueueUrl=url,
        Entries=[{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles)],
    )
    for answer in (changed, deleted):
        assert [entry["Id"] for entry in answer["Successful"]] == ["0"]
        (failure,) = answer["Failed"]
        assert (failure["Id"], failure["Code"]) == ("1", "ReceiptHandleIsInvalid")
        assert failure["SenderFault"] is True


def test_a_batch_that_is_none_is_refused_whole(sqs: Any, queue: str) -> None:
    kinds = sqs.exceptions
    half = "x" * 600_000
    refused: list[tuple[type[Exception], list[dict[str, Any]], str]] = [
        (
            kinds.EmptyBatchRequest,
            [],
            "There should be at least one SendMessageBatchRequestEntry in the request.",
        ),
        (
            kinds.TooManyEntriesInBatchRequest,
            entries(11),
            "Maximum number of entries per request are 10. You have sent 11.",
        ),
        (kinds.BatchEntryIdsNotDistinct, entries(2) + entries(1), "Id id-0 repeated."),
        (
            kinds.InvalidBatchEntryId,
            [{"Id": "no spaces", "MessageBody": "x"}],
            BAD_ID,
        ),
        (
            kinds.BatchRequestTooLong,
            [{"Id": "a", "MessageBody": half}, {"Id": "b", "MessageBody": half}],
            "Batch requests cannot be longer than 1048576 bytes. You have sent 1200000 bytes.",
        ),
    ]
    for kind, batch, text in refused:
        with pytest.raises(kind) as caught:
            sqs.send_message_batch(QueueUrl=queue, Entries=batch)
        assert caught.value.response["Error"]["Message"] == text  # type: ignore[attr-defined]  # ClientError has no types
    with pytest.raises(kinds.EmptyBatchRequest):
        sqs.delete_message_batch(QueueUrl=queue, Entries=[])
    with pytest.raises(kinds.EmptyBatchRequest):
        sqs.change_message_visibility_batch(QueueUrl=queue, Entries=[])
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)

"""Probes of the actions on messages: one function an action, which fails where the server differs from SQS."""

from __future__ import annotations

import time
from typing import Any

from tests.clients.compatibility.stage import MISSING, Stage

PREFIX = "AWS.SimpleQueueService."
BINARY = {"b": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}}
TRACE = {"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988-bd862e3fe1be46a994272793"}}


def send_message(stage: Stage) -> None:
    url, ordered = stage.queue(), stage.queue(FifoQueue="true")
    sent = stage.client.send_message(
        QueueUrl=url,
        MessageBody="x\r\n<&>",
        DelaySeconds=0,
        MessageAttributes=BINARY,
        MessageSystemAttributes=TRACE,
    )
    assert stage.one(url)["MessageId"] == sent["MessageId"]
    once = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    first, second = (stage.client.send_message(QueueUrl=ordered, **once) for _ in range(2))
    assert first["SequenceNumber"] == second["SequenceNumber"]
    stage.refused("InvalidMessageContents", "send_message", QueueUrl=url, MessageBody="\ufffe")
    stage.refused("MissingParameter", "send_message", QueueUrl=ordered, MessageBody="x")
    stage.refused("InvalidParameterValue", "send_message", QueueUrl=url, MessageBody="x" * 1_048_577)
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "send_message", QueueUrl=url, MessageBody="x")


def refused_batches(stage: Stage, action: str, url: str, entry: dict[str, Any]) -> None:
    """What all three batch actions refuse whole."""

    def refused(code: str, entries: list[dict[str, Any]]) -> None:
        stage.refused(f"{PREFIX}{code}", action, QueueUrl=url, Entries=entries)

    refused("EmptyBatchRequest", [])
    refused("TooManyEntriesInBatchRequest", [entry | {"Id": str(number)} for number in range(11)])
    refused("BatchEntryIdsNotDistinct", [entry, entry])
    refused("InvalidBatchEntryId", [entry | {"Id": "no spaces"}])
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, action, QueueUrl=url, Entries=[entry])


def send_message_batch(stage: Stage) -> None:
    url = stage.queue(MaximumMessageSize=1024)
    sent = stage.client.send_message_batch(
        QueueUrl=url,
        Entries=[
            {"Id": "good", "MessageBody": "x", "MessageAttributes": BINARY},
            {"Id": "bad", "MessageBody": "x" * 1025},
        ],
    )
    assert sent["Successful"][0]["Id"] == "good"
    assert (sent["Failed"][0]["Id"], sent["Failed"][0]["Code"]) == ("bad", "InvalidParameterValue")
    half = "x" * 524_289
    stage.refused(
        f"{PREFIX}BatchRequestTooLong",
        "send_message_batch",
        QueueUrl=url,
        Entries=[{"Id": "a", "MessageBody": half}, {"Id": "b", "MessageBody": half}],
    )
    refused_batches(stage, "send_message_batch", url, {"Id": "a", "MessageBody": "x"})


def receive_message(stage: Stage) -> None:
    url = stage.queue()
    stage.client.send_message(QueueUrl=url, MessageBody="x", MessageAttributes=BINARY)
    message = stage.one(
        url,
        AttributeNames=["All"],
        MessageAttributeNames=["All"],
        MaxNumberOfMessages=10,
        VisibilityTimeout=1,
    )
    assert message["MessageAttributes"] == BINARY
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    began = time.monotonic()
    assert "Attributes" not in stage.one(url)
    assert time.monotonic() - began > 0.5
    stage.refused("InvalidParameterValue", "receive_message", QueueUrl=url, MaxNumberOfMessages=11)
    ordered = stage.queue(FifoQueue="true", ContentBasedDeduplication="true")
    stage.client.send_message(QueueUrl=ordered, MessageBody="x", MessageGroupId="g")
    first, again = (stage.one(ordered, ReceiveRequestAttemptId="again") for _ in range(2))
    assert first["MessageId"] == again["MessageId"]
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "receive_message", QueueUrl=url)


def receive_by_the_newer_name(stage: Stage) -> None:
    """`MessageSystemAttributeNames` came after the last model of the Query protocol."""
    url = stage.queue()
    stage.client.send_message(QueueUrl=url, MessageBody="x")
    assert stage.one(url, MessageSystemAttributeNames=["SentTimestamp"])["Attributes"].keys() == {
        "SentTimestamp"
    }


def received(stage: Stage, count: int) -> tuple[str, list[str]]:
    """A queue, and the receipt handles of messages just received from it."""
    url = stage.queue()
    for number in range(count):
        stage.client.send_message(QueueUrl=url, MessageBody=str(number))
    return url, [stage.one(url)["ReceiptHandle"] for _ in range(count)]


def delete_message(stage: Stage) -> None:
    url, (handle,) = received(stage, 1)
    for _ in range(2):
        stage.client.delete_message(QueueUrl=url, ReceiptHandle=handle)
    assert stage.attribute(url, "ApproximateNumberOfMessagesNotVisible") == "0"
    stage.refused("ReceiptHandleIsInvalid", "delete_message", QueueUrl=url, ReceiptHandle="garbage")
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "delete_message", QueueUrl=url, ReceiptHandle=handle)


def delete_message_batch(stage: Stage) -> None:
    url, (handle,) = received(stage, 1)
    entry = {"Id": "a", "ReceiptHandle": handle}
    deleted = stage.client.delete_message_batch(
        QueueUrl=url, Entries=[entry, {"Id": "b", "ReceiptHandle": "garbage"}]
    )
    assert deleted["Successful"] == [{"Id": "a"}]
    assert deleted["Failed"][0]["Code"] == "ReceiptHandleIsInvalid"
    refused_batches(stage, "delete_message_batch", url, entry)


def change_message_visibility(stage: Stage) -> None:
    url, (handle,) = received(stage, 1)
    change = {"QueueUrl": url, "ReceiptHandle": handle}
    stage.client.change_message_visibility(**change, VisibilityTimeout=0)
    assert stage.one(url)["ReceiptHandle"] != handle
    stage.refused("InvalidParameterValue", "change_message_visibility", **change, VisibilityTimeout=-1)
    stage.refused(
        "ReceiptHandleIsInvalid",
        "change_message_visibility",
        QueueUrl=url,
        ReceiptHandle="garbage",
        VisibilityTimeout=1,
    )
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "change_message_visibility", **change, VisibilityTimeout=1)


def change_message_visibility_batch(stage: Stage) -> None:
    url, (handle,) = received(stage, 1)
    entry = {"Id": "a", "ReceiptHandle": handle, "VisibilityTimeout": 0}
    changed = stage.client.change_message_visibility_batch(
        QueueUrl=url, Entries=[entry, entry | {"Id": "b", "ReceiptHandle": "garbage"}]
    )
    assert changed["Successful"] == [{"Id": "a"}]
    assert changed["Failed"][0]["Code"] == "ReceiptHandleIsInvalid"
    assert stage.one(url)
    refused_batches(stage, "change_message_visibility_batch", url, entry)

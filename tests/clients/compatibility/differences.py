"""Where the server differs from SQS on purpose: each statement stands beside the probe that shows it to be true."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import NamedTuple

from tests.clients.compatibility.message_probes import received
from tests.clients.compatibility.stage import Stage


class Difference(NamedTuple):
    """A statement for the page, and what makes it more than a statement."""

    statement: str
    probe: Callable[[Stage], None]


def a_name_is_free_again_at_once(stage: Stage) -> None:
    name = f"probe-{uuid.uuid4().hex[:12]}"
    for _ in range(2):
        stage.client.delete_queue(QueueUrl=stage.client.create_queue(QueueName=name)["QueueUrl"])


def long_delays(stage: Stage) -> None:
    url = stage.queue(DelaySeconds=3600)
    stage.client.send_message(QueueUrl=url, MessageBody="x", DelaySeconds=86_400)
    stage.client.send_message(QueueUrl=url, MessageBody="x")
    assert stage.attribute(url, "ApproximateNumberOfMessagesDelayed") == "2"
    days = 5 * 86_400
    stage.refused("InvalidParameterValue", "send_message", QueueUrl=url, MessageBody="x", DelaySeconds=days)


def long_visibility(stage: Stage) -> None:
    url, (handle,) = received(stage, 1)
    stage.client.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=86_400)
    assert stage.attribute(url, "ApproximateNumberOfMessagesNotVisible") == "1"


def other_retention(stage: Stage) -> None:
    assert stage.attribute(stage.queue(MessageRetentionPeriod=5), "MessageRetentionPeriod") == "5"
    long = 30 * 86_400
    assert stage.attribute(stage.queue(MessageRetentionPeriod=long), "MessageRetentionPeriod") == str(long)


def own_queue_attributes(stage: Stage) -> None:
    url = stage.queue(**{"Penstock.MaximumMessages": 1, "Penstock.OverflowPolicy": "reject"})
    stage.client.send_message(QueueUrl=url, MessageBody="fits")
    stage.refused("OverLimit", "send_message", QueueUrl=url, MessageBody="one too many")


def own_message_attributes(stage: Stage) -> None:
    url = stage.queue()
    for priority in ("1", "9"):
        attribute = {"Penstock.Priority": {"DataType": "Number", "StringValue": priority}}
        stage.client.send_message(QueueUrl=url, MessageBody=priority, MessageAttributes=attribute)
    assert stage.one(url)["Body"] == "9"


def keys_encrypt_nothing(stage: Stage) -> None:
    url = stage.queue(KmsMasterKeyId="alias/no-such-key", KmsDataKeyReusePeriodSeconds=600)
    stage.client.send_message(QueueUrl=url, MessageBody="x")
    assert stage.one(url)["Body"] == "x"
    assert stage.attribute(url, "KmsMasterKeyId") == "alias/no-such-key"


def exact_counts(stage: Stage) -> None:
    url = stage.queue()
    for number in range(1, 6):
        stage.client.send_message(QueueUrl=url, MessageBody="x")
        assert stage.attribute(url, "ApproximateNumberOfMessages") == str(number)


def order_of_sending(stage: Stage) -> None:
    url = stage.queue()
    for number in range(10):
        stage.client.send_message(QueueUrl=url, MessageBody=str(number))
    messages = stage.client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert [message["Body"] for message in messages] == list("0123456789")


def reason_of_death(stage: Stage) -> None:
    dead, _ = stage.dead_letters(1)
    message = stage.one(dead, AttributeNames=["All"])
    assert "Penstock.DeadLetterReason" in message["Attributes"], json.dumps(message["Attributes"])


def looking_without_taking(stage: Stage) -> None:
    url = stage.queue()
    stage.client.send_message(QueueUrl=url, MessageBody="x")
    assert stage.one(url, MessageAttributeNames=["Penstock.Peek"])["Body"] == "x"
    assert stage.attribute(url, "ApproximateNumberOfMessagesNotVisible") == "0"


DIFFERENCES = [
    Difference(
        "The name of a deleted queue is free at once. (A strict server answers `QueueDeletedRecently` for a minute.)",
        a_name_is_free_again_at_once,
    ),
    Difference(
        "`DelaySeconds` may be longer than 15 minutes, for a message and for a queue, up to the time that the queue "
        "keeps messages.",
        long_delays,
    ),
    Difference("A visibility timeout may be longer than 12 hours.", long_visibility),
    Difference(
        "`MessageRetentionPeriod` may be shorter than a minute and longer than 14 days.", other_retention
    ),
    Difference(
        "Queue attributes named `Penstock.…` set what SQS does not have, for example `Penstock.MaximumMessages`: see "
        "[queue settings](queue-settings.md). A full queue refuses sends with `OverLimit`.",
        own_queue_attributes,
    ),
    Difference(
        "The message attributes `Penstock.Priority` and `Penstock.TimeToLiveSeconds` are acted upon.",
        own_message_attributes,
    ),
    Difference(
        "`ReceiveMessage` with the message attribute name `Penstock.Peek` shows messages without receiving them.",
        looking_without_taking,
    ),
    Difference(
        "Messages in a dead-letter queue carry the system attribute `Penstock.DeadLetterReason`.",
        reason_of_death,
    ),
    Difference(
        "The attributes of KMS are accepted and returned, and encrypt nothing; no `Kms…` error is ever answered.",
        keys_encrypt_nothing,
    ),
    Difference(
        "The `Approximate…` numbers are exact, and every answer sees what was answered before it.",
        exact_counts,
    ),
    Difference("A standard queue hands out messages in the order of sending where it can.", order_of_sending),
]

"""boto3 across a server that is killed without warning: all that was answered is still so afterwards."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.clients.server import Endpoint, running
from tests.ports import free_port

ANYBODY_MAY_SEND = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}],
}


@pytest.mark.slow
def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    port = free_port()
    options = ["--listen", "127.0.0.1:0", "--sqs-listen", f"127.0.0.1:{port}", "--monitoring-listen", "off"]
    sqs = boto3.client("sqs", **Endpoint(f"http://127.0.0.1:{port}").boto_options())
    with running(tmp_path, "serve", *options, exit_code=-signal.SIGKILL) as facts:
        before = everything_set_up(sqs)
        os.kill(facts["process"], signal.SIGKILL)
    with running(tmp_path, "serve", *options):
        everything_still_there(sqs, before)
    sqs.close()


def attributes_of(sqs: Any, url: str) -> dict[str, str]:
    found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    return found


def send_once(sqs: Any, url: str) -> str:
    return str(sqs.send_message(QueueUrl=url, MessageBody="once", MessageGroupId="g")["MessageId"])


def everything_set_up(sqs: Any) -> dict[str, Any]:
    """Queues with all that they can hold, one message in each state."""
    dead = sqs.create_queue(QueueName="dead")["QueueUrl"]
    policy = {"deadLetterTargetArn": attributes_of(sqs, dead)["QueueArn"], "maxReceiveCount": 4}
    orders = sqs.create_queue(
        QueueName="orders",
        Attributes={
            "VisibilityTimeout": "600",
            "ReceiveMessageWaitTimeSeconds": "1",
            "RedrivePolicy": json.dumps(policy),
            "Policy": json.dumps(ANYBODY_MAY_SEND),
            "KmsMasterKeyId": "alias/key",
        },
        tags={"team": "coffee"},
    )["QueueUrl"]
    fifo = sqs.create_queue(
        QueueName="once.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    )["QueueUrl"]
    sent = [sqs.send_message(QueueUrl=orders, MessageBody=body)["MessageId"] for body in ("taken", "waiting")]
    sqs.send_message(QueueUrl=orders, MessageBody="delayed", DelaySeconds=600)
    (taken,) = sqs.receive_message(QueueUrl=orders)["Messages"]
    assert taken["MessageId"] == sent[0]
    first = send_once(sqs, fifo)
    (only,) = sqs.receive_message(QueueUrl=fifo)["Messages"]
    sqs.delete_message(QueueUrl=fifo, ReceiptHandle=only["ReceiptHandle"])
    return {
        "orders": orders,
        "attributes": attributes_of(sqs, orders),
        "waiting": sent[1],
        "handle": taken["ReceiptHandle"],
        "fifo": fifo,
        "first": first,
        "dead": dead,
    }


def everything_still_there(sqs: Any, before: dict[str, Any]) -> None:
    """The same answers as before the kill, and the same handles."""
    orders = before["orders"]
    assert sqs.get_queue_url(QueueName="orders")["QueueUrl"] == orders
    assert attributes_of(sqs, orders) == before["attributes"]
    assert sqs.list_queue_tags(QueueUrl=orders)["Tags"] == {"team": "coffee"}
    assert sqs.list_dead_letter_source_queues(QueueUrl=before["dead"])["queueUrls"] == [orders]
    # What was received before is still out, and its handle still good.
    (message,) = sqs.receive_message(QueueUrl=orders, MaxNumberOfMessages=10)["Messages"]
    assert (message["MessageId"], message["Body"]) == (before["waiting"], "waiting")
    sqs.delete_message(QueueUrl=orders, ReceiptHandle=before["handle"])
    found = attributes_of(sqs, orders)
    assert found["ApproximateNumberOfMessagesNotVisible"] == "1"
    assert found["ApproximateNumberOfMessagesDelayed"] == "1"
    # Sent, received and deleted before: still a duplicate.
    assert send_once(sqs, before["fifo"]) == before["first"]
    assert "Messages" not in sqs.receive_message(QueueUrl=before["fifo"])

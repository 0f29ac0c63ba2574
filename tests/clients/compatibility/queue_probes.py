"""Probes of the actions on queues: one function an action, which fails where the server differs from SQS."""

from __future__ import annotations

import json
import uuid
from base64 import b64encode

from tests.clients.compatibility.stage import MISSING, Stage

ACCOUNT = "111111111111"
PREFIX = "AWS.SimpleQueueService."


def create_queue(stage: Stage) -> None:
    name = f"probe-{uuid.uuid4().hex[:12]}"
    url = stage.client.create_queue(
        QueueName=name, Attributes={"DelaySeconds": "1"}, tags={"made": "by a probe"}
    )["QueueUrl"]
    assert stage.client.create_queue(QueueName=name)["QueueUrl"] == url
    stage.refused("QueueAlreadyExists", "create_queue", QueueName=name, Attributes={"DelaySeconds": "2"})
    stage.refused("InvalidAttributeName", "create_queue", QueueName=name, Attributes={"Nothing": "2"})
    stage.refused("InvalidAttributeValue", "create_queue", QueueName=name, Attributes={"DelaySeconds": "x"})
    stage.refused("InvalidParameterValue", "create_queue", QueueName="no spaces")
    stage.client.delete_queue(QueueUrl=url)


def get_queue_url(stage: Stage) -> None:
    url = stage.queue()
    account, name = url.rsplit("/", 2)[1:]
    found = stage.client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=account)
    assert found["QueueUrl"] == url
    stage.refused(MISSING, "get_queue_url", QueueName=f"{name}-missing")


def list_queues(stage: Stage) -> None:
    urls = sorted(stage.queue() for _ in range(2))
    name = urls[0].rsplit("/", 1)[1]
    assert stage.client.list_queues(QueueNamePrefix=name)["QueueUrls"] == urls[:1]
    first = stage.client.list_queues(QueueNamePrefix="probe-", MaxResults=1)
    second = stage.client.list_queues(QueueNamePrefix="probe-", MaxResults=1, NextToken=first["NextToken"])
    assert first["QueueUrls"] < second["QueueUrls"]
    stage.refused("InvalidParameterValue", "list_queues", MaxResults=1001)


def delete_queue(stage: Stage) -> None:
    url = stage.queue()
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "delete_queue", QueueUrl=url)


def get_queue_attributes(stage: Stage) -> None:
    url = stage.queue(FifoQueue="true")
    found = stage.client.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert found["QueueArn"].endswith(url.rsplit("/", 1)[1])
    assert found["FifoQueue"] == "true"
    assert "Attributes" not in stage.client.get_queue_attributes(QueueUrl=url)
    stage.refused("InvalidAttributeName", "get_queue_attributes", QueueUrl=url, AttributeNames=["Nothing"])
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "get_queue_attributes", QueueUrl=url, AttributeNames=["All"])


def set_queue_attributes(stage: Stage) -> None:
    url = stage.queue()
    stage.client.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "77"})
    assert stage.attribute(url, "VisibilityTimeout") == "77"
    stage.refused(
        "InvalidAttributeValue", "set_queue_attributes", QueueUrl=url, Attributes={"DelaySeconds": "x"}
    )
    stage.refused("InvalidAttributeName", "set_queue_attributes", QueueUrl=url, Attributes={"QueueArn": "x"})
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "set_queue_attributes", QueueUrl=url, Attributes={"DelaySeconds": "1"})


def purge_queue(stage: Stage) -> None:
    url = stage.queue()
    stage.client.send_message(QueueUrl=url, MessageBody="x")
    stage.client.purge_queue(QueueUrl=url)
    assert stage.attribute(url, "ApproximateNumberOfMessages") == "0"
    stage.refused(f"{PREFIX}PurgeQueueInProgress", "purge_queue", QueueUrl=url)
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "purge_queue", QueueUrl=url)


def tag_queue(stage: Stage) -> None:
    url = stage.queue()
    stage.client.tag_queue(QueueUrl=url, Tags={"a": "1", "b": ""})
    stage.client.tag_queue(QueueUrl=url, Tags={"a": "2"})
    assert stage.client.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "2", "b": ""}
    many = {str(number): "" for number in range(51)}
    stage.refused("InvalidParameterValue", "tag_queue", QueueUrl=url, Tags=many)
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "tag_queue", QueueUrl=url, Tags={"a": "1"})


def untag_queue(stage: Stage) -> None:
    url = stage.queue()
    stage.client.tag_queue(QueueUrl=url, Tags={"a": "1", "b": "2"})
    stage.client.untag_queue(QueueUrl=url, TagKeys=["a", "never"])
    assert stage.client.list_queue_tags(QueueUrl=url)["Tags"] == {"b": "2"}
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "untag_queue", QueueUrl=url, TagKeys=["a"])


def list_queue_tags(stage: Stage) -> None:
    url = stage.queue()
    assert "Tags" not in stage.client.list_queue_tags(QueueUrl=url)
    stage.client.tag_queue(QueueUrl=url, Tags={"ä": "ö"})
    assert stage.client.list_queue_tags(QueueUrl=url)["Tags"] == {"ä": "ö"}
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "list_queue_tags", QueueUrl=url)


def add_permission(stage: Stage) -> None:
    url = stage.queue()
    granted = {"QueueUrl": url, "AWSAccountIds": [ACCOUNT], "Actions": ["SendMessage"]}
    stage.client.add_permission(Label="one", **granted)
    policy = json.loads(str(stage.attribute(url, "Policy")))
    assert policy["Statement"][0]["Principal"] == {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    stage.refused("InvalidParameterValue", "add_permission", Label="one", **granted)
    stage.refused("OverLimit", "add_permission", Label="two", **granted | {"Actions": EIGHT})
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "add_permission", Label="two", **granted)


EIGHT = [
    *("SendMessage", "ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"),
    *("GetQueueAttributes", "GetQueueUrl", "PurgeQueue", "ListDeadLetterSourceQueues"),
]


def remove_permission(stage: Stage) -> None:
    url = stage.queue()
    stage.client.add_permission(QueueUrl=url, Label="one", AWSAccountIds=[ACCOUNT], Actions=["*"])
    stage.client.remove_permission(QueueUrl=url, Label="one")
    assert stage.attribute(url, "Policy") is None
    stage.refused("InvalidParameterValue", "remove_permission", QueueUrl=url, Label="one")
    stage.client.delete_queue(QueueUrl=url)
    stage.refused(MISSING, "remove_permission", QueueUrl=url, Label="one")


def list_dead_letter_source_queues(stage: Stage) -> None:
    dead = stage.queue()
    policy = json.dumps({"deadLetterTargetArn": stage.arn(dead), "maxReceiveCount": 3})
    sources = {stage.queue(RedrivePolicy=policy) for _ in range(2)}
    first = stage.client.list_dead_letter_source_queues(QueueUrl=dead, MaxResults=1)
    second = stage.client.list_dead_letter_source_queues(
        QueueUrl=dead, MaxResults=1, NextToken=first["NextToken"]
    )
    assert {*first["queueUrls"], *second["queueUrls"]} == sources
    stage.client.delete_queue(QueueUrl=dead)
    stage.refused(MISSING, "list_dead_letter_source_queues", QueueUrl=dead)


def start_message_move_task(stage: Stage) -> None:
    dead, source = stage.dead_letters(3)
    arn = stage.arn(dead)
    started = stage.client.start_message_move_task(
        SourceArn=arn, DestinationArn=stage.arn(source), MaxNumberOfMessagesPerSecond=500
    )
    assert started["TaskHandle"]
    assert stage.finished_move(arn)["Status"] == "COMPLETED"
    assert stage.attribute(source, "ApproximateNumberOfMessages") == "3"
    stage.refused("InvalidParameterValue", "start_message_move_task", SourceArn=stage.arn(source))
    stage.refused("ResourceNotFoundException", "start_message_move_task", SourceArn=f"{arn}-missing")


def list_message_move_tasks(stage: Stage) -> None:
    dead, _ = stage.dead_letters(2)
    arn = stage.arn(dead)
    assert not stage.client.list_message_move_tasks(SourceArn=arn).get("Results")
    stage.client.start_message_move_task(SourceArn=arn)
    task = stage.finished_move(arn)
    assert task["ApproximateNumberOfMessagesMoved"] == 2
    assert task["StartedTimestamp"] > 0
    stage.refused("ResourceNotFoundException", "list_message_move_tasks", SourceArn=f"{arn}-missing")


def cancel_message_move_task(stage: Stage) -> None:
    dead, _ = stage.dead_letters(5)
    arn = stage.arn(dead)
    handle = stage.client.start_message_move_task(SourceArn=arn, MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    moved = stage.client.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    assert moved < 5
    assert stage.finished_move(arn)["Status"] == "CANCELLED"
    stage.refused("InvalidParameterValue", "cancel_message_move_task", TaskHandle="garbage")
    unknown = json.dumps({"taskId": str(uuid.uuid4()), "sourceArn": arn}).encode()
    text = stage.refused(
        "ResourceNotFoundException", "cancel_message_move_task", TaskHandle=b64encode(unknown).decode()
    )
    assert text == "Task does not exist."

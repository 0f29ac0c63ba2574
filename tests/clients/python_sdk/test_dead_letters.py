"""boto3: redrive policies, dead-letter queues, and the tasks that move messages back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

MakeQueue = Callable[..., str]
MOVE_SECONDS = 60


def arn_of(sqs: Any, url: str) -> str:
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
    return str(found["Attributes"]["QueueArn"])


def redrive(arn: str, receives: int | str = 1) -> str:
    return json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": receives})


def waiting(sqs: Any, url: str) -> int:
    name = "ApproximateNumberOfMessages"
    return int(sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name])


@pytest.fixture
def dead(make_queue: MakeQueue) -> str:
    return make_queue("dead")


@pytest.fixture
def source(sqs: Any, make_queue: MakeQueue, dead: str) -> str:
    return make_queue("source", VisibilityTimeout=0, RedrivePolicy=redrive(arn_of(sqs, dead)))


def kill(sqs: Any, source: str, count: int) -> list[str]:
    """Sends messages and receives them until all are dead; returns their ids."""
    ids = [sqs.send_message(QueueUrl=source, MessageBody=f"m{n}")["MessageId"] for n in range(count)]
    for _ in range(count * 3):
        if not sqs.receive_message(QueueUrl=source, MaxNumberOfMessages=10).get("Messages"):
            return ids
    raise AssertionError("the messages did not die")


def finished(sqs: Any, arn: str) -> dict[str, Any]:
    """The newest move task once it no longer runs."""
    until = time.monotonic() + MOVE_SECONDS
    while time.monotonic() < until:
        newest: dict[str, Any] = sqs.list_message_move_tasks(SourceArn=arn)["Results"][0]
        if newest["Status"] not in {"RUNNING", "CANCELLING"}:
            return newest
    raise AssertionError("the task did not end")


def test_a_message_received_too_often_moves_to_the_dead_letter_queue(
    sqs: Any, source: str, dead: str
) -> None:
    (sent,) = kill(sqs, source, 1)
    (message,) = sqs.receive_message(QueueUrl=dead, AttributeNames=["All"], WaitTimeSeconds=5)["Messages"]
    assert message["MessageId"] == sent
    assert message["Attributes"]["DeadLetterQueueSourceArn"] == arn_of(sqs, source)
    assert message["Attributes"]["ApproximateReceiveCount"] == "2"


def test_the_policy_is_read_back_listed_and_removed(sqs: Any, source: str, dead: str) -> None:
    found = sqs.get_queue_attributes(QueueUrl=source, AttributeNames=["RedrivePolicy"])["Attributes"]
    assert json.loads(found["RedrivePolicy"]) == {
        "deadLetterTargetArn": arn_of(sqs, dead),
        "maxReceiveCount": 1,
    }
    assert sqs.list_dead_letter_source_queues(QueueUrl=dead)["queueUrls"] == [source]
    sqs.set_queue_attributes(QueueUrl=source, Attributes={"RedrivePolicy": ""})
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=source, AttributeNames=["RedrivePolicy"])
    assert not sqs.list_dead_letter_source_queues(QueueUrl=dead).get("queueUrls")


def test_the_sources_come_in_pages(sqs: Any, make_queue: MakeQueue, dead: str) -> None:
    policy = redrive(arn_of(sqs, dead), "5")
    urls = {make_queue("source", RedrivePolicy=policy) for _ in range(5)}
    pages = list(
        sqs.get_paginator("list_dead_letter_source_queues").paginate(
            QueueUrl=dead, PaginationConfig={"PageSize": 2}
        )
    )
    assert [len(page["queueUrls"]) for page in pages] == [2, 2, 1]
    assert {url for page in pages for url in page["queueUrls"]} == urls


def test_the_target_must_exist_be_of_the_same_kind_and_agree(
    sqs: Any, queue: str, fifo: str, make_queue: MakeQueue
) -> None:
    closed = make_queue("closed", RedriveAllowPolicy=json.dumps({"redrivePermission": "denyAll"}))
    for policy in (
        redrive("arn:aws:sqs:us-east-1:000000000000:never-made"),
        redrive(arn_of(sqs, fifo)),
        redrive(arn_of(sqs, closed)),
        redrive(arn_of(sqs, queue), 0),
        json.dumps({"maxReceiveCount": 1}),
        "{",
    ):
        with pytest.raises(ClientError) as caught:
            sqs.set_queue_attributes(QueueUrl=queue, Attributes={"RedrivePolicy": policy})
        assert caught.value.response["Error"]["Code"] in {"InvalidParameterValue", "InvalidAttributeValue"}


def test_dead_letters_go_back_where_they_died(sqs: Any, source: str, dead: str) -> None:
    kill(sqs, source, 5)
    assert waiting(sqs, dead) == 5
    arn = arn_of(sqs, dead)
    assert sqs.start_message_move_task(SourceArn=arn)["TaskHandle"]
    task = finished(sqs, arn)
    assert task["Status"] == "COMPLETED"
    assert task["SourceArn"] == arn
    assert "DestinationArn" not in task
    assert task["ApproximateNumberOfMessagesMoved"] == 5
    assert abs(task["StartedTimestamp"] / 1000 - time.time()) < 120
    assert (waiting(sqs, dead), waiting(sqs, source)) == (0, 5)


def test_dead_letters_can_go_elsewhere(sqs: Any, source: str, dead: str, queue: str) -> None:
    kill(sqs, source, 3)
    arn, elsewhere = arn_of(sqs, dead), arn_of(sqs, queue)
    sqs.start_message_move_task(SourceArn=arn, DestinationArn=elsewhere, MaxNumberOfMessagesPerSecond=500)
    task = finished(sqs, arn)
    assert (task["Status"], task["DestinationArn"]) == ("COMPLETED", elsewhere)
    assert task["MaxNumberOfMessagesPerSecond"] == 500
    assert (waiting(sqs, dead), waiting(sqs, queue)) == (0, 3)


def test_a_slow_move_can_be_cancelled(sqs: Any, source: str, dead: str) -> None:
    kill(sqs, source, 20)
    arn = arn_of(sqs, dead)
    handle = sqs.start_message_move_task(SourceArn=arn, MaxNumberOfMessagesPerSecond=1)["TaskHandle"]
    (running,) = sqs.list_message_move_tasks(SourceArn=arn, MaxResults=10)["Results"]
    assert (running["Status"], running["TaskHandle"]) == ("RUNNING", handle)
    with pytest.raises(ClientError) as caught:
        sqs.start_message_move_task(SourceArn=arn)
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"
    assert "already a task running" in caught.value.response["Error"]["Message"]
    moved = sqs.cancel_message_move_task(TaskHandle=handle)["ApproximateNumberOfMessagesMoved"]
    assert 0 <= moved < 20
    assert finished(sqs, arn)["Status"] == "CANCELLED"
    assert waiting(sqs, dead) + waiting(sqs, source) == 20
    assert waiting(sqs, dead) >= 10


def test_moves_that_cannot_be(sqs: Any, queue: str, dead: str, source: str) -> None:
    never = "arn:aws:sqs:us-east-1:000000000000:never-made"
    with pytest.raises(ClientError) as caught:
        sqs.start_message_move_task(SourceArn=arn_of(sqs, queue))
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"
    assert (
        caught.value.response["Error"]["Message"] == "Source queue must be configured as a Dead Letter Queue."
    )
    calls: list[Callable[[], object]] = [
        lambda: sqs.start_message_move_task(SourceArn=never),
        lambda: sqs.start_message_move_task(SourceArn=arn_of(sqs, dead), DestinationArn=never),
        lambda: sqs.list_message_move_tasks(SourceArn=never),
    ]
    for call in calls:
        with pytest.raises(sqs.exceptions.ResourceNotFoundException) as caught:
            call()
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 404
    with pytest.raises(ClientError) as caught:
        sqs.cancel_message_move_task(TaskHandle="garbage")
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"
    assert not sqs.list_message_move_tasks(SourceArn=arn_of(sqs, dead)).get("Results")

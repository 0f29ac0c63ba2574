"""boto3: the actions on queues themselves."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

MakeQueue = Callable[..., str]


def new_name(prefix: str = "queue") -> str:
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def attributes_of(sqs: Any, url: str, *names: str) -> dict[str, str]:
    found: dict[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=list(names or ("All",)))[
        "Attributes"
    ]
    return found


# --- create, find, delete -----------------------------------------------------------------------------------


def test_a_created_queue_is_found_by_name_and_url(sqs: Any) -> None:
    name = new_name()
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    assert url.endswith(f"/000000000000/{name}")
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == url
    assert sqs.get_queue_url(QueueName=name, QueueOwnerAWSAccountId="000000000000")["QueueUrl"] == url
    assert sqs.list_queues(QueueNamePrefix=name)["QueueUrls"] == [url]
    sqs.delete_queue(QueueUrl=url)
    assert "QueueUrls" not in sqs.list_queues(QueueNamePrefix=name)


def test_creating_again_is_idempotent_unless_a_value_differs(sqs: Any) -> None:
    name = new_name()
    url = sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "1"})["QueueUrl"]
    assert sqs.create_queue(QueueName=name)["QueueUrl"] == url
    assert sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "1"})["QueueUrl"] == url
    with pytest.raises(sqs.exceptions.QueueNameExists) as caught:
        sqs.create_queue(QueueName=name, Attributes={"DelaySeconds": "2"})
    assert caught.value.response["Error"]["Code"] == "QueueAlreadyExists"
    assert (
        "already exists with the same name and a different value for attribute DelaySeconds"
        in caught.value.response["Error"]["Message"]
    )
    sqs.delete_queue(QueueUrl=url)


@pytest.mark.parametrize("name", ["", "with space", "a/b", "x" * 81, "dotted.name", "standard.fifo"])
def test_bad_names_are_refused(sqs: Any, name: str) -> None:
    with pytest.raises(ClientError) as caught:
        sqs.create_queue(QueueName=name)
    assert caught.value.response["Error"]["Code"] in {"InvalidParameterValue", "MissingParameter"}
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_a_fifo_queue_needs_its_suffix(sqs: Any) -> None:
    with pytest.raises(ClientError) as caught:
        sqs.create_queue(QueueName=new_name(), Attributes={"FifoQueue": "true"})
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"


def test_every_action_on_a_queue_that_does_not_exist_says_so(sqs: Any, endpoint: str) -> None:
    url = f"{endpoint}/000000000000/{new_name('missing')}"
    calls: list[Callable[[], object]] = [
        lambda: sqs.get_queue_url(QueueName=new_name("missing")),
        lambda: sqs.delete_queue(QueueUrl=url),
        lambda: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"]),
        lambda: sqs.set_queue_attributes(QueueUrl=url, Attributes={"DelaySeconds": "1"}),
        lambda: sqs.purge_queue(QueueUrl=url),
        lambda: sqs.send_message(QueueUrl=url, MessageBody="x"),
        lambda: sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": "a", "MessageBody": "x"}]),
        lambda: sqs.receive_message(QueueUrl=url),
        lambda: sqs.list_queue_tags(QueueUrl=url),
        lambda: sqs.tag_queue(QueueUrl=url, Tags={"a": "b"}),
        lambda: sqs.untag_queue(QueueUrl=url, TagKeys=["a"]),
        lambda: sqs.list_dead_letter_source_queues(QueueUrl=url),
        lambda: sqs.remove_permission(QueueUrl=url, Label="l"),
    ]
    for call in calls:
        with pytest.raises(sqs.exceptions.QueueDoesNotExist) as caught:
            call()
        error = caught.value.response["Error"]
        assert error["Code"] == "AWS.SimpleQueueService.NonExistentQueue"
        assert error["Message"].startswith("The specified queue does not exist")
        assert caught.value.response["ResponseMetadata"]["RequestId"]


def test_listing_comes_in_pages(sqs: Any, make_queue: MakeQueue) -> None:
    prefix = new_name("paged")
    urls = sorted(make_queue(prefix) for _ in range(7))
    first = sqs.list_queues(QueueNamePrefix=prefix, MaxResults=3)
    assert first["QueueUrls"] == urls[:3]
    assert first["NextToken"]
    pages = list(
        sqs.get_paginator("list_queues").paginate(QueueNamePrefix=prefix, PaginationConfig={"PageSize": 3})
    )
    assert [url for page in pages for url in page["QueueUrls"]] == urls
    assert [len(page["QueueUrls"]) for page in pages] == [3, 3, 1]
    assert "NextToken" not in pages[-1]
    assert "NextToken" not in sqs.list_queues(QueueNamePrefix=prefix, MaxResults=7)


# --- attributes ---------------------------------------------------------------------------------------------


def test_a_new_queue_has_the_defaults_of_sqs(sqs: Any, queue: str) -> None:
    found = attributes_of(sqs, queue)
    name = queue.rsplit("/", 1)[1]
    created = found.pop("CreatedTimestamp")
    assert abs(int(created) - time.time()) < 120
    assert found.pop("LastModifiedTimestamp") == created
    assert found == {
        "QueueArn": f"arn:aws:sqs:us-east-1:000000000000:{name}",
        "ApproximateNumberOfMessages": "0",
        "ApproximateNumberOfMessagesNotVisible": "0",
        "ApproximateNumberOfMessagesDelayed": "0",
        "VisibilityTimeout": "30",
        "MaximumMessageSize": "1048576",
        "MessageRetentionPeriod": "345600",
        "DelaySeconds": "0",
        "ReceiveMessageWaitTimeSeconds": "0",
        "SqsManagedSseEnabled": "true",
    }


def test_a_new_fifo_queue_says_what_it_is(sqs: Any, fifo: str) -> None:
    found = attributes_of(sqs, fifo)
    assert found["FifoQueue"] == "true"
    assert found["ContentBasedDeduplication"] == "false"
    assert found["DeduplicationScope"] == "queue"
    assert found["FifoThroughputLimit"] == "perQueue"


def test_attributes_are_set_and_read_back(sqs: Any, queue: str) -> None:
    values = {
        "VisibilityTimeout": "120",
        "DelaySeconds": "5",
        "MaximumMessageSize": "2048",
        "MessageRetentionPeriod": "60",
        "ReceiveMessageWaitTimeSeconds": "20",
        "KmsMasterKeyId": "alias/aws/sqs",
        "KmsDataKeyReusePeriodSeconds": "600",
    }
    sqs.set_queue_attributes(QueueUrl=queue, Attributes=values)
    found = attributes_of(sqs, queue)
    assert {name: found[name] for name in values} == values
    assert found["SqsManagedSseEnabled"] == "false"
    assert attributes_of(sqs, queue, "DelaySeconds") == {"DelaySeconds": "5"}


def test_asking_for_nothing_or_for_what_is_unset_gives_no_attributes(sqs: Any, queue: str) -> None:
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue)
    assert "Attributes" not in sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["RedrivePolicy"])


def test_unknown_attribute_names_are_refused(sqs: Any, queue: str) -> None:
    with pytest.raises(sqs.exceptions.InvalidAttributeName) as caught:
        sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["Foobar"])
    assert caught.value.response["Error"]["Message"] == "Unknown Attribute Foobar."
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Foobar": "1"})
    with pytest.raises(sqs.exceptions.InvalidAttributeName):
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"QueueArn": "x"})
    with pytest.raises(sqs.exceptions.InvalidAttributeName) as caught:
        sqs.create_queue(QueueName=new_name(), Attributes={"FifoQueue": "false"})
    assert caught.value.response["Error"]["Message"] == "Unknown Attribute FifoQueue."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ReceiveMessageWaitTimeSeconds", "21"),
        ("MaximumMessageSize", "1023"),
        ("MessageRetentionPeriod", "0"),
        ("DelaySeconds", "soon"),
        ("VisibilityTimeout", "-1"),
        ("SqsManagedSseEnabled", "perhaps"),
        ("Policy", "{not json"),
    ],
)
def test_bad_attribute_values_are_refused_and_change_nothing(
    sqs: Any, queue: str, name: str, value: str
) -> None:
    before = attributes_of(sqs, queue)
    with pytest.raises(ClientError) as caught:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"KmsMasterKeyId": "key", name: value})
    assert caught.value.response["Error"]["Code"] in {"InvalidAttributeValue", "InvalidAttributeName"}
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert attributes_of(sqs, queue) == before


def test_a_bad_attribute_value_has_its_own_class(sqs: Any, queue: str) -> None:
    with pytest.raises(ClientError) as caught:
        sqs.set_queue_attributes(QueueUrl=queue, Attributes={"DelaySeconds": "soon"})
    assert caught.value.response["Error"]["Code"] == "InvalidAttributeValue"
    assert "DelaySeconds" in caught.value.response["Error"]["Message"]


# --- purge, tags --------------------------------------------------------------------------------------------


def test_purge_removes_everything_once_a_minute(sqs: Any, queue: str) -> None:
    for number in range(3):
        sqs.send_message(QueueUrl=queue, MessageBody=str(number))
    sqs.send_message(QueueUrl=queue, MessageBody="later", DelaySeconds=600)
    sqs.receive_message(QueueUrl=queue)
    sqs.purge_queue(QueueUrl=queue)
    found = attributes_of(sqs, queue)
    assert found["ApproximateNumberOfMessages"] == "0"
    assert found["ApproximateNumberOfMessagesNotVisible"] == "0"
    assert found["ApproximateNumberOfMessagesDelayed"] == "0"
    with pytest.raises(sqs.exceptions.PurgeQueueInProgress) as caught:
        sqs.purge_queue(QueueUrl=queue)
    name = queue.rsplit("/", 1)[1]
    assert caught.value.response["Error"]["Message"] == (
        f"Only one PurgeQueue operation on {name} is allowed every 60 seconds."
    )
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_tags_are_merged_listed_and_removed(sqs: Any, queue: str) -> None:
    assert "Tags" not in sqs.list_queue_tags(QueueUrl=queue)
    sqs.tag_queue(QueueUrl=queue, Tags={"team": "coffee", "Team": "tea", "empty": ""})
    sqs.tag_queue(QueueUrl=queue, Tags={"team": "juice", "ünï": "cödé"})
    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {
        "team": "juice",
        "Team": "tea",
        "empty": "",
        "ünï": "cödé",
    }
    sqs.untag_queue(QueueUrl=queue, TagKeys=["team", "empty", "never-set"])
    assert sqs.list_queue_tags(QueueUrl=queue)["Tags"] == {"Team": "tea", "ünï": "cödé"}


def test_tags_can_be_given_at_creation_and_are_bounded(sqs: Any) -> None:
    name = new_name()
    url = sqs.create_queue(QueueName=name, tags={"stage": "test"})["QueueUrl"]
    assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"stage": "test"}
    with pytest.raises(ClientError) as caught:
        sqs.tag_queue(QueueUrl=url, Tags={f"key{number}": "v" for number in range(50)})
    assert caught.value.response["Error"]["Code"] == "InvalidParameterValue"
    assert caught.value.response["Error"]["Message"] == f"Too many tags added for queue {name}."
    sqs.delete_queue(QueueUrl=url)

"""boto3: accounts side by side, two front ends before one server, and requests that are signed wrongly."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.clients.server import Endpoint

HEARD_SECONDS = 60


def client_of(endpoint: Endpoint) -> Any:
    return boto3.client("sqs", **endpoint.boto_options())


def test_an_access_key_of_twelve_digits_is_an_account(sqs_endpoint: Endpoint) -> None:
    one, other = (client_of(sqs_endpoint._replace(access_key=digits * 12)) for digits in "12")
    name = f"accounts-{uuid.uuid4().hex[:12]}"
    url = one.create_queue(QueueName=name)["QueueUrl"]
    assert url.endswith(f"/111111111111/{name}")
    with pytest.raises(other.exceptions.QueueDoesNotExist):
        other.get_queue_url(QueueName=name)
    assert other.create_queue(QueueName=name)["QueueUrl"].endswith(f"/222222222222/{name}")
    one.send_message(QueueUrl=url, MessageBody="mine")
    own = other.get_queue_url(QueueName=name)["QueueUrl"]
    assert "Messages" not in other.receive_message(QueueUrl=own)
    for client in (one, other):
        client.close()


def test_two_front_ends_are_one_service(apart_endpoints: tuple[Endpoint, Endpoint]) -> None:
    one, other = map(client_of, apart_endpoints)
    name = f"apart-{uuid.uuid4().hex[:12]}.fifo"
    made = one.create_queue(QueueName=name, Attributes={"FifoQueue": "true"}, tags={"made": "by one"})[
        "QueueUrl"
    ]
    url = other.get_queue_url(QueueName=name)["QueueUrl"]
    assert url.rsplit("/", 2)[1:] == made.rsplit("/", 2)[1:]
    # Messages are the server's and seen by both at once; what SQS adds to a queue reaches the other in a moment.
    until = time.monotonic() + HEARD_SECONDS
    while (tags := other.list_queue_tags(QueueUrl=url).get("Tags")) is None:
        assert time.monotonic() < until, "the other front end never heard of the tags"
    assert tags == {"made": "by one"}
    message = {"MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    first = one.send_message(QueueUrl=url, **message)
    second = other.send_message(QueueUrl=url, **message)
    assert second["MessageId"] == first["MessageId"]
    (received,) = other.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    one.delete_message(QueueUrl=url, ReceiptHandle=received["ReceiptHandle"])
    found = other.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    assert found["ApproximateNumberOfMessages"] == found["ApproximateNumberOfMessagesNotVisible"] == "0"
    for client in (one, other):
        client.close()


def test_a_deny_in_the_policy_of_a_queue_does_not_bind_its_root(guarded_endpoint: Endpoint) -> None:
    sqs = client_of(guarded_endpoint)
    url = sqs.create_queue(QueueName=f"closed-{uuid.uuid4().hex[:12]}")["QueueUrl"]
    deny = {"Effect": "Deny", "Principal": "*", "Action": "sqs:*", "Resource": "*"}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [deny]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    sqs.send_message(QueueUrl=url, MessageBody="the root is never locked out")
    sqs.delete_queue(QueueUrl=url)
    sqs.close()


def test_a_request_that_was_signed_wrongly_is_refused(guarded_endpoint: Endpoint) -> None:
    for wrong, code in (
        (guarded_endpoint._replace(secret="wrong"), "SignatureDoesNotMatch"),
        (guarded_endpoint._replace(access_key="AKIAIOSFODNN7EXAMPLE"), "InvalidClientTokenId"),
    ):
        sqs = client_of(wrong)
        with pytest.raises(ClientError) as caught:
            sqs.list_queues()
        assert caught.value.response["Error"]["Code"] == code
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
        sqs.close()

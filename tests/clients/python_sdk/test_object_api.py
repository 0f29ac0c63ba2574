"""boto3: the resource API, addresses in all their forms, and presigned requests."""

from __future__ import annotations

import urllib.request
import uuid
from typing import Any
from xml.etree.ElementTree import fromstring

import boto3
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

NAMESPACE = "{http://queue.amazonaws.com/doc/2012-11-05/}"


def test_the_object_api_does_the_whole_round(resource: Any) -> None:
    name = f"objects-{uuid.uuid4().hex[:12]}"
    queue = resource.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "45"})
    assert queue.attributes["VisibilityTimeout"] == "45"
    assert [found.url for found in resource.queues.filter(QueueNamePrefix=name)] == [queue.url]
    assert resource.get_queue_by_name(QueueName=name) == queue
    queue.send_message(
        MessageBody="hello", MessageAttributes={"a": {"DataType": "String", "StringValue": "v"}}
    )
    queue.send_messages(Entries=[{"Id": "1", "MessageBody": "two"}, {"Id": "2", "MessageBody": "three"}])
    messages = queue.receive_messages(
        MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"], WaitTimeSeconds=5
    )
    assert [message.body for message in messages] == ["hello", "two", "three"]
    assert messages[0].message_attributes["a"]["StringValue"] == "v"
    assert messages[0].attributes["ApproximateReceiveCount"] == "1"
    messages[0].change_visibility(VisibilityTimeout=0)
    (again,) = queue.receive_messages(WaitTimeSeconds=5)
    again.delete()
    queue.delete_messages(
        Entries=[
            {"Id": str(number), "ReceiptHandle": message.receipt_handle}
            for number, message in enumerate(messages[1:])
        ]
    )
    queue.reload()
    assert queue.attributes["ApproximateNumberOfMessagesNotVisible"] == "0"
    queue.add_permission(Label="l", AWSAccountIds=["111111111111"], Actions=["SendMessage"])
    queue.remove_permission(Label="l")
    queue.set_attributes(Attributes={"DelaySeconds": "0"})
    assert list(queue.dead_letter_source_queues.all()) == []
    queue.purge()
    queue.delete()
    assert list(resource.queues.filter(QueueNamePrefix=name)) == []


def test_a_queue_is_addressed_by_url_or_name(sqs: Any, queue: str) -> None:
    name = queue.rsplit("/", 1)[1]
    # Older SDKs send every request to the host of the queue URL, so there they take nothing but a URL.
    forms = [queue, f"{queue.rsplit('/', 2)[0]}/000000000000/{name}"]
    if str(sqs.meta.service_model.metadata["protocol"]) == "json":
        forms += [name, f"https://sqs.us-east-1.amazonaws.com/000000000000/{name}"]
    for form in forms:
        sqs.send_message(QueueUrl=form, MessageBody=form)
    messages = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=5)["Messages"]
    assert [message["Body"] for message in messages] == forms


def test_regions_are_apart(options: dict[str, Any], sqs: Any, queue: str) -> None:
    elsewhere = boto3.client("sqs", **options | {"region_name": "eu-central-1"})
    name = queue.rsplit("/", 1)[1]
    with pytest.raises(elsewhere.exceptions.QueueDoesNotExist):
        elsewhere.get_queue_url(QueueName=name)
    url = elsewhere.create_queue(QueueName=name)["QueueUrl"]
    found = elsewhere.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
    assert found["QueueArn"] == f"arn:aws:sqs:eu-central-1:000000000000:{name}"
    elsewhere.send_message(QueueUrl=url, MessageBody="over there")
    assert "Messages" not in sqs.receive_message(QueueUrl=queue)
    elsewhere.delete_queue(QueueUrl=url)
    elsewhere.close()


def presigned(sqs: Any, options: dict[str, Any], queue: str, body: str) -> str:
    """An address that sends a message when it is fetched, signed by botocore."""
    if str(sqs.meta.service_model.metadata["protocol"]) == "query":
        arguments = {"QueueUrl": queue, "MessageBody": body}
        return str(sqs.generate_presigned_url("send_message", Params=arguments, HttpMethod="GET"))
    # With the JSON protocol boto3 would leave the action out of the address, so its signer is called here.
    parameters = {"Action": "SendMessage", "MessageBody": body, "Version": "2012-11-05"}
    request = AWSRequest("GET", queue, params=parameters)
    credentials = Credentials(options["aws_access_key_id"], options["aws_secret_access_key"])
    SigV4QueryAuth(credentials, "sqs", "us-east-1", expires=60).add_auth(request)
    return str(request.prepare().url)


def test_a_presigned_url_needs_no_sdk(sqs: Any, options: dict[str, Any], queue: str) -> None:
    with urllib.request.urlopen(presigned(sqs, options, queue, "hello & bye"), timeout=30) as answer:
        assert answer.status == 200
        assert answer.headers["x-amzn-RequestId"]
        tree = fromstring(answer.read())
    assert tree.tag == f"{NAMESPACE}SendMessageResponse"
    identifier = tree.findtext(f"{NAMESPACE}SendMessageResult/{NAMESPACE}MessageId")
    (message,) = sqs.receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    assert (message["Body"], message["MessageId"]) == ("hello & bye", identifier)

"""SQS's own limits, kept by a strict server and gone beyond by the default one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.clients.server import Endpoint


@pytest.fixture(params=["strict_endpoint", "sqs_endpoint"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[Any, bool]]:
    """A client, and whether its server is strict."""
    endpoint: Endpoint = request.getfixturevalue(request.param)
    client = boto3.client("sqs", **endpoint.boto_options())
    yield client, request.param == "strict_endpoint"
    client.close()


BEYOND_SQS: list[tuple[str, str, dict[str, Any], str]] = [
    (
        "send_message",
        "InvalidParameterValue",
        {"MessageBody": "x", "DelaySeconds": 901},
        "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.",
    ),
    (
        "receive_message",
        "InvalidParameterValue",
        {"VisibilityTimeout": 43_201},
        "Value 43201 for parameter VisibilityTimeout is invalid. Reason: Must be >= 0 and <= 43200, if provided.",
    ),
    *(
        (
            "set_queue_attributes",
            "InvalidAttributeValue",
            {"Attributes": {name: value}},
            f"Invalid value for the parameter {name}.",
        )
        for name, value in (
            ("DelaySeconds", "901"),
            ("VisibilityTimeout", "43201"),
            ("MessageRetentionPeriod", "59"),
            ("MessageRetentionPeriod", "1209601"),
        )
    ),
    (
        "set_queue_attributes",
        "InvalidAttributeName",
        {"Attributes": {"Penstock.MaximumMessages": "5"}},
        "Unknown Attribute Penstock.MaximumMessages.",
    ),
]


@pytest.mark.parametrize(("action", "code", "arguments", "text"), BEYOND_SQS)
def test_only_a_strict_server_keeps_the_limits_of_sqs(
    server: tuple[Any, bool], action: str, code: str, arguments: dict[str, Any], text: str
) -> None:
    sqs, strict = server
    url = sqs.create_queue(QueueName=f"limits-{uuid.uuid4().hex[:12]}")["QueueUrl"]
    if strict:
        with pytest.raises(ClientError) as caught:
            getattr(sqs, action)(QueueUrl=url, **arguments)
        assert caught.value.response["Error"]["Code"] == code
        assert caught.value.response["Error"]["Message"] == text
    else:
        getattr(sqs, action)(QueueUrl=url, **arguments)
    sqs.delete_queue(QueueUrl=url)


def test_only_a_strict_server_lets_a_name_rest(server: tuple[Any, bool]) -> None:
    sqs, strict = server
    name = f"resting-{uuid.uuid4().hex[:12]}"
    sqs.delete_queue(QueueUrl=sqs.create_queue(QueueName=name)["QueueUrl"])
    if strict:
        with pytest.raises(sqs.exceptions.QueueDeletedRecently) as caught:
            sqs.create_queue(QueueName=name)
        assert "You must wait 60 seconds" in caught.value.response["Error"]["Message"]
    else:
        assert sqs.create_queue(QueueName=name)["QueueUrl"]

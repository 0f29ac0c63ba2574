"""What the boto3 tests share. They run twice: here with today's boto3 (JSON), and once more inside the
environment of an old boto3 that speaks the Query protocol, so nothing of Penstock is imported.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config

MakeQueue = Callable[..., str]


GIVEN = os.environ.get("PENSTOCK_SQS_ENDPOINT")
"""The server that whoever started this run wants tested; the credentials are in AWS's own variables."""


SERVERS = ["sqs_endpoint", "guarded_endpoint", "apart_endpoint"]
"""One that takes any credentials, one that checks signatures, and a front end apart from its server."""


@pytest.fixture(scope="session", params=["given"] if GIVEN else SERVERS)
def options(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How boto3 finds the server."""
    if request.param == "given":
        found = {
            "endpoint_url": GIVEN,
            "region_name": "us-east-1",
            "aws_access_key_id": os.environ.get("AWS_ACCESS_KEY_ID", "test"),
            "aws_secret_access_key": os.environ.get("AWS_SECRET_ACCESS_KEY", "test"),
        }
    else:
        found = request.getfixturevalue(request.param).boto_options()
    # A test that needs a second try is a failed test.
    return found | {"config": Config(retries={"total_max_attempts": 1})}


@pytest.fixture(scope="session")
def endpoint(options: dict[str, Any]) -> str:
    """The address of the server."""
    return str(options["endpoint_url"])


@pytest.fixture(scope="session")
def sqs(options: dict[str, Any]) -> Iterator[Any]:
    """A boto3 client."""
    client = boto3.client("sqs", **options)
    yield client
    client.close()


@pytest.fixture(scope="session")
def resource(options: dict[str, Any]) -> Any:
    """The object API of boto3."""
    return boto3.resource("sqs", **options)


@pytest.fixture
def make_queue(sqs: Any) -> Iterator[MakeQueue]:
    """Makes queues that are deleted when the test is over."""
    made = []

    def make(prefix: str = "queue", **attributes: object) -> str:
        name = unique_name(prefix)
        if str(attributes.get("FifoQueue")) == "true":
            name += ".fifo"
        values = {key: str(value) for key, value in attributes.items()}
        url: str = sqs.create_queue(QueueName=name, Attributes=values)["QueueUrl"]
        made.append(url)
        return url

    yield make
    for url in made:
        try:
            sqs.delete_queue(QueueUrl=url)
        except sqs.exceptions.QueueDoesNotExist:
            pass


def unique_name(prefix: str) -> str:
    """A queue name that no other test uses."""
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def queue(make_queue: MakeQueue) -> str:
    """The URL of a standard queue with default attributes."""
    return make_queue()


@pytest.fixture
def fifo(make_queue: MakeQueue) -> str:
    """The URL of a FIFO queue without content-based deduplication."""
    return make_queue("ordered", FifoQueue="true")

"""What the boto3 tests share. They run twice: here with today's boto3 (JSON), and once more inside the
environment of an old boto3 that speaks the Query protocol, so nothing of Penstock is imported.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import boto3  # type: ignore[import-untyped]
import pytest
from botocore.config import Config  # type: ignore[import-untyped]

MakeQueue = Callable[..., str]


@pytest.fixture(scope="session")
def endpoint(request: pytest.FixtureRequest) -> str:
    """The server under test: given by whoever started this run, else started by it."""
    given = os.environ.get("PENSTOCK_SQS_ENDPOINT")
    return given if given is not None else str(request.getfixturevalue("sqs_endpoint"))


def _options(endpoint: str) -> dict[str, Any]:
    return {
        "endpoint_url": endpoint,
        "region_name": "us-east-1",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        # A test that needs a second try is a failed test.
        "config": Config(retries={"total_max_attempts": 1}),
    }


@pytest.fixture(scope="session")
def sqs(endpoint: str) -> Iterator[Any]:
    """A boto3 client."""
    client = boto3.client("sqs", **_options(endpoint))
    yield client
    client.close()


@pytest.fixture(scope="session")
def resource(endpoint: str) -> Any:
    """The object API of boto3."""
    return boto3.resource("sqs", **_options(endpoint))


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

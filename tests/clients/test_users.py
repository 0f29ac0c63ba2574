"""boto3 with users: what a policy does not allow is forbidden, and what comes too fast is refused for now."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.clients.server import Endpoint, administer, create_user, served

HEARD_SECONDS = 60
ONCE = Config(retries={"total_max_attempts": 1})


class Shop(NamedTuple):
    """A server with a root and a user that may only send to one queue."""

    directory: Path
    root: Any
    till: Any
    url: str


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    directory = tmp_path_factory.mktemp("users")
    policy = directory / "policy.json"
    allowed = {
        "Effect": "Allow",
        "Action": ["sqs:SendMessage", "sqs:GetQueueUrl"],
        "Resource": "arn:aws:sqs:us-east-1:000000000000:orders",
    }
    policy.write_text(json.dumps({"Version": "2012-10-17", "Statement": [allowed]}))
    keys = [
        create_user(directory, "admin", "--root"),
        create_user(directory, "till", "--policy", str(policy)),
    ]
    with served(directory) as url:
        root, till = (boto3.client("sqs", config=ONCE, **Endpoint(url, *key).boto_options()) for key in keys)
        yield Shop(directory, root, till, root.create_queue(QueueName="orders")["QueueUrl"])
        root.close()
        till.close()


def test_a_user_may_do_what_its_policy_allows_and_no_more(shop: Shop) -> None:
    till, url = shop.till, shop.url
    assert till.get_queue_url(QueueName="orders")["QueueUrl"] == url
    till.send_message(QueueUrl=url, MessageBody="one espresso")
    forbidden: list[Callable[[], object]] = [
        lambda: till.receive_message(QueueUrl=url),
        lambda: till.delete_queue(QueueUrl=url),
        lambda: till.create_queue(QueueName="mine"),
        lambda: till.send_message(QueueUrl=f"{url}-of-others", MessageBody="x"),
    ]
    for call in forbidden:
        with pytest.raises(ClientError) as caught:
            call()
        assert caught.value.response["Error"]["Code"] == "AccessDenied"
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    (message,) = shop.root.receive_message(QueueUrl=url, AttributeNames=["SenderId"])["Messages"]
    assert message["Attributes"]["SenderId"].startswith("AIDA")


def test_requests_beyond_the_limit_are_throttled_until_it_is_cleared(shop: Shop) -> None:
    administer(shop.directory, "limit", "set", "--user", "till", "--rate", "1", "--burst", "1")
    throttled = _until(shop, refused=True)
    assert isinstance(throttled, shop.till.exceptions.RequestThrottled)
    assert throttled.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    # Others are not slowed down.
    for _ in range(5):
        shop.root.get_queue_url(QueueName="orders")
    administer(shop.directory, "limit", "clear", "--user", "till")
    _until(shop, refused=False)


def _until(shop: Shop, *, refused: bool) -> Any:
    """Sends pairs of requests until the second is refused, or is not; the server hears of limits in a moment."""
    until = time.monotonic() + HEARD_SECONDS
    while time.monotonic() < until:
        error = None
        for _ in range(2):
            try:
                shop.till.send_message(QueueUrl=shop.url, MessageBody="fast")
            except ClientError as caught:
                error = caught
        if (error is not None) == refused:
            return error
    raise AssertionError("the server never heard of the limit")

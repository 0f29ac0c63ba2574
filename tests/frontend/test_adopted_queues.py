"""Queues of the native protocol, of which SQS knows nothing yet: who may give them a policy, attributes and tags."""

from __future__ import annotations

import json

import pytest

from tests.frontend.pipeline import Key, Pipeline
from tests.frontend.test_authorize import DENIED, admin, policy, statement

__all__ = ["admin"]  # a fixture


def create_with(server: Pipeline, key: Key, tags: dict[str, str] | None = None, **attributes: str) -> str:
    """The error of a CreateQueue of `payroll`, which was made through the native protocol."""
    return server.call("CreateQueue", key, QueueName="payroll", Attributes=attributes, tags=tags or {}).error


@pytest.mark.parametrize(
    ("given", "tags"),
    [
        ({"Policy": json.dumps(policy(statement("Allow", "sqs:*", Principal="*")))}, {}),
        ({"RedriveAllowPolicy": json.dumps({"redrivePermission": "denyAll"})}, {}),
        ({"ReceiveMessageWaitTimeSeconds": "5"}, {}),
        ({}, {"owner": "mallory"}),
    ],
)
def test_who_may_make_queues_does_not_take_over_one_of_the_native_protocol(
    server: Pipeline, admin: Key, given: dict[str, str], tags: dict[str, str]
) -> None:
    server.node.create("payroll")
    mallory = server.add_user("mallory", policy(statement("Allow", "sqs:CreateQueue")))
    assert create_with(server, mallory, tags, **given) == DENIED
    assert "queues/payroll" not in server.world.entries
    assert create_with(server, mallory) == ""  # nothing is changed
    assert create_with(server, mallory, VisibilityTimeout="30") == ""  # which it has
    owner = server.add_user(
        "owner", policy(statement("Allow", ["sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:TagQueue"]))
    )
    assert create_with(server, owner, tags, **given) == ""
    assert "queues/payroll" in server.world.entries


def test_tags_of_a_queue_that_exists_need_the_right_to_tag(server: Pipeline, admin: Key) -> None:
    server.node.create("payroll")
    mallory = server.add_user(
        "mallory", policy(statement("Allow", ["sqs:CreateQueue", "sqs:SetQueueAttributes"]))
    )
    assert create_with(server, mallory, {"owner": "mallory"}) == DENIED


def test_who_may_make_queues_gives_its_own_any_attributes(server: Pipeline, admin: Key) -> None:
    maker = server.add_user("maker", policy(statement("Allow", "sqs:CreateQueue")))
    assert create_with(server, maker, {"owner": "maker"}, ReceiveMessageWaitTimeSeconds="5") == ""

"""A queue that was deleted and made again through the native protocol: rights to the one before mean nothing to it.

What is remembered of a queue may be a second old. So who was let in by the policy of the queue before is asked again.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.wire.messages import DeleteQueue
from tests.frontend.pipeline import Key, Pipeline
from tests.frontend.test_authorize import DENIED, admin, policy, statement

__all__ = ["admin"]  # a fixture

MALLORY = {"AWS": "arn:aws:iam::000000000000:user/mallory"}
OPEN = json.dumps(policy(statement("Allow", "sqs:*", Principal="*")))


@pytest.mark.parametrize(
    ("action", "more"),
    [
        ("SetQueueAttributes", {"Attributes": {"Policy": OPEN}}),
        ("SetQueueAttributes", {"Attributes": {"VisibilityTimeout": "1"}}),
        ("AddPermission", {"Label": "x", "AWSAccountIds": ["111111111111"], "Actions": ["*"]}),
        ("TagQueue", {"Tags": {"owner": "mallory"}}),
        ("DeleteQueue", {}),
        ("PurgeQueue", {}),
        ("GetQueueAttributes", {"AttributeNames": ["All"]}),
        ("ListQueueTags", {}),
        ("ListDeadLetterSourceQueues", {}),
        ("SendMessage", {"MessageBody": "x"}),
        ("ReceiveMessage", {}),
    ],
)
def test_rights_to_the_queue_before_are_none_to_the_queue_of_its_name(
    server: Pipeline, admin: Key, action: str, more: dict[str, Any]
) -> None:
    mallory = server.add_user("mallory")
    before = json.dumps(policy(statement("Allow", "sqs:*", Principal=MALLORY)))
    url = server.must("CreateQueue", admin, QueueName="jobs", Attributes={"Policy": before})["QueueUrl"]
    assert server.call("GetQueueUrl", mallory, QueueName="jobs").error == "", "it is remembered now"
    server.node.ask(DeleteQueue("jobs"))
    made = server.node.create("jobs")
    assert server.call(action, mallory, QueueUrl=url, **more).error == DENIED
    assert server.node.show("jobs").queue_id == made
    assert server.call("GetQueueAttributes", mallory, QueueUrl=url).error == DENIED


def test_rights_to_the_queue_before_move_no_messages_of_the_queue_of_its_name(
    server: Pipeline, admin: Key
) -> None:
    mallory = server.add_user("mallory")
    before = json.dumps(policy(statement("Allow", "sqs:*", Principal=MALLORY)))
    server.must("CreateQueue", admin, QueueName="dead", Attributes={"Policy": before})
    server.must("CreateQueue", admin, QueueName="mine", Attributes={"Policy": before})
    assert server.call("GetQueueUrl", mallory, QueueName="dead").error == ""
    server.node.ask(DeleteQueue("dead"))
    server.node.create("dead")
    server.node.create("source", dead_letter_queue="dead", max_receives=1)
    arn = "arn:aws:sqs:us-east-1:000000000000:"
    moved = server.call("StartMessageMoveTask", mallory, SourceArn=f"{arn}dead", DestinationArn=f"{arn}mine")
    assert moved.error == DENIED


def test_the_owner_goes_on_with_the_new_queue(server: Pipeline, admin: Key) -> None:
    url = server.must("CreateQueue", admin, QueueName="jobs")["QueueUrl"]
    server.node.ask(DeleteQueue("jobs"))
    server.node.create("jobs")
    server.must("SetQueueAttributes", admin, QueueUrl=url, Attributes={"VisibilityTimeout": "7"})
    given = server.must("GetQueueAttributes", admin, QueueUrl=url, AttributeNames=["VisibilityTimeout"])
    assert given["Attributes"] == {"VisibilityTimeout": "7"}

"""Every action of SQS, asked by a user without rights, by one of another account, and by one whose key was just taken away."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest

from penstock.metadata.users.users import KEYS
from penstock.sqs.actions import ACTIONS
from penstock.sqs.task_handle import encode_task_handle
from tests.frontend.pipeline import Key, Pipeline, json_request, signed

URL = "http://127.0.0.1:9324/000000000000/orders"
ARN = "arn:aws:sqs:us-east-1:000000000000:orders"
DENIED = "AccessDeniedException"


def asked(receipt: str) -> dict[str, dict[str, Any]]:
    """Each action, with parameters that would do for whoever may."""
    on_queue: dict[str, Any] = {"QueueUrl": URL}
    one = {"Id": "1", "ReceiptHandle": receipt}
    return {
        "CreateQueue": {"QueueName": "others"},
        "GetQueueUrl": {"QueueName": "orders", "QueueOwnerAWSAccountId": "000000000000"},
        "ListQueues": {},
        "DeleteQueue": on_queue,
        "PurgeQueue": on_queue,
        "ListDeadLetterSourceQueues": on_queue,
        "GetQueueAttributes": on_queue | {"AttributeNames": ["All"]},
        "SetQueueAttributes": on_queue | {"Attributes": {"Policy": ""}},
        "TagQueue": on_queue | {"Tags": {"a": "b"}},
        "UntagQueue": on_queue | {"TagKeys": ["a"]},
        "ListQueueTags": on_queue,
        "AddPermission": on_queue | {"Label": "mine", "AWSAccountIds": ["111111111111"], "Actions": ["*"]},
        "RemovePermission": on_queue | {"Label": "mine"},
        "SendMessage": on_queue | {"MessageBody": "x"},
        "SendMessageBatch": on_queue | {"Entries": [{"Id": "1", "MessageBody": "x"}]},
        "ReceiveMessage": on_queue,
        "DeleteMessage": on_queue | {"ReceiptHandle": receipt},
        "DeleteMessageBatch": on_queue | {"Entries": [one]},
        "ChangeMessageVisibility": on_queue | {"ReceiptHandle": receipt, "VisibilityTimeout": 0},
        "ChangeMessageVisibilityBatch": on_queue | {"Entries": [one | {"VisibilityTimeout": 0}]},
        "StartMessageMoveTask": {"SourceArn": ARN},
        "ListMessageMoveTasks": {"SourceArn": ARN},
        "CancelMessageMoveTask": {"TaskHandle": encode_task_handle("task", ARN)},
    }


@pytest.fixture
def admin(server: Pipeline) -> Key:
    key = server.add_user("admin", root=True)
    server.must("CreateQueue", key, QueueName="orders")
    server.must("SendMessage", key, QueueUrl=URL, MessageBody="secret")
    return key


def receipt_of(server: Pipeline, admin: Key) -> str:
    (message,) = server.must("ReceiveMessage", admin, QueueUrl=URL, VisibilityTimeout=600)["Messages"]
    return str(message["ReceiptHandle"])


def test_the_list_is_whole() -> None:
    assert asked("").keys() == ACTIONS.keys()


@pytest.mark.parametrize("action", ACTIONS)
def test_without_rights_nothing_is_done_and_nothing_told(server: Pipeline, admin: Key, action: str) -> None:
    nobody = server.add_user("nobody")
    members = asked(receipt_of(server, admin))[action]
    answer = server.call(action, nobody, **members)
    assert (answer.status, answer.error) == (403, DENIED)
    assert "secret" not in str(answer.members)
    found = server.must("GetQueueAttributes", admin, QueueUrl=URL, AttributeNames=["All"])["Attributes"]
    assert found["ApproximateNumberOfMessagesNotVisible"] == "1"
    assert len(server.must("ListQueues", admin)["QueueUrls"]) == 1


@pytest.mark.parametrize("action", sorted(ACTIONS.keys() - {"CreateQueue", "ListQueues"}))
def test_a_root_of_another_account_does_nothing_here(server: Pipeline, admin: Key, action: str) -> None:
    stranger = server.add_user("stranger", root=True, account="111111111111")
    members = asked(receipt_of(server, admin))[action]
    answer = server.call(action, stranger, **members)
    assert answer.status in (400, 403, 404), answer
    found = server.must("GetQueueAttributes", admin, QueueUrl=URL, AttributeNames=["All"])["Attributes"]
    assert found["ApproximateNumberOfMessagesNotVisible"] == "1"


@pytest.mark.parametrize("action", ACTIONS)
def test_a_key_that_was_taken_away_does_nothing_from_then_on(
    server: Pipeline, admin: Key, action: str
) -> None:
    everything = {"Statement": {"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}}
    till = server.add_user("till", everything)
    server.must("ListQueues", till)  # it is known, and remembered
    request = json_request(action, asked(receipt_of(server, admin))[action])
    ready = signed(request, till, server.node.now_ms)
    server.store(KEYS + till.key_id, None)
    assert server.send(ready).status == 403


@pytest.mark.parametrize(
    "header",
    [
        "authorization",
        "x-amz-date",
        "x-amz-target",
        "x-amz-content-sha256",
        "content-type",
        "x-amz-security-token",
    ],
)
def test_a_header_that_comes_twice_is_not_taken_for_one_of_them(
    server: Pipeline, admin: Key, header: str
) -> None:
    """Two of a name arrive joined with a comma, as HTTP wants it: the signature is of one."""
    request = signed(json_request("DeleteQueue", {"QueueUrl": URL}), admin, server.node.now_ms)
    first = request.headers.get(header, "x")
    for both in (f"{first},{first}", f"{first},other", f"other,{first}"):
        doubled = type(request)(
            request.method, request.path, request.query, request.headers | {header: both}, request.body
        )
        if header != "authorization" and header not in _signed_headers(request.headers):
            continue  # what is not signed decides nothing
        assert server.send(doubled).status in (400, 403), both
    assert len(server.must("ListQueues", admin)["QueueUrls"]) == 1


def _signed_headers(headers: dict[str, str]) -> list[str]:
    return headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")


def test_an_unsigned_header_gives_no_rights(server: Pipeline, admin: Key) -> None:
    nobody = server.add_user("nobody")
    request = signed(json_request("ListQueues", {}), nobody, server.node.now_ms)
    for more in (
        {"x-forwarded-for": "127.0.0.1"},
        {"x-amz-user": "admin"},
        {"x-amzn-trace-id": "Root=1"},
        {"user-agent": "admin"},
        {"x-http-method-override": "GET"},
    ):
        sent = type(request)(
            request.method, request.path, request.query, request.headers | more, request.body
        )
        assert json.loads(server.send(sent).body)["__type"].endswith(DENIED)


def test_a_denial_that_would_deny_nobody_is_refused(server: Pipeline, admin: Key) -> None:
    everybody = {"AWS": "arn:aws:iam::000000000000:user/*"}
    policy = {"Statement": {"Effect": "Deny", "Principal": everybody, "Action": "sqs:*"}}
    answer = server.call("SetQueueAttributes", admin, QueueUrl=URL, Attributes={"Policy": json.dumps(policy)})
    assert answer.error == "InvalidAttributeValue"


@pytest.mark.parametrize(
    ("action", "members"),
    [
        ("CreateQueue", {"QueueName": "x" * 100_000}),
        ("GetQueueUrl", {"QueueName": "x" * 100_000}),
        ("GetQueueUrl", {"QueueName": "x", "QueueOwnerAWSAccountId": "1" * 100_000}),
    ],
)
def test_what_is_remembered_of_a_name_is_short(
    server: Pipeline, admin: Key, action: str, members: dict[str, str]
) -> None:
    """Each decision is remembered by the name that it is about, also where no queue can have that name."""
    nobody = server.add_user("nobody")
    tracemalloc.start()
    try:
        for _ in range(20):
            members = {name: f"{value}1" for name, value in members.items()}
            assert server.call(action, nobody, **members).error == DENIED
        gc.collect()
        remembered, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert remembered < 1_000_000


def test_who_may_not_ask_learns_of_no_queue_whose_name_only_the_native_protocol_can_say(
    server: Pipeline, admin: Key
) -> None:
    nobody = server.add_user("nobody")
    other = server.add_user("other", root=True, account="111111111111")
    server.node.create("reports.daily")
    for key in (nobody, other):
        for name in ("reports.daily", "reports.weekly"):
            answer = server.call("GetQueueUrl", key, QueueName=name, QueueOwnerAWSAccountId="000000000000")
            assert (answer.status, answer.error) == (403, DENIED)
    answer = server.call("GetQueueUrl", admin, QueueName="reports.daily")
    assert answer.error == "QueueDoesNotExist"

"""One event for every request, whatever became of it; and what neither it nor the log ever holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from penstock.metadata.store.interface import StoreUnavailableError
from penstock.model.limits import SECOND_MS
from penstock.sqs.protocols.http import HttpRequest
from tests.frontend.pipeline import HOST, Key, Pipeline, json_request, logged, query_request

CONTROL: dict[str, dict[str, Any]] = {
    "CreateQueue": {"QueueName": "others", "Attributes": {"KmsMasterKeyId": "k"}, "tags": {"a": "b"}},
    "TagQueue": {"QueueUrl": "orders", "Tags": {"a": "b"}},
    "SetQueueAttributes": {"QueueUrl": "orders", "Attributes": {"Policy": ""}},
    "AddPermission": {
        "QueueUrl": "orders",
        "Label": "l",
        "AWSAccountIds": ["111111111111"],
        "Actions": ["SendMessage"],
    },
}


def test_every_request_leaves_one_event(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    admin = server.add_user("admin", root=True)
    till = server.add_user("till")
    server.must("CreateQueue", admin, QueueName="orders")
    server.must("SendMessage", admin, QueueUrl="orders", MessageBody="secret espresso")
    entries = [{"Id": str(number), "MessageBody": "x"} for number in range(3)]
    server.must("SendMessageBatch", admin, QueueUrl="orders", Entries=entries)
    received = server.must("ReceiveMessage", admin, QueueUrl="orders", MaxNumberOfMessages=10)["Messages"]
    server.must("DeleteMessage", admin, QueueUrl="orders", ReceiptHandle=received[0]["ReceiptHandle"])
    server.call("SendMessage", admin, QueueUrl="nowhere", MessageBody="x")
    server.call("SendMessage", admin, QueueUrl="orders")
    server.call("SendMessage", till, QueueUrl="orders", MessageBody="x")
    server.call("SendMessage", Key("AKIAIOSFODNN7EXAMPLE", "x"), QueueUrl="orders", MessageBody="x")
    server.call("NoSuchAction", admin)
    server.send(query_request("SendMessage", QueueUrl="orders"))
    server.send(HttpRequest("GET", "/", "", {"host": HOST}))
    events = server.recorded()
    assert [(event["user"], event["action"], event["messages"], event["outcome"]) for event in events] == [
        ("admin", "CreateQueue", 0, "ok"),
        ("admin", "SendMessage", 1, "ok"),
        ("admin", "SendMessageBatch", 3, "ok"),
        ("admin", "ReceiveMessage", 4, "ok"),
        ("admin", "DeleteMessage", 1, "ok"),
        ("admin", "SendMessage", 0, "AWS.SimpleQueueService.NonExistentQueue"),
        ("admin", "SendMessage", 0, "MissingParameter"),
        ("till", "SendMessage", 0, "AccessDenied"),
        ("", "SendMessage", 0, "InvalidClientTokenId"),
        ("admin", "", 0, "InvalidAction"),
        ("", "SendMessage", 0, "MissingAuthenticationToken"),
        ("", "", 0, "MissingAuthenticationToken"),
    ]
    assert server.usage.totals().dropped == 0
    assert len({event["request_id"] for event in events}) == len(events)
    assert events[1]["queue"] == "arn:aws:sqs:us-east-1:000000000000:orders"
    assert events[1]["bytes_in"] > len("secret espresso")
    assert events[1]["bytes_out"] > len(events[1]["request_id"])
    assert {event["address"] for event in events} == {"127.0.0.1"}
    written = str(events)
    assert "espresso" not in written
    assert admin.secret not in written


def test_a_long_poll_is_one_event_that_took_as_long(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    server.must("CreateQueue", QueueName="orders")
    waiting = server.begin(server.request("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=3))
    server.advance(3 * SECOND_MS)
    assert waiting.answer.status == 200
    event = server.recorded()[-1]
    assert (event["action"], event["outcome"]) == ("ReceiveMessage", "ok")
    assert 3_000_000 <= event["latency_us"] < 3_100_000


def test_a_long_poll_whose_client_went_away_is_one_event(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    server.must("CreateQueue", QueueName="orders")
    waiting = server.begin(server.request("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20))
    server.advance(2 * SECOND_MS)
    assert waiting.cancel is not None
    waiting.cancel()
    waiting.cancel()
    server.pump()
    server.advance(30 * SECOND_MS)
    events = [event for event in server.recorded() if event["action"] == "ReceiveMessage"]
    assert [(event["outcome"], event["status"], event["messages"]) for event in events] == [
        ("cancelled", 499, 0)
    ]
    assert 2_000_000 <= events[0]["latency_us"] < 2_100_000


def test_a_receive_that_was_answered_is_not_cancelled_too(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    server.must("CreateQueue", QueueName="orders")
    waiting = server.begin(server.request("ReceiveMessage", QueueUrl="orders"))
    assert waiting.answer.status == 200
    assert waiting.cancel is not None
    waiting.cancel()
    assert [event["outcome"] for event in server.recorded()] == ["ok", "ok"]


# --- a metadata store that does not answer ------------------------------------------------------------------


def test_messages_flow_while_the_metadata_cannot_be_written(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    server.must("CreateQueue", QueueName="orders")
    server.failing = StoreUnavailableError("metadata.sqlite: the disk is full; free some space")
    with logged() as lines:
        for action, members in CONTROL.items():
            answer = server.call(action, **members)
            assert (answer.status, answer.error) == (503, "ServiceUnavailable"), action
        server.must("SendMessage", QueueUrl="orders", MessageBody="espresso")
        (message,) = server.must("ReceiveMessage", QueueUrl="orders")["Messages"]
        server.must("DeleteMessage", QueueUrl="orders", ReceiptHandle=message["ReceiptHandle"])
    assert lines
    assert all("the disk is full; free some space" in line for line in lines)
    server.failing = None
    for action, members in CONTROL.items():
        server.must(action, **members)
    # What was begun without the metadata is whole now.
    assert server.must("ListQueueTags", QueueUrl="others")["Tags"] == {"a": "b"}
    found = server.must("GetQueueAttributes", QueueUrl="others", AttributeNames=["All"])["Attributes"]
    assert found["KmsMasterKeyId"] == "k"
    server.usage.close()


# --- what a defect looks like from outside ------------------------------------------------------------------


@pytest.mark.parametrize("part", ["write", "answer"])
def test_a_defect_is_answered_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    server = Pipeline(tmp_path)
    if part == "write":
        server.failing = RuntimeError("the secret of the house")
    else:

        def broken(*_: object) -> None:
            raise RuntimeError("the secret of the house")

        monkeypatch.setattr("penstock.frontend.pipeline.answer", broken)
    with logged() as lines:
        answer = server.call("CreateQueue", QueueName="orders", tags={"a": "b"})
    assert (answer.status, answer.error) == (500, "InternalFailure")
    assert "secret" not in str(answer)
    request_id = answer.headers["x-amzn-requestid"]
    assert any(request_id in line for line in lines)
    assert [event["outcome"] for event in server.recorded()] == ["InternalError"]


def test_no_secret_and_no_body_gets_into_the_log(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    admin = server.add_user("admin", root=True)
    body = "one very private espresso"
    with logged() as lines:
        server.must("CreateQueue", admin, QueueName="orders")
        server.must("SendMessage", admin, QueueUrl="orders", MessageBody=body)
        server.must("ReceiveMessage", admin, QueueUrl="orders")
        server.call("SendMessage", admin._replace(secret="wrong"), QueueUrl="orders", MessageBody=body)
        server.failing = RuntimeError("a defect")
        server.call("TagQueue", admin, QueueUrl="orders", Tags={"private": body})
    assert lines  # of the defect
    everything = "\n".join(lines)
    assert body not in everything
    assert admin.secret not in everything
    server.usage.close()


def test_request_ids_are_in_every_answer_and_never_the_same(tmp_path: Path) -> None:
    first = Pipeline(tmp_path / "one")
    servers = [first, Pipeline(tmp_path / "two", first.world)]
    seen: set[str] = set()
    count = 0
    for server in servers:
        for request in (
            json_request("ListQueues", {}),
            json_request("NoSuchAction", {}),
            query_request("ListQueues"),
            query_request("NoSuchAction"),
            HttpRequest("GET", "/", "", {"host": HOST}),
        ):
            headers = {name.lower(): value for name, value in server.send(request).headers}
            seen.add(headers["x-amzn-requestid"])
            count += 1
        server.usage.close()
    assert len(seen) == count
    shape = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-a[0-9a-f]{3}-[0-9a-f]{12}")
    assert all(shape.fullmatch(request_id) for request_id in seen)

"""What can be done to a queue that exists: attributes, tags, permissions, purges, lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.frontend.actions.create_queue import create_queue
from penstock.frontend.actions.dead_letter_sources import list_dead_letter_source_queues
from penstock.frontend.actions.list_queues import list_queues
from penstock.frontend.actions.permissions import add_permission, remove_permission
from penstock.frontend.actions.purge_queue import purge_queue
from penstock.frontend.actions.queue_attributes import get_queue_attributes, set_queue_attributes
from penstock.frontend.actions.queue_tags import list_queue_tags, tag_queue, untag_queue
from penstock.sqs.compatibility import STRICT
from penstock.steps.step import Put
from penstock.wire import messages
from tests.frontend.harness import FrontEnd

OTHER = "111122223333"


def create(front: FrontEnd, name: str = "orders", **attributes: str) -> None:
    front.call(create_queue, "CreateQueue", QueueName=name, Attributes=attributes)


def change(front: FrontEnd, name: str = "orders", **attributes: str) -> None:
    front.call(set_queue_attributes, "SetQueueAttributes", QueueUrl=name, Attributes=attributes)


def shown(front: FrontEnd, name: str = "orders", *names: str) -> dict[str, str]:
    asked = list(names) or ["All"]
    return front.call(
        get_queue_attributes, "GetQueueAttributes", QueueUrl=name, AttributeNames=asked
    ).attributes


def redrive(front: FrontEnd, target: str) -> str:
    return json.dumps({"deadLetterTargetArn": front.arn(target), "maxReceiveCount": 1})


# --- attributes -----------------------------------------------------------------------------------------------


def test_counts_are_fresh() -> None:
    front = FrontEnd()
    create(front)
    queue_id = front.node.show("orders").queue_id
    front.node.send(queue_id, [b"a", b"b", b"c"])
    front.node.receive(queue_id, 1)
    front.node.send(queue_id, [b"d"], delays_ms=[5_000])
    found = shown(front)
    assert [
        found["ApproximateNumberOfMessages"],
        found["ApproximateNumberOfMessagesNotVisible"],
        found["ApproximateNumberOfMessagesDelayed"],
    ] == ["2", "1", "1"]
    assert shown(front, "orders", "QueueArn") == {"QueueArn": front.arn("orders")}
    assert front.call(get_queue_attributes, "GetQueueAttributes", QueueUrl="orders").attributes == {}
    assert shown(front, "orders", "Policy") == {}


def test_unknown_names() -> None:
    front = FrontEnd()
    create(front)
    error = front.refuse(get_queue_attributes, "GetQueueAttributes", QueueUrl="orders", AttributeNames=["X"])
    assert error.message == "Unknown Attribute X."


def test_set_changes_both_halves_and_the_time() -> None:
    front = FrontEnd()
    create(front)
    created = shown(front)["LastModifiedTimestamp"]
    front.node.advance(5_000)
    change(front, VisibilityTimeout="60", ReceiveMessageWaitTimeSeconds="2")
    found = shown(front)
    assert (found["VisibilityTimeout"], found["ReceiveMessageWaitTimeSeconds"]) == ("60", "2")
    assert int(found["LastModifiedTimestamp"]) == int(created) + 5
    assert found["CreatedTimestamp"] == created
    assert front.node.show("orders").settings.visibility_timeout_ms == 60_000


def test_set_is_all_or_nothing() -> None:
    front = FrontEnd()
    create(front)
    before = shown(front)
    for bad in [{"DelaySeconds": "-1"}, {"QueueArn": "x"}, {"RedrivePolicy": redrive(front, "none")}]:
        front.refuse(
            set_queue_attributes,
            "SetQueueAttributes",
            QueueUrl="orders",
            Attributes={"VisibilityTimeout": "99", "ReceiveMessageWaitTimeSeconds": "9"} | bad,
        )
    assert shown(front) == before


def test_what_sqs_has_no_words_for_stays() -> None:
    front = FrontEnd()
    front.node.create("orders", visibility_timeout_ms=1_500, deduplication_window_ms=7)
    change(front, DelaySeconds="3")
    settings = front.node.show("orders").settings
    assert (settings.visibility_timeout_ms, settings.deduplication_window_ms, settings.delay_ms) == (
        1_500,
        7,
        3_000,
    )
    assert settings.max_message_bytes == 1024 * 1024


def test_a_redrive_policy_comes_and_goes() -> None:
    front = FrontEnd()
    create(front)
    create(front, "dead")
    change(front, RedrivePolicy=redrive(front, "dead"))
    assert json.loads(shown(front)["RedrivePolicy"])["deadLetterTargetArn"] == front.arn("dead")
    assert front.node.show("orders").settings.dead_letter_queue == "dead"
    change(front, RedrivePolicy="")
    assert "RedrivePolicy" not in shown(front)
    assert front.node.show("orders").settings.dead_letter_queue is None


def test_strict_and_extended() -> None:
    for front, allowed in [(FrontEnd(), True), (FrontEnd(compatibility=STRICT), False)]:
        create(front)
        for given in [{"Penstock.MaximumMessages": "5"}, {"VisibilityTimeout": "50000"}]:
            if allowed:
                change(front, **given)
                assert given.items() <= shown(front).items()
            else:
                front.refuse(set_queue_attributes, "SetQueueAttributes", QueueUrl="orders", Attributes=given)


@pytest.mark.parametrize("deaf", [False, True])
def test_two_changes_at_the_same_time_both_hold(deaf: bool) -> None:
    first = FrontEnd()
    create(first)
    second = FrontEnd(first.world, deaf=deaf)
    running = first.begin(
        set_queue_attributes,
        "SetQueueAttributes",
        QueueUrl="orders",
        Attributes={"VisibilityTimeout": "7", "ReceiveMessageWaitTimeSeconds": "7"},
    )
    while not isinstance(running.pending, Put):
        running.step()
    change(second, KmsMasterKeyId="key", DelaySeconds="8")
    second.call(tag_queue, "TagQueue", QueueUrl="orders", Tags={"a": "b"})
    running.run()
    expected = {
        "VisibilityTimeout": "7",
        "ReceiveMessageWaitTimeSeconds": "7",
        "KmsMasterKeyId": "key",
        "DelaySeconds": "8",
    }
    assert expected.items() <= shown(first).items()
    assert first.call(list_queue_tags, "ListQueueTags", QueueUrl="orders").tags == {"a": "b"}


def test_an_interrupted_change_is_done_again() -> None:
    front = FrontEnd()
    create(front)
    given = {"MaximumMessageSize": "2048", "ReceiveMessageWaitTimeSeconds": "7"}
    running = front.begin(set_queue_attributes, "SetQueueAttributes", QueueUrl="orders", Attributes=given)
    while not isinstance(running.pending, Put):
        running.step()
    running.stop()
    change(front, **given)
    assert given.items() <= shown(front).items()


def test_a_queue_that_is_gone() -> None:
    front = FrontEnd()
    create(front)
    context = front.context("ListQueueTags", QueueUrl="orders")
    front.node.call(messages.DeleteQueue("orders"))
    with pytest.raises(Exception, match="queue-not-found"):
        front.run(list_queue_tags(context))


# --- tags, permissions, purges --------------------------------------------------------------------------------


def test_tags() -> None:
    front = FrontEnd()
    create(front)
    front.call(tag_queue, "TagQueue", QueueUrl="orders", Tags={"a": "1", "b": ""})
    front.call(tag_queue, "TagQueue", QueueUrl="orders", Tags={"a": "2"})
    front.call(untag_queue, "UntagQueue", QueueUrl="orders", TagKeys=["b", "unknown"])
    assert front.call(list_queue_tags, "ListQueueTags", QueueUrl="orders").tags == {"a": "2"}
    many = {str(number): "" for number in range(50)}
    error = front.refuse(tag_queue, "TagQueue", QueueUrl="orders", Tags=many)
    assert error.message == "Too many tags added for queue orders."
    front.refuse(untag_queue, "UntagQueue", QueueUrl="orders", TagKeys=[])


def test_tags_of_a_queue_of_the_native_protocol() -> None:
    front = FrontEnd()
    front.node.create("orders")
    front.call(tag_queue, "TagQueue", QueueUrl="orders", Tags={"a": "1"})
    assert front.call(list_queue_tags, "ListQueueTags", QueueUrl="orders").tags == {"a": "1"}


def test_permissions() -> None:
    front = FrontEnd()
    create(front)
    grant: dict[str, Any] = {
        "QueueUrl": "orders",
        "Label": "l",
        "AWSAccountIds": [OTHER],
        "Actions": ["SendMessage"],
    }
    front.call(add_permission, "AddPermission", **grant)
    (statement,) = json.loads(shown(front)["Policy"])["Statement"]
    assert (statement["Sid"], statement["Action"]) == ("l", "SQS:SendMessage")
    assert front.refuse(add_permission, "AddPermission", **grant).message.endswith("Already exists.")
    error = front.refuse(remove_permission, "RemovePermission", QueueUrl="orders", Label="other")
    assert error.message.endswith("can't find label.")
    front.call(remove_permission, "RemovePermission", QueueUrl="orders", Label="l")
    assert "Policy" not in shown(front)


def test_purges_once_a_minute() -> None:
    front = FrontEnd()
    create(front)
    queue_id = front.node.show("orders").queue_id
    front.node.send(queue_id, [b"a", b"b"])
    front.node.receive(queue_id, 1)
    front.call(purge_queue, "PurgeQueue", QueueUrl="orders")
    assert front.node.show("orders").statistics.ready + front.node.show("orders").statistics.leased == 0
    error = front.as_caller(front.account).refuse(purge_queue, "PurgeQueue", QueueUrl="orders")
    assert (error.status, error.message) == (
        403,
        "Only one PurgeQueue operation on orders is allowed every 60 seconds.",
    )
    front.node.advance(60_000)
    front.call(purge_queue, "PurgeQueue", QueueUrl="orders")


def test_an_interrupted_purge_may_be_asked_again() -> None:
    front = FrontEnd()
    create(front)
    running = front.begin(purge_queue, "PurgeQueue", QueueUrl="orders")
    while not isinstance(running.pending, Put):
        running.step()
    running.stop()
    front.call(purge_queue, "PurgeQueue", QueueUrl="orders")


# --- lists ----------------------------------------------------------------------------------------------------


def names(front: FrontEnd, **members: Any) -> list[str]:
    urls = front.call(list_queues, "ListQueues", **members).queue_urls
    return [url.rpartition("/")[2] for url in urls]


def test_lists_are_of_one_account_and_region() -> None:
    front = FrontEnd()
    others = [front.as_caller(OTHER), front.as_caller(OTHER, "eu-west-1")]
    for number, each in enumerate([front, *others]):
        for name in ("a", "b"):
            create(each, f"{name}{number}")
    front.node.create("no.sqs.name")
    assert names(front) == ["a0", "b0"]
    assert [names(each) for each in others] == [["a1", "b1"], ["a2", "b2"]]
    assert names(front, QueueNamePrefix="b") == ["b0"]
    assert names(front, QueueNamePrefix=f"{OTHER}.") == []
    assert front.call(list_queues, "ListQueues", QueueNamePrefix="x").queue_urls == []


def test_lists_have_pages() -> None:
    front = FrontEnd()
    wanted = [f"q{number}" for number in range(5)]
    for name in wanted:
        create(front, name)
    found: list[str] = []
    token: str | None = None
    for _ in range(3):
        members = {"NextToken": token} if token else {}
        page = front.call(list_queues, "ListQueues", MaxResults=2, **members)
        found += [url.rpartition("/")[2] for url in page.queue_urls]
        token = page.next_token
    assert (found, token) == (wanted, None)
    assert front.call(list_queues, "ListQueues", MaxResults=5).next_token is None
    assert front.refuse(list_queues, "ListQueues", MaxResults=0).query_code == "InvalidParameterValue"
    assert front.refuse(list_queues, "ListQueues", MaxResults=1, NextToken="?").status == 400


def test_foreign_queues_between_pages_of_the_engine_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.frontend.queues.listing.ENGINE_PAGE", 2)
    front = FrontEnd()
    other = front.as_caller(OTHER)
    for number in range(7):
        create(other, f"q{number}")
    mine = ["0", f"{OTHER}", f"{OTHER}x", "z"]
    for name in mine:
        create(front, name)
    create(front, f"{OTHER}.fifo", FifoQueue="true")
    assert names(front) == sorted([*mine, f"{OTHER}.fifo"])
    assert names(other) == [f"q{number}" for number in range(7)]
    running = front.begin(list_queues, "ListQueues")
    running.run()
    assert len(running.taken) <= 5, "all of another account's queues were read"


def test_dead_letter_sources_have_pages_too() -> None:
    front = FrontEnd()
    for each in (front, front.as_caller(OTHER)):
        create(each, "dead")
        create(each, "a", RedrivePolicy=redrive(each, "dead"))
        create(each, "b")
        create(each, "c", RedrivePolicy=redrive(each, "dead"))
    listed = front.call(
        list_dead_letter_source_queues, "ListDeadLetterSourceQueues", QueueUrl="dead", MaxResults=1
    )
    assert listed.queue_urls == [front.url("a")]
    listed = front.call(
        list_dead_letter_source_queues,
        "ListDeadLetterSourceQueues",
        QueueUrl="dead",
        MaxResults=1,
        NextToken=listed.next_token,
    )
    assert (listed.queue_urls, listed.next_token) == ([front.url("c")], None)
    change(front, "a", RedrivePolicy="")
    listed = front.call(list_dead_letter_source_queues, "ListDeadLetterSourceQueues", QueueUrl="dead")
    assert listed.queue_urls == [front.url("c")]

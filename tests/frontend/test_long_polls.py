"""Receives that wait: for clients that go away, on servers that stop, and on queues that are deleted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.metadata.users.users import KEYS
from penstock.model.limits import SECOND_MS
from tests.frontend.pipeline import LOCAL, Key, Pipeline, Waiting, read


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Pipeline]:
    pipeline = Pipeline(tmp_path)
    pipeline.must("CreateQueue", QueueName="orders", Attributes={"VisibilityTimeout": "600"})
    yield pipeline
    pipeline.usage.close()


def poll(server: Pipeline, seconds: int = 20) -> Waiting:
    waiting = server.begin(server.request("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=seconds))
    assert not waiting.answers
    return waiting


def leave(server: Pipeline, waiting: Waiting) -> None:
    assert waiting.cancel is not None
    waiting.cancel()
    server.pump()


def test_a_message_ends_the_wait(server: Pipeline) -> None:
    waiting = poll(server)
    server.must("SendMessage", QueueUrl="orders", MessageBody="espresso")
    assert [message["Body"] for message in waiting.answer.members["Messages"]] == ["espresso"]


def test_the_wait_ends_with_nothing(server: Pipeline) -> None:
    waiting = poll(server, 3)
    server.advance(3 * SECOND_MS)
    assert waiting.answer.status == 200
    assert not waiting.answer.members.get("Messages")


def test_who_is_gone_takes_nothing_along(server: Pipeline) -> None:
    leave(server, poll(server))
    server.must("SendMessage", QueueUrl="orders", MessageBody="espresso")
    received = server.must("ReceiveMessage", QueueUrl="orders", AttributeNames=["All"])
    (message,) = received["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def miss(server: Pipeline, waiting: Waiting, **message: str) -> None:
    """Leaves at the very moment: the message is taken before the engine hears that nobody waits for it."""
    assert waiting.cancel is not None
    sent = server.front.handle(  # not pumped: the delivery has left the engine and is not here yet
        server.request("SendMessage", MessageBody="espresso", **message), LOCAL, Waiting().answers.append
    )
    assert sent is None
    server.send_gathered()
    waiting.cancel()
    server.pump()
    assert not waiting.answers


def test_what_is_on_its_way_to_who_is_gone_comes_back_at_once_and_uncounted(server: Pipeline) -> None:
    miss(server, poll(server), QueueUrl="orders")
    server.advance(SECOND_MS)
    (message,) = server.must("ReceiveMessage", QueueUrl="orders", AttributeNames=["All"])["Messages"]
    assert message["Body"] == "espresso"
    attributes = message["Attributes"]
    assert attributes["ApproximateReceiveCount"] == "1"
    assert attributes["ApproximateFirstReceiveTimestamp"] == str(server.node.now_ms)


def test_what_nobody_saw_is_no_dead_letter(server: Pipeline) -> None:
    server.must("CreateQueue", QueueName="dead")
    arn = "arn:aws:sqs:us-east-1:000000000000:dead"
    policy = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    server.must("SetQueueAttributes", QueueUrl="orders", Attributes={"RedrivePolicy": policy})
    miss(server, poll(server), QueueUrl="orders")
    assert len(server.must("ReceiveMessage", QueueUrl="orders")["Messages"]) == 1


def test_who_left_may_try_again_under_the_same_attempt_and_nobody_else_gets_it(server: Pipeline) -> None:
    server.must("CreateQueue", QueueName="letters.fifo", Attributes={"FifoQueue": "true"})
    asked = {"QueueUrl": "letters.fifo", "ReceiveRequestAttemptId": "once", "WaitTimeSeconds": 20}
    waiting = server.begin(server.request("ReceiveMessage", **asked))
    miss(server, waiting, QueueUrl="letters.fifo", MessageGroupId="g", MessageDeduplicationId="1")
    assert not server.must("ReceiveMessage", QueueUrl="letters.fifo").get("Messages")
    (message,) = server.must("ReceiveMessage", **asked, AttributeNames=["All"])["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"


def test_who_leaves_while_the_queue_is_looked_up_never_waits(server: Pipeline) -> None:
    server.advance(2 * SECOND_MS)  # what is known of the queue is old now, so that the engine is asked first
    waiting = Waiting()
    request = server.request("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20)
    cancel = server.front.handle(request, LOCAL, waiting.answers.append)
    assert cancel is not None
    cancel()
    server.pump()
    assert len(server.services.waiting) == 0
    server.must("SendMessage", QueueUrl="orders", MessageBody="espresso")
    (message,) = server.must("ReceiveMessage", QueueUrl="orders", AttributeNames=["All"])["Messages"]
    assert message["Attributes"]["ApproximateReceiveCount"] == "1"
    assert not waiting.answers


def test_only_receives_can_be_cancelled(server: Pipeline) -> None:
    waiting = server.begin(server.request("SendMessage", QueueUrl="orders", MessageBody="espresso"))
    assert waiting.cancel is None
    assert waiting.answer.status == 200


def test_a_server_that_stops_answers_who_waits_and_who_comes_late(server: Pipeline) -> None:
    early = poll(server)
    server.front.end_waiting()
    server.pump()
    late = read(server.send(server.request("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20)))
    assert early.answer.status == late.status == 200
    assert len(server.services.waiting) == 0


def test_a_deleted_queue_ends_the_wait(server: Pipeline) -> None:
    waiting = poll(server)
    server.must("DeleteQueue", QueueUrl="orders")
    assert waiting.answer.error == "QueueDoesNotExist"


def test_a_thousand_waits_leave_nothing_behind(server: Pipeline) -> None:
    for _ in range(1_000):
        leave(server, poll(server))
    assert len(server.services.waiting) == 0


# --- users and policies that change meanwhile -----------------------------------------------------------------

ALLOW = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]}
DENY = {"Effect": "Deny", "Principal": "*", "Action": "sqs:ReceiveMessage", "Resource": "*"}
TAKEN_AWAY: dict[str, Callable[[Pipeline, Key, Key], object]] = {
    "the user is disabled": lambda server, admin, sam: server.change_user("sam", enabled=False),
    "the key is disabled": lambda server, admin, sam: server.change_key(sam, enabled=False),
    "the key is deleted": lambda server, admin, sam: server.store(KEYS + sam.key_id, None),
    "the policy is deleted": lambda server, admin, sam: server.change_user("sam", policies={}),
    "the queue shuts it out": lambda server, admin, sam: server.must(
        "SetQueueAttributes",
        admin,
        QueueUrl="orders",
        Attributes={"Policy": json.dumps({"Version": "2012-10-17", "Statement": [DENY]})},
    ),
}


def poll_as(server: Pipeline, key: Key | None) -> Waiting:
    waiting = server.begin(server.request("ReceiveMessage", key, QueueUrl="orders", WaitTimeSeconds=20))
    assert not waiting.answers
    return waiting


@pytest.mark.parametrize("how", TAKEN_AWAY)
def test_who_may_no_longer_receive_does_not_wait_on(server: Pipeline, how: str) -> None:
    admin, sam = server.add_user("ada", root=True), server.add_user("sam", ALLOW)
    waiting, other = poll_as(server, sam), poll_as(server, admin)
    TAKEN_AWAY[how](server, admin, sam)
    server.pump()
    assert waiting.answer.status == 403
    assert not other.answers
    server.must("SendMessage", admin, QueueUrl="orders", MessageBody="espresso")
    assert [message["Body"] for message in other.answer.members["Messages"]] == ["espresso"]
    (row,) = [event for event in server.recorded() if event["user"] == "sam"]
    assert (row["action"], row["status"], row["messages"]) == ("ReceiveMessage", 403, 0)


def test_who_waits_without_users_goes_when_there_are_some(server: Pipeline) -> None:
    waiting = poll(server)
    server.add_user("ada", root=True)
    server.pump()
    assert waiting.answer.status == 403


def test_a_change_that_takes_nothing_away_ends_no_wait(server: Pipeline) -> None:
    admin, sam = server.add_user("ada", root=True), server.add_user("sam", ALLOW)
    waiting = poll_as(server, sam)
    server.change_user("sam", policies={"other": json.dumps(ALLOW)})
    server.add_user("somebody")
    server.must("CreateQueue", admin, QueueName="another", tags={"a": "b"})
    server.advance(SECOND_MS)
    assert not waiting.answers
    server.must("SendMessage", admin, QueueUrl="orders", MessageBody="espresso")
    assert len(waiting.answer.members["Messages"]) == 1

"""Who may do what: policies of users and of queues, from the signed request to the refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.frontend.authorize import DECISIONS
from penstock.sqs.protocols.http import Peer
from tests.frontend.pipeline import LOCAL, Key, Pipeline

ACCOUNT, OTHER = "000000000000", "111111111111"
ORDERS = f"arn:aws:sqs:us-east-1:{ACCOUNT}:orders"
URL = f"http://127.0.0.1:9324/{ACCOUNT}/orders"
DENIED = "AccessDeniedException"


def statement(effect: str, action: Any, resource: Any = "*", **more: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": action, "Resource": resource} | more


def policy(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


@pytest.fixture
def admin(server: Pipeline) -> Key:
    key = server.add_user("admin", root=True)
    server.must("CreateQueue", key, QueueName="orders")
    return key


def set_policy(server: Pipeline, admin: Key, *statements: dict[str, Any], queue: str = "orders") -> None:
    text = json.dumps(policy(*statements)) if statements else ""
    server.must("SetQueueAttributes", admin, QueueUrl=queue, Attributes={"Policy": text})


def sends(server: Pipeline, key: Key, peer: Peer = LOCAL) -> bool:
    answer = server.call("SendMessage", key, peer, QueueUrl=URL, MessageBody="x")
    assert answer.status == 200 or answer.error == DENIED, answer
    return answer.status == 200


# --- policies of users --------------------------------------------------------------------------------------


def test_what_nothing_allows_is_forbidden(server: Pipeline, admin: Key) -> None:
    nobody = server.add_user("nobody")
    asked: dict[str, dict[str, Any]] = {
        "SendMessage": {"QueueUrl": URL, "MessageBody": "x"},
        "ReceiveMessage": {"QueueUrl": URL},
        "DeleteQueue": {"QueueUrl": URL},
        "GetQueueUrl": {"QueueName": "orders"},
        "ListQueues": {},
        "CreateQueue": {"QueueName": "others"},
        "ListMessageMoveTasks": {"SourceArn": ORDERS},
        "SetQueueAttributes": {"QueueUrl": URL, "Attributes": {"Policy": ""}},
        "AddPermission": {
            "QueueUrl": URL,
            "Label": "mine",
            "AWSAccountIds": [ACCOUNT],
            "Actions": ["*"],
        },
    }
    for action, members in asked.items():
        answer = server.call(action, nobody, **members)
        assert (answer.status, answer.error) == (403, DENIED), action


def test_a_user_may_do_what_its_policy_names_and_no_more(server: Pipeline, admin: Key) -> None:
    server.must("CreateQueue", admin, QueueName="others")
    till = server.add_user("till", policy(statement("Allow", "sqs:SendMessage", ORDERS)))
    assert sends(server, till)
    assert server.call("SendMessage", till, QueueUrl="others", MessageBody="x").error == DENIED
    assert server.call("ReceiveMessage", till, QueueUrl="orders").error == DENIED


@pytest.mark.parametrize(
    ("allowed", "resource", "may"),
    [
        ("sqs:Send*", "*", True),
        ("SQS:sendmessage", ORDERS, True),
        ("*", f"arn:aws:sqs:*:{ACCOUNT}:ord*", True),
        ("sqs:*", "arn:aws:sqs:us-east-1:000000000000:order?", True),
        ("sqs:*", "arn:aws:sqs:eu-west-1:000000000000:*", False),
        ("sqs:Receive*", "*", False),
        ("sqs:SendMessageBatch", "*", False),
    ],
)
def test_wildcards(server: Pipeline, admin: Key, allowed: str, resource: str, may: bool) -> None:
    till = server.add_user("till", policy(statement("Allow", allowed, resource)))
    assert sends(server, till) is may


def test_an_explicit_denial_wins(server: Pipeline, admin: Key) -> None:
    everything = policy(statement("Allow", "sqs:*"))
    but_send = policy(statement("Deny", "sqs:SendMessage", ORDERS))
    till = server.add_user("till", everything, but_send)
    assert not sends(server, till)
    server.must("ReceiveMessage", till, QueueUrl="orders")
    set_policy(server, admin, statement("Allow", "sqs:*", ORDERS, Principal="*"))
    assert not sends(server, till)


def test_everything_but(server: Pipeline, admin: Key) -> None:
    rule = {"Effect": "Allow", "NotAction": "sqs:Delete*", "Resource": "*"}
    till = server.add_user("till", policy(rule))
    assert sends(server, till)
    assert server.call("DeleteQueue", till, QueueUrl="orders").error == DENIED


def test_a_batch_is_covered_by_its_single_form(server: Pipeline, admin: Key) -> None:
    till = server.add_user("till", policy(statement("Allow", "sqs:SendMessage", ORDERS)))
    entries = [{"Id": "1", "MessageBody": "x"}]
    assert server.must("SendMessageBatch", till, QueueUrl="orders", Entries=entries)["Successful"]
    set_policy(server, admin, statement("Deny", "sqs:SendMessage", ORDERS, Principal="*"))
    assert server.call("SendMessageBatch", till, QueueUrl="orders", Entries=entries).error == DENIED


def test_conditions_on_where_a_request_comes_from(server: Pipeline, admin: Key) -> None:
    here = {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}
    till = server.add_user("till", policy(statement("Allow", "sqs:*", "*", Condition=here)))
    assert not sends(server, till)
    assert sends(server, till, Peer("10.1.2.3", secure=False))
    assert not sends(server, till, Peer("11.1.2.3", secure=False))


def test_what_a_proxy_claims_is_not_where_a_request_comes_from(server: Pipeline, admin: Key) -> None:
    here = {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}
    till = server.add_user("till", policy(statement("Allow", "sqs:*", "*", Condition=here)))
    request = server.request("ListQueues", till)
    request.headers["x-forwarded-for"] = "10.1.2.3"
    assert server.send(request).status == 403


def test_conditions_on_encryption(server: Pipeline, admin: Key) -> None:
    plain = {"Bool": {"aws:SecureTransport": "false"}}
    till = server.add_user("till", policy(statement("Allow", "sqs:*")))
    set_policy(server, admin, statement("Deny", "sqs:*", ORDERS, Principal="*", Condition=plain))
    assert not sends(server, till)
    assert sends(server, till, Peer("127.0.0.1", secure=True))


def test_conditions_on_the_time(server: Pipeline, admin: Key) -> None:
    until = {"DateLessThan": {"aws:CurrentTime": "2023-11-14T22:14:00Z"}}
    till = server.add_user("till", policy(statement("Allow", "sqs:*", "*", Condition=until)))
    assert sends(server, till)
    server.advance(60_000)
    assert not sends(server, till)


def test_names_in_policies(server: Pipeline, admin: Key) -> None:
    own = f"arn:aws:sqs:*:{ACCOUNT}:${{aws:username}}"
    orders = server.add_user("orders", policy(statement("Allow", "sqs:*", own)))
    others = server.add_user("others", policy(statement("Allow", "sqs:*", own)))
    assert sends(server, orders)
    assert not sends(server, others)


def test_what_was_decided_is_remembered_within_bounds(server: Pipeline, admin: Key) -> None:
    till = server.add_user("till", policy(statement("Allow", "sqs:SendMessage", ORDERS)))
    for number in range(3):
        assert sends(server, till)
        for name in range(DECISIONS):
            url = f"queue-{number}-{name}"
            assert server.call("SendMessage", till, QueueUrl=url, MessageBody="x").error == DENIED
        session = server.services.authenticator.authenticate(
            server.request("ListQueues", till), "127.0.0.1", server.node.now_ms, server.node.now_ms
        )
        assert 0 < len(session.decisions) <= DECISIONS


# --- policies of queues -------------------------------------------------------------------------------------


def test_a_queue_may_let_a_user_in_and_shut_it_out_again(server: Pipeline, admin: Key) -> None:
    till = server.add_user("till")
    arn = f"arn:aws:iam::{ACCOUNT}:user/till"
    assert not sends(server, till)
    set_policy(server, admin, statement("Allow", "sqs:SendMessage", ORDERS, Principal={"AWS": arn}))
    assert sends(server, till)
    set_policy(server, admin)
    assert not sends(server, till)


def test_a_root_is_never_locked_out_of_its_own_account(server: Pipeline, admin: Key) -> None:
    set_policy(server, admin, statement("Deny", "sqs:*", ORDERS, Principal="*"))
    assert sends(server, admin)
    server.change_user("admin", policies={"none": json.dumps(policy(statement("Deny", "*")))})
    assert sends(server, admin)
    set_policy(server, admin)


def test_another_account_needs_both(server: Pipeline, admin: Key) -> None:
    allowed = policy(statement("Allow", "sqs:*"))
    stranger = server.add_user("stranger", allowed, account=OTHER)
    powerless = server.add_user("powerless", account=OTHER)
    root = server.add_user("root", account=OTHER, root=True)
    assert not any(sends(server, key) for key in (stranger, powerless, root))
    set_policy(server, admin, statement("Allow", "sqs:SendMessage", ORDERS, Principal={"AWS": OTHER}))
    assert sends(server, stranger)
    assert sends(server, root)
    assert not sends(server, powerless)
    assert server.call("ReceiveMessage", stranger, QueueUrl=URL).error == DENIED
    set_policy(server, admin)
    assert not any(sends(server, key) for key in (stranger, powerless, root))


def test_no_policy_makes_another_account_the_owner(server: Pipeline, admin: Key) -> None:
    root = server.add_user("root", account=OTHER, root=True)
    set_policy(server, admin, statement("Allow", "sqs:*", ORDERS, Principal={"AWS": OTHER}))
    assert sends(server, root)
    server.must("GetQueueAttributes", root, QueueUrl=URL, AttributeNames=["All"])
    server.must("PurgeQueue", root, QueueUrl=URL)
    asked: dict[str, dict[str, Any]] = {
        "DeleteQueue": {"QueueUrl": URL},
        "SetQueueAttributes": {"QueueUrl": URL, "Attributes": {"Policy": ""}},
        "AddPermission": {"QueueUrl": URL, "Label": "l", "AWSAccountIds": [OTHER], "Actions": ["*"]},
        "RemovePermission": {"QueueUrl": URL, "Label": "l"},
        "TagQueue": {"QueueUrl": URL, "Tags": {"a": "b"}},
        "UntagQueue": {"QueueUrl": URL, "TagKeys": ["a"]},
        "ListQueueTags": {"QueueUrl": URL},
        "StartMessageMoveTask": {"SourceArn": ORDERS},
        "ListMessageMoveTasks": {"SourceArn": ORDERS},
    }
    for action, members in asked.items():
        assert server.call(action, root, **members).error == DENIED, action


def test_added_permissions_decide_and_removed_ones_do_not(server: Pipeline, admin: Key) -> None:
    stranger = server.add_user("stranger", policy(statement("Allow", "sqs:*")), account=OTHER)
    server.must(
        "AddPermission",
        admin,
        QueueUrl="orders",
        Label="cafe",
        AWSAccountIds=[OTHER],
        Actions=["SendMessage"],
    )
    assert sends(server, stranger)
    assert server.call("ReceiveMessage", stranger, QueueUrl=URL).error == DENIED
    server.must("RemovePermission", admin, QueueUrl="orders", Label="cafe")
    assert not sends(server, stranger)


def test_a_policy_dies_with_its_queue(server: Pipeline, admin: Key) -> None:
    till = server.add_user("till")
    set_policy(server, admin, statement("Allow", "sqs:*", ORDERS, Principal="*"))
    assert sends(server, till)
    server.must("DeleteQueue", admin, QueueUrl="orders")
    server.advance(61_000)
    server.must("CreateQueue", admin, QueueName="orders")
    assert not sends(server, till)


# --- what the forbidden look like ---------------------------------------------------------------------------


@pytest.mark.parametrize("account", [ACCOUNT, OTHER])
def test_who_may_not_ask_cannot_tell_whether_a_queue_exists(
    server: Pipeline, admin: Key, account: str
) -> None:
    till = server.add_user("till", account=account)
    asked: dict[str, dict[str, Any]] = {
        "SendMessage": {"MessageBody": "x"},
        "GetQueueAttributes": {},
        "DeleteQueue": {},
        "ReceiveMessage": {"WaitTimeSeconds": 0},
    }
    for action, members in asked.items():
        there = server.call(action, till, QueueUrl=URL, **members)
        missing = server.call(action, till, QueueUrl=URL.replace("orders", "nowhere"), **members)
        assert there.error == missing.error == DENIED
        assert str(there.members).replace("orders", "nowhere") == str(missing.members)
    there = server.call("GetQueueUrl", till, QueueName="orders", QueueOwnerAWSAccountId=ACCOUNT)
    missing = server.call("GetQueueUrl", till, QueueName="nowhere", QueueOwnerAWSAccountId=ACCOUNT)
    assert there.error == missing.error == DENIED
    there = server.call("ListMessageMoveTasks", till, SourceArn=ORDERS)
    missing = server.call("ListMessageMoveTasks", till, SourceArn=ORDERS.replace("orders", "nowhere"))
    assert there.error == missing.error == DENIED


def test_who_may_ask_is_told_that_there_is_none(server: Pipeline, admin: Key) -> None:
    till = server.add_user("till", policy(statement("Allow", "sqs:*")))
    answer = server.call("SendMessage", till, QueueUrl="nowhere", MessageBody="x")
    assert answer.error == "QueueDoesNotExist"


# --- message move tasks -------------------------------------------------------------------------------------


@pytest.fixture
def letters(server: Pipeline, admin: Key) -> str:
    """The ARN of a queue of dead letters."""
    server.must("CreateQueue", admin, QueueName="letters")
    arn = f"arn:aws:sqs:us-east-1:{ACCOUNT}:letters"
    redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
    server.must("SetQueueAttributes", admin, QueueUrl="orders", Attributes={"RedrivePolicy": redrive})
    return arn


START = ["sqs:StartMessageMoveTask", "sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]


def test_who_moves_messages_must_be_allowed_to_take_and_to_send_them(
    server: Pipeline, admin: Key, letters: str
) -> None:
    only_start = server.add_user("one", policy(statement("Allow", START[0], letters)))
    taker = server.add_user("two", policy(statement("Allow", START, letters)))
    mover = server.add_user(
        "three", policy(statement("Allow", START, letters), statement("Allow", "sqs:SendMessage", ORDERS))
    )
    target = {"SourceArn": letters, "DestinationArn": ORDERS}
    assert server.call("StartMessageMoveTask", only_start, **target).error == DENIED
    assert server.call("StartMessageMoveTask", taker, **target).error == DENIED
    server.must("StartMessageMoveTask", mover, **target)


def test_the_queue_of_dead_letters_has_its_say(server: Pipeline, admin: Key, letters: str) -> None:
    mover = server.add_user("mover", policy(statement("Allow", "sqs:*")))
    server.must("ListMessageMoveTasks", mover, SourceArn=letters)
    deny = statement("Deny", "sqs:*", letters, Principal={"AWS": f"arn:aws:iam::{ACCOUNT}:user/mover"})
    set_policy(server, admin, deny, queue="letters")
    for action in ("StartMessageMoveTask", "ListMessageMoveTasks"):
        assert server.call(action, mover, SourceArn=letters).error == DENIED


def test_a_queue_has_no_second_name_that_policies_do_not_know(
    server: Pipeline, admin: Key, letters: str
) -> None:
    but_letters = statement("Deny", "sqs:*", letters)
    mover = server.add_user("mover", policy(statement("Allow", "sqs:*"), but_letters))
    for name in (letters, letters.replace("arn:aws:", "arn:aws-cn:")):
        assert server.call("ListMessageMoveTasks", mover, SourceArn=name).error == DENIED
        assert server.call("StartMessageMoveTask", mover, SourceArn=name).error == DENIED


def test_who_may_not_cancel_a_task_cannot_by_its_handle(server: Pipeline, admin: Key, letters: str) -> None:
    server.must("SendMessage", admin, QueueUrl="letters", MessageBody="x")
    task = server.must("StartMessageMoveTask", admin, SourceArn=letters)
    till = server.add_user("till", policy(statement("Allow", "sqs:*", ORDERS)))
    stranger = server.add_user("stranger", policy(statement("Allow", "sqs:*")), account=OTHER)
    for key in (till, stranger):
        assert server.call("CancelMessageMoveTask", key, **task).error == DENIED
    server.must("CancelMessageMoveTask", admin, **task)

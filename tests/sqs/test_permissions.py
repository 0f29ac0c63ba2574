"""AddPermission and RemovePermission: the document they write, and what they refuse."""

import json

import pytest

from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.policies.permissions import with_permission, without_permission
from penstock.sqs.policies.policy import parse_queue_policy
from tests.sqs.policies import BOB, OTHER, OWNER, QUEUE, allowed, statement, user_policy


def test_adding_a_permission_writes_the_services_own_document() -> None:
    text = with_permission(None, QUEUE, "label", [OTHER], ["ReceiveMessage"])
    assert text == (
        f'{{"Version":"2008-10-17","Id":"{QUEUE}/SQSDefaultPolicy","Statement":[{{"Sid":"label",'
        f'"Effect":"Allow","Principal":{{"AWS":"arn:aws:iam::{OTHER}:root"}},"Action":"SQS:ReceiveMessage",'
        f'"Resource":"{QUEUE}"}}]}}'
    )
    more = json.loads(with_permission(text, QUEUE, "l2", [OWNER, OTHER], ["SendMessage", "*"]))
    assert more["Statement"][1]["Principal"] == {
        "AWS": [f"arn:aws:iam::{OWNER}:root", f"arn:aws:iam::{OTHER}:root"]
    }
    assert more["Statement"][1]["Action"] == ["SQS:SendMessage", "SQS:*"]


def test_a_permission_permits() -> None:
    policy = parse_queue_policy(with_permission(None, QUEUE, "label", [OTHER], ["SendMessage"]))
    assert allowed(BOB, policy, user_policy())
    assert allowed(BOB, policy, user_policy(), action="SendMessageBatch")
    assert not allowed(BOB, policy, user_policy(), action="ReceiveMessage")


@pytest.mark.parametrize(
    ("label", "accounts", "actions", "code", "message"),
    [
        (
            "l",
            [OTHER],
            ["SendMessage"],
            "InvalidParameterValue",
            "Value l for parameter Label is invalid. Reason: Already exists.",
        ),
        ("m", [OTHER], [], "MissingParameter", "The request must contain the parameter Actions."),
        (
            "m",
            [],
            ["SendMessage"],
            "InvalidParameterValue",
            "Value [] for parameter PrincipalId is invalid. Reason: Unable to verify.",
        ),
        (
            "m",
            [OTHER],
            ["RemovePermission"],
            "InvalidParameterValue",
            (
                "Value SQS:RemovePermission for parameter ActionName is invalid. "
                "Reason: Only the queue owner is allowed to invoke this action."
            ),
        ),
        ("m", [OTHER], ["SendMessage"] * 8, "OverLimit", "8 Actions were found, maximum allowed is 7."),
    ],
)
def test_permissions_that_cannot_be_added(
    label: str, accounts: list[str], actions: list[str], code: str, message: str
) -> None:
    current = with_permission(None, QUEUE, "l", [OTHER], ["SendMessage"])
    with pytest.raises(SqsError) as caught:
        with_permission(current, QUEUE, label, accounts, actions)
    assert (caught.value.query_code, caught.value.message) == (code, message)


@pytest.mark.parametrize("action", ["AddPermission", "CreateQueue", "DeleteQueue", "ListQueues", "TagQueue"])
def test_what_only_the_owner_may_do(action: str) -> None:
    with pytest.raises(SqsError, match="Only the queue owner is allowed"):
        with_permission(None, QUEUE, "l", [OTHER], [action])


def test_other_permissions_that_cannot_be_added() -> None:
    with pytest.raises(SqsError, match="list of valid actions"):
        with_permission(None, QUEUE, "l", [OTHER], ["Nope"])
    with pytest.raises(SqsError, match="Unable to verify"):
        with_permission(None, QUEUE, "l", ["bob"], ["SendMessage"])
    with pytest.raises(SqsError, match="parameter Label is invalid"):
        with_permission(None, QUEUE, "l l", [OTHER], ["SendMessage"])
    policy = None
    for number in range(20):
        policy = with_permission(policy, QUEUE, f"l{number}", [OTHER], ["SendMessage"])
    with pytest.raises(SqsError) as caught:
        with_permission(policy, QUEUE, "l20", [OTHER], ["SendMessage"])
    assert caught.value.kind is ErrorKind.OVER_LIMIT


def test_removing_permissions() -> None:
    one = with_permission(None, QUEUE, "a", [OTHER], ["SendMessage"])
    two = with_permission(one, QUEUE, "b", [OTHER], ["SendMessage"])
    assert without_permission(two, QUEUE, "b") == one
    assert without_permission(one, QUEUE, "a") is None
    for policy in (one, None):
        with pytest.raises(SqsError) as caught:
            without_permission(policy, QUEUE, "l")
        assert caught.value.message == "Value l for parameter Label is invalid. Reason: can't find label."


def test_a_policy_of_ones_own_can_be_edited_too() -> None:
    own = json.dumps({"Statement": statement(Sid="mine")})
    parse_queue_policy(own)
    edited = json.loads(with_permission(own, QUEUE, "l", [OTHER], ["SendMessage"]))
    assert [one["Sid"] for one in edited["Statement"]] == ["mine", "l"]
    assert without_permission(own, QUEUE, "mine") is None

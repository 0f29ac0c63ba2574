"""Policies: what may be written, what it means, and how permissions are added and removed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.names import QueueArn
from penstock.sqs.permissions import with_permission, without_permission
from penstock.sqs.policy import Policy, parse_identity_policy, parse_queue_policy
from penstock.sqs.policy_conditions import Context
from penstock.sqs.policy_evaluation import ANONYMOUS, AccessRequest, Caller, is_allowed, request_context
from penstock.sqs.wildcard import ANY, ONE, matches, pattern_of, text_of

OWNER, OTHER = "111111111111", "222222222222"
QUEUE = QueueArn("us-east-1", OWNER, "orders")
ALICE = Caller(account=OWNER, arn=f"arn:aws:iam::{OWNER}:user/alice", user_name="alice")
BOB = Caller(account=OTHER, arn=f"arn:aws:iam::{OTHER}:user/bob", user_name="bob")
ROOT = Caller(account=OWNER, arn=f"arn:aws:iam::{OWNER}:root", root=True)
OTHER_ROOT = Caller(account=OTHER, arn=f"arn:aws:iam::{OTHER}:root", root=True)
EVENTS = Caller(service="events.amazonaws.com")


def document(*statements: dict[str, Any], version: str = "2012-10-17") -> str:
    return json.dumps({"Version": version, "Statement": list(statements)})


def statement(**elements: Any) -> dict[str, Any]:
    chosen = {"Effect": "Allow", "Principal": "*", "Action": "sqs:*", "Resource": "*", **elements}
    return {name: value for name, value in chosen.items() if value is not None}


def queue_policy(*statements: dict[str, Any], version: str = "2012-10-17") -> Policy:
    return parse_queue_policy(document(*statements, version=version))


def user_policy(**elements: Any) -> Policy:
    return parse_identity_policy(document(statement(Principal=None, **elements)))


def allowed(
    caller: Caller,
    queue: Policy | None = None,
    *identity: Policy,
    action: str = "SendMessage",
    resource: str = str(QUEUE),
    context: Context | None = None,
) -> bool:
    request = AccessRequest(
        caller=caller, action=action, resource=resource, owner=OWNER, context=context or {}
    )
    return is_allowed(request, identity, queue)


# --- who ----------------------------------------------------------------------------------------------------


def test_nothing_is_allowed_by_default_but_to_the_owners_root() -> None:
    assert [allowed(caller) for caller in (ROOT, ALICE, BOB, OTHER_ROOT, ANONYMOUS, EVENTS)] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]


def test_the_owners_root_cannot_be_locked_out() -> None:
    assert allowed(ROOT, queue_policy(statement(Effect="Deny")))


@pytest.mark.parametrize(
    ("principal", "callers"),
    [
        ("*", {"alice", "anonymous", "events"}),
        ({"AWS": "*"}, {"alice", "anonymous", "events"}),
        ({"AWS": ALICE.arn}, {"alice"}),
        ({"AWS": [ALICE.arn, BOB.arn]}, {"alice"}),
        ({"AWS": OWNER}, set()),
        ({"AWS": f"arn:aws:iam::{OWNER}:root"}, set()),
        ({"Service": "events.amazonaws.com"}, {"events"}),
        ({"Service": "*"}, set()),
        ({"Service": OWNER}, set()),
        ({"Federated": "*"}, set()),
    ],
)
def test_whom_a_queue_policy_means_by_itself(principal: Any, callers: set[str]) -> None:
    """Naming an account hands the decision to the account; callers from elsewhere need their own permission."""
    policy = queue_policy(statement(Principal=principal))
    everyone = {"alice": ALICE, "bob": BOB, "anonymous": ANONYMOUS, "events": EVENTS}
    assert {name for name, caller in everyone.items() if allowed(caller, policy)} == callers


def test_inside_an_account_one_permission_is_enough() -> None:
    assert allowed(ALICE, None, user_policy())
    assert allowed(ALICE, queue_policy(statement(Principal={"AWS": ALICE.arn})))
    assert allowed(ALICE, queue_policy(statement(Principal={"AWS": OWNER})), user_policy())


def test_from_another_account_both_are_needed() -> None:
    for principal in ({"AWS": OTHER}, {"AWS": BOB.arn}, "*"):
        grant = queue_policy(statement(Principal=principal))
        assert not allowed(BOB, grant)
        assert allowed(BOB, grant, user_policy())
    assert not allowed(BOB, None, user_policy())
    assert allowed(OTHER_ROOT, queue_policy(statement(Principal={"AWS": OTHER})))


def test_not_principal() -> None:
    policy = queue_policy(
        statement(), statement(Effect="Deny", Principal=None, NotPrincipal={"AWS": [ALICE.arn]})
    )
    assert allowed(ALICE, policy)
    assert not allowed(ANONYMOUS, policy)
    assert not allowed(BOB, policy, user_policy())


def test_an_explicit_denial_wins() -> None:
    deny = statement(Effect="Deny", Principal={"AWS": OWNER}, Action="sqs:SendMessage")
    policy = queue_policy(statement(), deny)
    assert not allowed(ALICE, policy, user_policy())
    assert allowed(ALICE, policy, action="ReceiveMessage")
    denied = user_policy(Effect="Deny")
    assert not allowed(ALICE, queue_policy(statement()), user_policy(), denied)


# --- what and where -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "action", "expected"),
    [
        ("*", "SendMessage", True),
        ("SQS:*", "PurgeQueue", True),
        ("sqs:SendMessage", "SendMessage", True),
        ("SQS:sendmessage", "SendMessage", True),
        ("sqs:SendMessage", "SendMessageBatch", True),
        ("sqs:DeleteMessage", "DeleteMessageBatch", True),
        ("sqs:ChangeMessageVisibility", "ChangeMessageVisibilityBatch", True),
        ("sqs:SendMessageBatch", "SendMessage", False),
        ("sqs:Send*", "SendMessage", True),
        ("sqs:Get*", "SendMessage", False),
        ("sqs:?endMessage", "SendMessage", True),
        (["sqs:ReceiveMessage", "sqs:SendMessage"], "SendMessage", True),
        ("sqs:ReceiveMessage", "DeleteMessage", False),
    ],
)
def test_actions(pattern: Any, action: str, expected: bool) -> None:
    policy = queue_policy(statement(Action=pattern))
    assert allowed(ALICE, policy, action=action) is expected
    inverted = queue_policy(statement(Action=None, NotAction=pattern))
    assert allowed(ALICE, inverted, action=action) is not expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*", True),
        (str(QUEUE), True),
        (f"arn:aws:sqs:*:{OWNER}:orders", True),
        (f"arn:aws:sqs:us-east-1:{OWNER}:ord*", True),
        (f"arn:aws:sqs:us-east-1:{OWNER}:order?", True),
        (f"arn:aws:sqs:us-east-1:{OWNER}:Orders", False),
        (f"arn:aws:sqs:us-east-1:{OTHER}:orders", False),
        (["arn:aws:sqs:us-east-1:1:x", str(QUEUE)], True),
    ],
)
def test_resources(pattern: Any, expected: bool) -> None:
    assert allowed(ALICE, queue_policy(statement(Resource=pattern))) is expected
    assert allowed(ALICE, queue_policy(statement(Resource=None, NotResource=pattern))) is not expected


def test_a_queue_policy_without_a_resource_is_about_its_queue() -> None:
    assert allowed(ALICE, queue_policy(statement(Resource=None)))


def test_variables() -> None:
    own = "arn:aws:sqs:*:*:${aws:username}-*"
    policy = user_policy(Resource=own)
    context = request_context(ALICE, now_s=0)
    assert allowed(ALICE, None, policy, resource=f"arn:aws:sqs:r:{OWNER}:alice-1", context=context)
    assert not allowed(ALICE, None, policy, resource=f"arn:aws:sqs:r:{OWNER}:bob-1", context=context)
    assert not allowed(ALICE, None, policy, resource=f"arn:aws:sqs:r:{OWNER}:alice-1", context={})
    star = Caller(account=OWNER, user_name="*")
    context = request_context(star, now_s=0)
    assert not allowed(star, None, policy, resource=f"arn:aws:sqs:r:{OWNER}:bob-1", context=context)


# --- what may be written ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "[]",
        "{}",
        "[" * 8000,
        '{"Version":"2012-10-17"}',
        '{"Version":"2012-10-17","Statement":[]}',
        '{"Version":"2020-01-01","Statement":[{}]}',
        document(statement(Effect="allow")),
        document(statement(Effect=None)),
        document(statement(Principal=None)),
        document(statement(Principal="alice")),
        document(statement(Principal={"AWS": "alice"})),
        document(statement(Principal={"AWS": "arn:aws:iam::*:root"})),
        document(statement(Principal={"AWS": []})),
        document(statement(Principal={"User": "x"})),
        document(statement(Principal={})),
        document(statement(NotPrincipal="*")),
        document(statement(Action=None)),
        document(statement(Action=[])),
        document(statement(Action=7)),
        document(statement(Action="s3:GetObject")),
        document(statement(NotAction="sqs:*")),
        document(statement(Resource=[7])),
        document(statement(NotResource="*")),
        document(statement(Sid=7)),
        document(statement(Unknown=1)),
        document(statement(Condition=[])),
        document(statement(Condition={"StringEquals": {}})),
        document(statement(Condition={"StringEquals": {"k": []}})),
        document(statement(Condition={"StringEquals": {"k": {}}})),
        document(statement(Condition={"NoSuch": {"k": "v"}})),
        document(statement(Condition={"IpAddress": {"aws:SourceIp": "999.1.1.1"}})),
        document(statement(Condition={"NumericEquals": {"k": "x"}})),
        document(statement(Condition={"DateLessThan": {"k": "someday"}})),
        document(statement(Condition={"Bool": {"k": "maybe"}})),
        document(statement(Condition={"NullIfExists": {"k": "true"}})),
        document(statement(Resource="x\ufdd0")).replace("\\ufdd0", "\ufdd0"),
    ],
)
def test_bad_queue_policies(text: str) -> None:
    with pytest.raises(SqsError) as caught:
        parse_queue_policy(text)
    assert caught.value.kind is ErrorKind.INVALID_ATTRIBUTE_VALUE
    assert caught.value.message == "Invalid value for the parameter Policy."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (document(statement(Resource="x" * 9000)), "Submitted policy is over max allowed size."),
        (
            document(*[statement() for _ in range(21)]),
            "21 statements were found in the submitted policy, max allowed is 20",
        ),
        (
            document(statement(Action=[f"sqs:A{n}" for n in range(10)])),
            "10 actions were found in a statement from the submitted policy, max allowed is 7",
        ),
        (
            document(statement(Principal={"AWS": [f"{n:012}" for n in range(51)]})),
            "51 principals were found in the submitted policy, max allowed is 50",
        ),
        (
            document(statement(Condition={"StringEquals": {f"k{n}": "v" for n in range(11)}})),
            "11 conditions were found in the submitted policy, max allowed is 10",
        ),
    ],
)
def test_policies_over_a_bound(text: str, message: str) -> None:
    with pytest.raises(SqsError) as caught:
        parse_queue_policy(text)
    assert (caught.value.kind, caught.value.message) == (ErrorKind.OVER_LIMIT, message)


def test_a_users_policy_names_no_principal_but_resources() -> None:
    for bad in (statement(), statement(Principal=None, Resource=None)):
        with pytest.raises(SqsError):
            parse_identity_policy(document(bad))
    with pytest.raises(SqsError, match="max allowed size"):
        parse_identity_policy(document(statement(Principal=None, Resource="x" * 11_000)))


# --- wildcards ----------------------------------------------------------------------------------------------


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
def test_wildcards_mean_what_they_always_mean(pattern: str, text: str) -> None:
    from fnmatch import fnmatchcase

    compiled = pattern_of(pattern)
    assert compiled is not None
    assert matches(compiled, text) is fnmatchcase(text, pattern)


def test_wildcards_cannot_be_made_slow() -> None:
    pattern = pattern_of("*a" * 2000 + "b")
    assert pattern is not None
    assert not matches(pattern, "a" * 8000)
    pattern = pattern_of("*?a" * 500 + "b")
    assert pattern is not None
    assert not matches(pattern, "a" * 2000)


def test_variables_in_patterns() -> None:
    values = {"name": "a*"}.get
    assert pattern_of("${name}-*?${*}${$}", values) == f"a*-{ANY}{ONE}*$"
    assert pattern_of("${name}") == "${name}"
    assert pattern_of("${other}", values) is None
    assert text_of("*${name}", values) == "*a*"
    assert text_of("${other}", values) is None


# --- permissions --------------------------------------------------------------------------------------------


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

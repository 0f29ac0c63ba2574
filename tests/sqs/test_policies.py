"""Policies: what may be written, and what it means for a caller, an action and a queue."""

import time
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.policies.evaluation import ANONYMOUS, Caller, request_context
from penstock.sqs.policies.policy import parse_identity_policy, parse_new_queue_policy, parse_queue_policy
from penstock.sqs.policies.wildcard import ANY, ONE, matches, pattern_of, text_of
from tests.sqs.policies import (
    ALICE,
    BOB,
    EVENTS,
    OTHER,
    OTHER_ROOT,
    OWNER,
    QUEUE,
    ROOT,
    allowed,
    document,
    queue_policy,
    statement,
    user_policy,
)

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


def test_an_account_beside_a_user_whom_a_denial_spares_spares_nobody_else() -> None:
    """AWS asks for the account of such a user to be named as well."""
    spared = {"AWS": [ALICE.arn, f"arn:aws:iam::{OWNER}:root"]}
    policy = queue_policy(statement(), statement(Effect="Deny", Principal=None, NotPrincipal=spared))
    assert allowed(ALICE, policy)
    carol = Caller(account=OWNER, arn=f"arn:aws:iam::{OWNER}:user/carol", user_name="carol")
    assert not allowed(carol, policy, user_policy())
    assert not allowed(BOB, policy, user_policy())


def test_a_service_of_no_name_is_not_everybody() -> None:
    assert not allowed(ALICE, queue_policy(statement(Principal={"Service": "None"})))


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
        document(statement(Resource="x\ufdd0")),
        document(statement(Resource="x\ufdd1")).replace("\\ufdd1", "\ufdd1"),
        document(statement(Resource="x\ufdd0")).replace("fdd0", "FDD0"),
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


@given(st.text("ab*?", max_size=12), st.text("ab", max_size=24))
def test_wildcards_mean_what_they_always_mean(pattern: str, text: str) -> None:
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


@pytest.mark.parametrize(
    "text",
    ["*" + "?" * 7_000 + "x*", "*" + "?a" * 3_500 + "b?*", "*" + "a?" * 3_500 + "x*", "*a?b" * 1_700 + "*"],
)
def test_a_long_pattern_costs_no_more_than_its_length_times_a_few_operations(text: str) -> None:
    pattern = pattern_of(text)
    assert pattern is not None
    began = time.process_time()
    assert not matches(pattern, "a" * 29_999 + "b")
    assert time.process_time() - began < 1, "tried at each place it takes some 10 s"


def test_variables_in_patterns() -> None:
    values = {"name": "a*"}.get
    assert pattern_of("${name}-*?${*}${$}", values) == f"a*-{ANY}{ONE}*$"
    assert pattern_of("${name}") == "${name}"
    assert pattern_of("${other}", values) is None
    assert text_of("*${name}", values) == "*a*"
    assert text_of("${other}", values) is None
    assert pattern_of("${name}", {"name": ANY}.get) is None


@pytest.mark.parametrize("principal", [f"arn:aws:iam::{OWNER}:user/*", f"arn:aws:iam::{OWNER}:user/al?ce"])
@pytest.mark.parametrize("element", ["Principal", "NotPrincipal"])
def test_a_new_policy_names_no_pattern_of_users(principal: str, element: str) -> None:
    """It would match nobody, and a denial would deny nothing; what queues have already stays readable."""
    names: dict[str, Any] = {"Principal": None} | {element: {"AWS": principal}}
    text = document(statement(Effect="Deny", **names))
    with pytest.raises(SqsError) as caught:
        parse_new_queue_policy(text)
    assert caught.value.kind is ErrorKind.INVALID_ATTRIBUTE_VALUE
    assert parse_queue_policy(text).text == text

"""Conditions of policies: operators, keys that are missing, and sets of values."""

from typing import Any

import pytest

from penstock.sqs.policies.conditions import OPERATORS, BadCondition, Context, parse_conditions
from penstock.sqs.policies.evaluation import ANONYMOUS, Caller, request_context


def holds(operator: str, values: Any, context: Context, key: str = "k") -> bool:
    (condition,) = parse_conditions({operator: {key: values}})
    return condition.holds(context, variables=True)


ARN = "arn:aws:sns:us-east-1:111111111111:topic"


@pytest.mark.parametrize(
    ("operator", "wanted", "value", "expected"),
    [
        ("StringEquals", "a", "a", True),
        ("StringEquals", "a", "A", False),
        ("StringEquals", "a*", "a*", True),
        ("StringEquals", "a*", "ab", False),
        ("StringEquals", ["x", "a"], "a", True),
        ("StringNotEquals", ["x", "a"], "a", False),
        ("StringNotEquals", ["x", "y"], "a", True),
        ("StringEqualsIgnoreCase", "Straße", "STRASSE", True),
        ("StringNotEqualsIgnoreCase", "a", "A", False),
        ("StringLike", "a*c?", "abbbcd", True),
        ("StringLike", "a*", "ba", False),
        ("StringNotLike", "a*", "ab", False),
        ("NumericEquals", 10, "10.0", True),
        ("NumericEquals", "10", "x", False),
        ("NumericNotEquals", 10, "11", True),
        ("NumericLessThan", "10", "9.5", True),
        ("NumericLessThan", "10", "10", False),
        ("NumericLessThanEquals", "10", "10", True),
        ("NumericGreaterThan", "10", "11", True),
        ("NumericGreaterThanEquals", "10", "9", False),
        ("DateEquals", "2023-11-14T22:13:20Z", "1700000000", True),
        ("DateLessThan", "2024-01-01T00:00:00Z", "2023-12-31T23:59:59Z", True),
        ("DateGreaterThan", "2024-01-01", "2023-12-31T23:59:59Z", False),
        ("DateGreaterThanEquals", 1700000000, "2023-11-14T22:13:20Z", True),
        ("Bool", "true", "true", True),
        ("Bool", True, "false", False),
        ("IpAddress", "10.0.0.0/8", "10.1.2.3", True),
        ("IpAddress", "10.1.2.3", "10.1.2.3", True),
        ("IpAddress", ["192.0.2.0/24", "2001:db8::/32"], "2001:db8::1", True),
        ("IpAddress", "10.0.0.0/8", "::1", False),
        ("IpAddress", "10.0.0.0/8", "nonsense", False),
        ("NotIpAddress", "10.0.0.0/8", "10.1.2.3", False),
        ("NotIpAddress", "10.0.0.0/8", "11.1.2.3", True),
        ("ArnEquals", ARN, ARN, True),
        ("ArnLike", "arn:aws:sns:*:*:topic", ARN, True),
        ("ArnLike", "arn:aws:*:topic", ARN, False),
        ("ArnEquals", "arn:aws:sns:*:*:t*", ARN, True),
        ("ArnNotLike", "arn:aws:sns:*:*:other", ARN, True),
        ("ArnLike", "arn:*", "nonsense", False),
    ],
)
def test_operators(operator: str, wanted: Any, value: str, expected: bool) -> None:
    assert holds(operator, wanted, {"k": (value,)}) is expected


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_missing_key(operator: str) -> None:
    value = {"I": "10.0.0.0/8", "D": "2024-01-01", "N": "1", "B": "true"}.get(operator[0], "x")
    if operator == "NotIpAddress":
        value = "10.0.0.0/8"
    negated = "Not" in operator
    assert holds(operator, value, {}) is negated
    assert holds(f"{operator}IfExists", value, {})
    assert holds(f"ForAllValues:{operator}", value, {})
    assert not holds(f"ForAnyValue:{operator}", value, {})


def test_null() -> None:
    present = {"k": ("v",)}
    assert holds("Null", "true", {})
    assert not holds("Null", "true", present)
    assert holds("Null", False, present)
    assert not holds("Null", False, {})


def test_sets_of_values() -> None:
    both = {"k": ("a", "b")}
    assert holds("ForAllValues:StringEquals", ["a", "b", "c"], both)
    assert not holds("ForAllValues:StringEquals", ["a"], both)
    assert holds("ForAnyValue:StringEquals", ["a"], both)
    assert not holds("ForAnyValue:StringLike", ["c*"], both)
    assert holds("ForAnyValue:StringNotEquals", ["a"], both)
    assert not holds("ForAllValues:StringNotEquals", ["a"], both)
    assert not holds("StringNotEquals", ["a"], both)


def test_keys_are_found_in_any_case() -> None:
    assert holds("StringEquals", "v", {"aws:sourcearn": ("v",)}, key="aws:SourceArn")


def test_variables_in_values() -> None:
    context = {"k": ("alice",), "aws:username": ("alice",)}
    assert holds("StringEquals", "${aws:username}", context)
    assert holds("StringLike", "${aws:UserName}*", context)
    assert not holds("StringEquals", "${aws:nothing}", context)
    (condition,) = parse_conditions({"StringEquals": {"k": "${aws:username}"}})
    assert not condition.holds(context, variables=False)


def test_the_keys_of_a_request() -> None:
    alice = Caller(account="111111111111", arn="arn:aws:iam::111111111111:user/alice", user_name="alice")
    context = request_context(
        alice,
        now_s=1_700_000_000.9,
        source_ip="10.0.0.1",
        secure=True,
        user_agent="x",
        more={"aws:SourceArn": (ARN,)},
    )
    assert holds("DateEquals", "2023-11-14T22:13:20Z", context, key="aws:CurrentTime")
    assert holds("NumericEquals", 1_700_000_000, context, key="aws:EpochTime")
    assert holds("IpAddress", "10.0.0.0/8", context, key="aws:SourceIp")
    assert holds("Bool", "true", context, key="aws:SecureTransport")
    assert holds("ArnLike", "arn:aws:iam::111111111111:user/*", context, key="aws:PrincipalArn")
    assert holds("StringEquals", "User", context, key="aws:PrincipalType")
    assert holds("ArnEquals", ARN, context, key="aws:SourceArn")
    anonymous = request_context(ANONYMOUS, now_s=0)
    assert holds("Null", "true", anonymous, key="aws:username")
    assert holds("StringEquals", "Anonymous", anonymous, key="aws:PrincipalType")


@pytest.mark.parametrize(
    "block",
    [
        [],
        {"StringEquals": []},
        {"StringEquals": {}},
        {"StringEquals": {"": "v"}},
        {"StringEquals": {"k": None}},
        {"ForSomeValues:StringEquals": {"k": "v"}},
        {"stringequals": {"k": "v"}},
        {"NumericEquals": {"k": "1" * 100}},
        {"ForAnyValue:Null": {"k": "true"}},
    ],
)
def test_blocks_that_are_refused(block: Any) -> None:
    with pytest.raises(BadCondition):
        parse_conditions(block)

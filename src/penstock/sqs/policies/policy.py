"""Policy documents: JSON into statements that can be evaluated, within the limits of SQS.

A queue's policy says which callers may do what with that queue; a user's policy says what that user may do and names no
principals. `policies/evaluation.py` evaluates them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.sqs.errors import SqsError
from penstock.sqs.names import is_account
from penstock.sqs.policies.conditions import BadCondition, Condition, parse_conditions
from penstock.sqs.policies.wildcard import has_reserved_characters, has_variables, pattern_of
from penstock.sqs.refusals import invalid_attribute_value, over_limit

QUEUE_POLICY_BYTES = 8_192
IDENTITY_POLICY_BYTES = 10_240
STATEMENTS = 20
PRINCIPALS = 50
CONDITIONS = 10
ACTIONS_PER_STATEMENT = 7

VERSIONS = ("2008-10-17", "2012-10-17")
WITH_VARIABLES = "2012-10-17"

_ELEMENTS = frozenset(
    {
        "Sid",
        "Effect",
        "Principal",
        "NotPrincipal",
        "Action",
        "NotAction",
        "Resource",
        "NotResource",
        "Condition",
    }
)
_PRINCIPAL_KINDS = frozenset({"AWS", "Service", "Federated", "CanonicalUser"})
ANYONE = "*"


class Pattern(msgspec.Struct, frozen=True):
    """One resource of a statement: a pattern, or the text of one that differs from request to request."""

    pattern: str
    has_variables: bool = False


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """One rule. The three `not_…` flags turn a list into "everything but"."""

    sid: str | None
    allow: bool
    principals: frozenset[str] | None
    """`*`, account ids, ARNs, `Service:…`; None in a user's policy, which is about its user."""
    not_principals: bool = False
    actions: tuple[str, ...]
    """Patterns in lower case."""
    not_actions: bool = False
    resources: tuple[Pattern, ...] | None
    """None: the queue that the policy belongs to."""
    not_resources: bool = False
    conditions: tuple[Condition, ...] = ()


class Policy(msgspec.Struct, frozen=True):
    """A whole document, and its original text."""

    text: str
    statements: tuple[Statement, ...]
    variables: bool
    """Whether `${…}` means something: only since the second version of the language."""

    @property
    def conditional(self) -> bool:
        """Whether it may decide otherwise about the same caller, action and resource at another time or place."""
        return any(
            statement.conditions or any(resource.has_variables for resource in statement.resources or ())
            for statement in self.statements
        )


def parse_queue_policy(text: str) -> Policy:
    """The `Policy` attribute of a queue."""
    if len(text.encode()) > QUEUE_POLICY_BYTES:
        raise over_limit("Submitted policy is over max allowed size.")
    policy = _parse(text, with_principals=True)
    _check_bound(len(policy.statements), STATEMENTS, "statements were found in the submitted policy")
    for statement in policy.statements:
        _check_bound(
            len(statement.actions),
            ACTIONS_PER_STATEMENT,
            "actions were found in a statement from the submitted policy",
        )
    principals = sum(len(statement.principals or ()) for statement in policy.statements)
    _check_bound(principals, PRINCIPALS, "principals were found in the submitted policy")
    conditions = sum(len(statement.conditions) for statement in policy.statements)
    _check_bound(conditions, CONDITIONS, "conditions were found in the submitted policy")
    return policy


def parse_new_queue_policy(text: str) -> Policy:
    """The same when it is set. User names contain no `*` or `?`, and these are no wildcards here: a denial for `user/*` would
    deny no user, so it is refused, as in AWS. Queues that have such a policy already keep it.
    """
    policy = parse_queue_policy(text)
    for statement in policy.statements:
        if any(
            name.startswith("arn:") and ("*" in name or "?" in name) for name in statement.principals or ()
        ):
            raise _bad()
    return policy


def parse_identity_policy(text: str) -> Policy:
    """A policy that belongs to a user."""
    if len(text.encode()) > IDENTITY_POLICY_BYTES:
        raise over_limit("Submitted policy is over max allowed size.")
    return _parse(text, with_principals=False)


def _check_bound(count: int, most: int, what: str) -> None:
    if count > most:
        raise over_limit(f"{count} {what}, max allowed is {most}")


def _bad() -> SqsError:
    return invalid_attribute_value("Policy")


def _parse(text: str, *, with_principals: bool) -> Policy:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise _bad() from None
    if not isinstance(document, dict) or has_reserved_characters(text):
        raise _bad()
    version = document.get("Version", VERSIONS[0])
    statements = document.get("Statement")
    if isinstance(statements, dict):
        statements = [statements]
    if version not in VERSIONS or not isinstance(statements, list) or not statements:
        raise _bad()
    variables = version == WITH_VARIABLES
    return Policy(text, tuple(_statement(one, with_principals, variables) for one in statements), variables)


def _statement(document: Any, with_principals: bool, variables: bool) -> Statement:
    if not isinstance(document, dict) or not document.keys() <= _ELEMENTS:
        raise _bad()
    sid, effect = document.get("Sid"), document.get("Effect")
    if not isinstance(sid, str | None) or effect not in ("Allow", "Deny"):
        raise _bad()
    who, not_principals = _either(document, "Principal")
    what, not_actions = _either(document, "Action")
    where, not_resources = _either(document, "Resource")
    if (who is not None) is not with_principals or what is None or (where is None and not with_principals):
        raise _bad()
    try:
        conditions = parse_conditions(document.get("Condition", {}))
    except BadCondition:
        raise _bad() from None
    return Statement(
        sid=sid,
        allow=effect == "Allow",
        principals=None if who is None else _principals(who),
        not_principals=not_principals,
        actions=tuple(map(_action, _texts(what))),
        not_actions=not_actions,
        resources=None if where is None else tuple(_resource(one, variables) for one in _texts(where)),
        not_resources=not_resources,
        conditions=conditions,
    )


def _either(document: dict[str, Any], name: str) -> tuple[Any, bool]:
    """An element, or its `Not…` form; never both."""
    if name in document and f"Not{name}" in document:
        raise _bad()
    return document.get(name, document.get(f"Not{name}")), f"Not{name}" in document


def _texts(value: Any) -> list[str]:
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) and text for text in texts):
        raise _bad()
    return texts


def _principals(value: Any) -> frozenset[str]:
    if value == ANYONE:
        return frozenset({ANYONE})
    if not isinstance(value, dict) or not value or not value.keys() <= _PRINCIPAL_KINDS:
        raise _bad()
    # The kind stays with the name: any service (`"Service": "*"`) is not anyone.
    principals = {
        _account_or_arn(text) if kind == "AWS" else f"{kind}:{text}"
        for kind in value
        for text in _texts(value[kind])
    }
    return frozenset(principals)


def _account_or_arn(text: str) -> str:
    """A principal in one form: an account's root is the account itself."""
    if text == ANYONE or is_account(text):
        return text
    parts = text.split(":", 5)
    if len(parts) != 6 or parts[0] != "arn" or not is_account(parts[4]):
        raise _bad()
    return parts[4] if parts[2] == "iam" and parts[5] == "root" else text


def _action(text: str) -> str:
    lower = text.lower()
    if lower != "*" and not lower.startswith("sqs:"):
        raise _bad()
    pattern = pattern_of(lower)
    assert pattern is not None  # without variables there is always a pattern
    return pattern


def _resource(text: str, variables: bool) -> Pattern:
    if variables and has_variables(text):
        return Pattern(text, has_variables=True)
    return Pattern(pattern_of(text) or "")

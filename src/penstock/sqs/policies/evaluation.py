"""The result of policies for one request: explicitly denied, allowed, or neither.

An explicit denial takes precedence over everything except the root of the queue's own account, which can never be locked
out. Inside an account one permission is enough, the user's or the queue's; from another account both are needed. A queue's
policy that names an account leaves the decision to that account's own policies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from penstock.sqs.actions import ACTIONS
from penstock.sqs.policies.conditions import Context, values_in
from penstock.sqs.policies.policy import ANYONE, Policy, Statement
from penstock.sqs.policies.wildcard import matches, pattern_of


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The caller of a request; without an account it is unknown."""

    account: str | None = None
    arn: str | None = None
    user_name: str | None = None
    root: bool = False
    service: str | None = None
    """`events.amazonaws.com` and the like, when a service calls for itself."""


ANONYMOUS = Caller()


class AccessRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question: may this caller do this with that queue?"""

    caller: Caller
    action: str
    """The name of the action, without the service."""
    resource: str
    """The queue's ARN; for actions on no queue, the ARN with `*` or the asked-for name in its place."""
    owner: str
    """The account that owns the resource."""
    context: Context


class Verdict(NamedTuple):
    """The result of a list of policies."""

    denied: bool
    allowed: bool
    delegated: bool
    """Allowed to the caller's account, which has to allow it to the caller."""


def is_allowed(request: AccessRequest, identity: Sequence[Policy], queue: Policy | None) -> bool:
    """Whether the request may be made, given the caller's own policies and the queue's."""
    caller = request.caller
    own = caller.account == request.owner
    if own and caller.root:
        return True
    by_queue = verdict([] if queue is None else [queue], request)
    by_user = verdict(identity, request)
    if by_queue.denied or by_user.denied:
        return False
    if caller.account is None:
        return by_queue.allowed
    user_allows = by_user.allowed or caller.root
    if own:
        return by_queue.allowed or user_allows
    return (by_queue.allowed or by_queue.delegated) and user_allows


def verdict(policies: Iterable[Policy], request: AccessRequest) -> Verdict:
    """The combined result of all statements of some policies."""
    denied = allowed = delegated = False
    names = _action_names(request.action)
    for policy in policies:
        for statement in policy.statements:
            if not _applies(statement, names, request, policy.variables):
                continue
            direct, through_account = _principal_matches(statement, request.caller)
            if not direct and not through_account:
                continue
            if not statement.allow:
                denied = True
            elif direct:
                allowed = True
            else:
                delegated = True
    return Verdict(denied, allowed, delegated)


def _action_names(action: str) -> tuple[str, ...]:
    """The names that cover an action: its own, and for a batch that of its single form."""
    row = ACTIONS.get(action)
    single = row.single_form if row is not None else None
    names = (action,) if single is None else (action, single)
    return tuple(f"sqs:{name}".lower() for name in names)


def _applies(statement: Statement, names: tuple[str, ...], request: AccessRequest, variables: bool) -> bool:
    named = any(matches(pattern, name) for pattern in statement.actions for name in names)
    return (
        named is not statement.not_actions
        and _resource_matches(statement, request, variables)
        and all(condition.holds(request.context, variables) for condition in statement.conditions)
    )


def _resource_matches(statement: Statement, request: AccessRequest, variables: bool) -> bool:
    if statement.resources is None:
        return True
    value_of = values_in(request.context) if variables else None
    for one in statement.resources:
        pattern = pattern_of(one.pattern, value_of) if one.has_variables else one.pattern
        if pattern is not None and matches(pattern, request.resource):
            return not statement.not_resources
    return statement.not_resources


def _principal_matches(statement: Statement, caller: Caller) -> tuple[bool, bool]:
    """Whether the caller is meant, and whether only by way of its account."""
    principals = statement.principals
    if principals is None:
        return True, False
    direct = ANYONE in principals or caller.arn in principals
    if caller.service is not None:
        direct = direct or f"Service:{caller.service}" in principals
    through_account = caller.account in principals
    itself = direct or (through_account and caller.root)
    if statement.not_principals:
        # A denial that excepts a user also names its account, as AWS requires: this excepts no other user of the account.
        spared = direct or through_account if statement.allow else itself
        return not spared, False
    return itself, through_account


def request_context(
    caller: Caller,
    *,
    now_s: float,
    source_ip: str | None = None,
    secure: bool = False,
    user_agent: str | None = None,
    more: Context | None = None,
) -> dict[str, Sequence[str]]:
    """The keys that conditions may ask for; `more` adds those of special callers, such as `aws:SourceArn`."""
    values: dict[str, str | None] = {
        "aws:currenttime": datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "aws:epochtime": str(int(now_s)),
        "aws:securetransport": "true" if secure else "false",
        "aws:sourceip": source_ip,
        "aws:useragent": user_agent,
        "aws:username": caller.user_name,
        "aws:principalarn": caller.arn,
        "aws:principalaccount": caller.account,
        "aws:principaltype": _principal_type(caller),
        "aws:principalisawsservice": "true" if caller.service else "false",
    }
    context: dict[str, Sequence[str]] = {key: (value,) for key, value in values.items() if value is not None}
    for key, present in (more or {}).items():
        context[key.lower()] = present
    return context


def _principal_type(caller: Caller) -> str:
    if caller.account is None:
        return "Anonymous"
    return "Account" if caller.root else "User"

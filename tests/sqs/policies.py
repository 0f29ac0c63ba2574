"""Callers, policies and the question of who may do what, for the tests of policies."""

import json
from typing import Any

from penstock.sqs.names import QueueArn
from penstock.sqs.policies.conditions import Context
from penstock.sqs.policies.evaluation import AccessRequest, Caller, is_allowed
from penstock.sqs.policies.policy import Policy, parse_identity_policy, parse_queue_policy

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

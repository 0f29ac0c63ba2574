"""AddPermission and RemovePermission: editing a queue's policy document, statement by statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.sqs import parameters
from penstock.sqs.actions import ACTIONS
from penstock.sqs.names import QueueArn, is_account
from penstock.sqs.policies.policy import ACTIONS_PER_STATEMENT, VERSIONS, parse_queue_policy
from penstock.sqs.refusals import invalid_value, missing_parameter, over_limit

GRANTABLE = frozenset(
    {
        "*",
        "ChangeMessageVisibility",
        "DeleteMessage",
        "GetQueueAttributes",
        "GetQueueUrl",
        "ListDeadLetterSourceQueues",
        "PurgeQueue",
        "ReceiveMessage",
        "SendMessage",
    }
)
"""The actions that can be granted; the single form covers its batch form."""
OWNER_ONLY = frozenset(
    name for name, action in ACTIONS.items() if name not in GRANTABLE and action.single_form is None
)


def with_permission(
    policy: str | None, arn: QueueArn, label: str, accounts: Sequence[str], actions: Sequence[str]
) -> str:
    """The policy's text after AddPermission."""
    parameters.label(label)
    _check_actions(actions)
    if not accounts or not all(map(is_account, accounts)):
        shown = ", ".join(accounts)
        raise invalid_value(f"[{shown}]", "PrincipalId", "Unable to verify.")
    document = _document(policy, arn)
    if any(_sid(statement) == label for statement in document["Statement"]):
        raise invalid_value(label, "Label", "Already exists.")
    document["Statement"].append(
        {
            "Sid": label,
            "Effect": "Allow",
            "Principal": {"AWS": _one_or_list([f"arn:aws:iam::{account}:root" for account in accounts])},
            "Action": _one_or_list([f"SQS:{action}" for action in actions]),
            "Resource": str(arn),
        }
    )
    text = msgspec.json.encode(document).decode()
    parse_queue_policy(text)  # the bounds hold for what was added piece by piece too
    return text


def without_permission(policy: str | None, arn: QueueArn, label: str) -> str | None:
    """The policy's text after RemovePermission; None when nothing is left of it."""
    document = _document(policy, arn)
    kept = [statement for statement in document["Statement"] if _sid(statement) != label]
    if len(kept) == len(document["Statement"]):
        raise invalid_value(label, "Label", "can't find label.")
    document["Statement"] = kept
    return msgspec.json.encode(document).decode() if kept else None


def _check_actions(actions: Sequence[str]) -> None:
    if not actions:
        raise missing_parameter("Actions")
    if len(actions) > ACTIONS_PER_STATEMENT:
        raise over_limit(f"{len(actions)} Actions were found, maximum allowed is {ACTIONS_PER_STATEMENT}.")
    for action in actions:
        if action in OWNER_ONLY:
            raise invalid_value(
                f"SQS:{action}", "ActionName", "Only the queue owner is allowed to invoke this action."
            )
        if action not in GRANTABLE:
            raise invalid_value(
                f"SQS:{action}",
                "ActionName",
                "Please refer to the appropriate WSDL for a list of valid actions.",
            )


def _document(policy: str | None, arn: QueueArn) -> dict[str, Any]:
    if policy is None:
        return {"Version": VERSIONS[0], "Id": f"{arn}/SQSDefaultPolicy", "Statement": []}
    document: dict[str, Any] = msgspec.json.decode(policy, type=dict[str, Any])
    if isinstance(document["Statement"], dict):
        document["Statement"] = [document["Statement"]]
    return document


def _sid(statement: dict[str, Any]) -> Any:
    return statement.get("Sid")


def _one_or_list(values: list[str]) -> str | list[str]:
    return values[0] if len(values) == 1 else values

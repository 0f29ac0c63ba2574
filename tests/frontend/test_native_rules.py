"""Every request of the native protocol has a rule, and every rule an action that SQS knows."""

from __future__ import annotations

from typing import get_args

from penstock.frontend.authorize import OWNER_ONLY
from penstock.frontend.native.rules import RULES, About
from penstock.sqs.actions import ACTIONS
from penstock.wire import messages


def test_no_request_is_without_a_rule() -> None:
    assert set(RULES) == set(get_args(messages.Request))


def test_permissions_are_actions_of_sqs_and_kept_from_other_accounts_as_there() -> None:
    for rule in RULES.values():
        if rule.permission:
            assert rule.permission in ACTIONS
            assert rule.owner_only == (rule.permission in OWNER_ONLY)


def test_only_what_keeps_a_subscription_going_is_not_recorded() -> None:
    unrecorded = {kind.__name__ for kind, rule in RULES.items() if not rule.recorded_as}
    assert unrecorded == {"Hello", "Ping", "AddCredit", "Unsubscribe", "ReadClock"}


def test_requests_have_what_their_rule_is_about() -> None:
    fields = {
        About.QUEUE_ID: "queue_id",
        About.RECEIPTS: "receipts",
        About.NAME: "name",
        About.QUEUES: "queues",
    }
    for kind, rule in RULES.items():
        if rule.about in fields:
            assert fields[rule.about] in kind.__struct_fields__, kind

"""Whether a queue may have the settings that its attributes ask for: its dead-letter queue, and what contradicts."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.frontend.context import Context
from penstock.frontend.steps import Steps
from penstock.sqs.names import QueueArn
from penstock.sqs.queue_attributes import OVERFLOW, QueueAttributes
from penstock.sqs.redrive import (
    dead_letter_not_allowed,
    dead_letter_target_missing,
    dead_letter_type_differs,
)
from penstock.sqs.refusals import invalid_attribute_value, invalid_value

_REDRIVE = "RedrivePolicy"


def check_attributes(
    context: Context, arn: QueueArn, attributes: QueueAttributes, given: Mapping[str, str]
) -> Steps[None]:
    """Raises unless the engine can be told so; `given` are the texts that ask for it."""
    _check_together(attributes, given)
    if attributes.redrive_policy is not None and given.get(_REDRIVE):
        yield from _check_target(context, arn, attributes, given[_REDRIVE])


def dead_letter_queue_of(context: Context, attributes: QueueAttributes) -> str | None:
    """The engine's name of the queue that the redrive policy names."""
    policy = attributes.redrive_policy
    return context.native_name_of(policy.target) if policy is not None else None


def _check_together(attributes: QueueAttributes, given: Mapping[str, str]) -> None:
    if attributes.delay_seconds > attributes.message_retention_period:
        blamed = "DelaySeconds" if "DelaySeconds" in given else "MessageRetentionPeriod"
        raise invalid_attribute_value(blamed, "DelaySeconds must not be longer than MessageRetentionPeriod.")
    if attributes.overflow == "dead-letter" and attributes.redrive_policy is None:
        blamed = OVERFLOW if OVERFLOW in given else _REDRIVE
        raise invalid_attribute_value(blamed, f"{OVERFLOW} dead-letter needs a RedrivePolicy.")


def _check_target(context: Context, arn: QueueArn, attributes: QueueAttributes, text: str) -> Steps[None]:
    assert attributes.redrive_policy is not None
    target_arn = attributes.redrive_policy.target
    if target_arn.account != arn.account:
        raise invalid_value(text, _REDRIVE, "Dead-letter target owner should be same as the source.")
    if target_arn.region != arn.region:
        raise invalid_value(text, _REDRIVE, "Dead-letter target should be in same region as the source.")
    if target_arn.name == arn.name:
        raise invalid_value(text, _REDRIVE, "A queue can not be its own dead-letter queue.")
    target = yield from context.queues.find(context.native_name_of(target_arn), context.now_ms)
    if target is None:
        raise dead_letter_target_missing(text)
    if target.attributes.fifo_queue != attributes.fifo_queue:
        raise dead_letter_type_differs(text)
    allow = target.attributes.redrive_allow_policy
    if allow is not None and not allow.allows(arn):
        raise dead_letter_not_allowed(text)

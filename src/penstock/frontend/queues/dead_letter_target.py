"""Checks whether a queue may have the requested settings: its dead-letter target, and contradictions."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.frontend.context import Context
from penstock.frontend.queues.metadata import key_of, refresh
from penstock.frontend.queues.onward_queues import takes_from
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.frontend.queues.unfinished_queues import note_of
from penstock.model.settings import QueueSettings
from penstock.sqs.attributes.queue_attributes import OVERFLOW, QueueAttributes, extended_settings
from penstock.sqs.attributes.redrive import (
    dead_letter_not_allowed,
    dead_letter_target_missing,
    dead_letter_type_differs,
    late_queue_not_allowed,
)
from penstock.sqs.names import LATE_SUFFIX, QueueArn
from penstock.sqs.refusals import access_denied, invalid_attribute_value, invalid_value
from penstock.steps.step import Steps

_REDRIVE = "RedrivePolicy"


def check_attributes(
    context: Context, arn: QueueArn, attributes: QueueAttributes, given: Mapping[str, str]
) -> Steps[None]:
    """Raises unless the engine may get these settings; `given` are the attributes that request them."""
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
    if extended_settings(attributes)["overflow"] == "dead-letter" and attributes.redrive_policy is None:
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
    if not (yield from _takes(context, target, arn)):
        raise dead_letter_not_allowed(text)


def check_late_queue(context: Context, arn: QueueArn, settings: QueueSettings) -> Steps[None]:
    """Raises unless late messages of a new queue may go where they will."""
    if not settings.sorted:
        return
    late_arn = arn._replace(name=arn.name + LATE_SUFFIX)
    late = yield from context.queues.find(context.native_name_of(late_arn), context.now_ms)
    if late is None and not context.may("CreateQueue", late_arn):
        raise access_denied(str(late_arn))
    if late is not None and not (yield from _takes(context, late, arn)):
        raise late_queue_not_allowed(late_arn)


def _takes(context: Context, target: ResolvedQueue, source: QueueArn) -> Steps[bool]:
    """Whether a queue lets another one send messages to it; one that is being made does not say so yet."""
    name, queue_id = target.native_name, target.queue_id
    metadata, _ = context.queues.metadata_of(name, queue_id)
    if metadata is None:
        yield from refresh(note_of(name))
        yield from refresh(key_of(name))
        metadata, _ = context.queues.metadata_of(name, queue_id)
    if metadata is None:
        return not context.queues.is_unfinished(name, context.now_ms)
    return takes_from(metadata.attributes, source)

"""GetQueueAttributes' answer: the requested attributes of a queue as texts."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from penstock.sqs.attributes.queue_attributes import (
    ALL,
    EXTENDED_BOOLEANS,
    EXTENDED_CHOICES,
    EXTENDED_NUMBERS,
    HELD_MESSAGES,
    KMS_REUSE_SECONDS_DEFAULT,
    LATE_MESSAGES,
    QueueAttributes,
    known_names,
)
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.names import QueueArn
from penstock.sqs.refusals import unknown_attribute


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The present properties and counts of a queue, which cannot be set."""

    arn: QueueArn
    created_s: int
    last_modified_s: int
    messages: int = 0
    messages_not_visible: int = 0
    messages_delayed: int = 0
    messages_held: int = 0
    messages_late: int = 0


def attribute_texts(
    attributes: QueueAttributes, facts: QueueFacts, names: Iterable[str], compatibility: Compatibility
) -> dict[str, str]:
    """The attributes asked for; those that were never set, or do not apply, are left out."""
    wanted = list(names)
    known = known_names(compatibility)
    for name in wanted:
        if name not in known:
            raise unknown_attribute(name)
    if not wanted:
        return {}
    every = _all_texts(attributes, facts, compatibility)
    return every if ALL in wanted else {name: every[name] for name in every if name in wanted}


def _all_texts(
    attributes: QueueAttributes, facts: QueueFacts, compatibility: Compatibility
) -> dict[str, str]:
    texts: dict[str, str | None] = {
        "QueueArn": str(facts.arn),
        "ApproximateNumberOfMessages": str(facts.messages),
        "ApproximateNumberOfMessagesNotVisible": str(facts.messages_not_visible),
        "ApproximateNumberOfMessagesDelayed": str(facts.messages_delayed),
        "CreatedTimestamp": str(facts.created_s),
        "LastModifiedTimestamp": str(facts.last_modified_s),
        "VisibilityTimeout": str(attributes.visibility_timeout),
        "MaximumMessageSize": str(attributes.maximum_message_size),
        "MessageRetentionPeriod": str(attributes.message_retention_period),
        "DelaySeconds": str(attributes.delay_seconds),
        "ReceiveMessageWaitTimeSeconds": str(attributes.receive_message_wait_time_seconds),
        "SqsManagedSseEnabled": _boolean(attributes.sqs_managed_sse_enabled),
        "Policy": attributes.policy,
        "RedrivePolicy": _optional(attributes.redrive_policy),
        "RedriveAllowPolicy": _optional(attributes.redrive_allow_policy),
        "KmsMasterKeyId": attributes.kms_master_key_id,
    }
    if attributes.kms_data_key_reuse_period_seconds != KMS_REUSE_SECONDS_DEFAULT:
        texts["KmsDataKeyReusePeriodSeconds"] = str(attributes.kms_data_key_reuse_period_seconds)
    if attributes.fifo_queue:
        texts["FifoQueue"] = "true"
        texts["ContentBasedDeduplication"] = _boolean(attributes.content_based_deduplication)
        texts["DeduplicationScope"] = attributes.deduplication_scope
        texts["FifoThroughputLimit"] = attributes.fifo_throughput_limit
    if compatibility.extensions:
        texts |= _extended_texts(attributes, facts)
    return {name: text for name, text in texts.items() if text is not None}


_UNCHANGED = QueueAttributes()


def _extended_texts(attributes: QueueAttributes, facts: QueueFacts) -> dict[str, str | None]:
    """Attributes that SQS does not have, if they differ from their absence."""
    fields = {name: number.field for name, number in EXTENDED_NUMBERS.items()}
    fields |= {name: field for name, (field, _) in EXTENDED_CHOICES.items()}
    texts: dict[str, str | None] = {
        name: str(value)
        for name, field in fields.items()
        if (value := getattr(attributes, field)) != getattr(_UNCHANGED, field)
    }
    texts |= {name: "true" for name, field in EXTENDED_BOOLEANS.items() if getattr(attributes, field)}
    if facts.messages_held:
        texts[HELD_MESSAGES] = str(facts.messages_held)
    if facts.messages_late:
        texts[LATE_MESSAGES] = str(facts.messages_late)
    return texts


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _optional(value: object | None) -> str | None:
    return None if value is None else str(value)

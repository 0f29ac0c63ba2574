"""CreateQueue's and SetQueueAttributes' attributes: texts into values, checked, all or nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.sqs.attributes.queue_attributes import (
    EXTENDED_BOOLEANS,
    EXTENDED_CHOICES,
    EXTENDED_NUMBERS,
    FIFO_CHOICES,
    FIFO_ONLY,
    FIXED,
    OPTIONAL_NUMBERS,
    ORDERING,
    TEXTS,
    Number,
    QueueAttributes,
    numbers,
)
from penstock.sqs.attributes.redrive import parse_redrive_allow_policy, parse_redrive_policy
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.names import FIFO_SUFFIX, check_queue_name
from penstock.sqs.policies.policy import parse_new_queue_policy
from penstock.sqs.refusals import (
    invalid_attribute_value,
    one_encryption_only,
    only_with_fifo,
    queue_name_exists,
    unknown_attribute,
)

KEY_ID_CHARACTERS = 2048

_DECIMAL = re.compile(r"[0-9]{1,20}")
_BOOLEANS = {"true": True, "false": False}


def created_attributes(name: str, given: Mapping[str, str], compatibility: Compatibility) -> QueueAttributes:
    """The attributes of a new queue; the name must fit the kind of queue that is asked for."""
    fifo = given.get("FifoQueue", "").lower() == "true"
    check_queue_name(name, fifo=fifo)
    return _applied(QueueAttributes(fifo_queue=fifo), given, compatibility)


def changed_attributes(
    current: QueueAttributes, given: Mapping[str, str], compatibility: Compatibility
) -> QueueAttributes:
    """The attributes of a queue after SetQueueAttributes."""
    changed = _applied(current, given, compatibility)
    for name in FIXED:
        if name in given and getattr(changed, FIELDS[name]) != getattr(current, FIELDS[name]):
            raise invalid_attribute_value(name, "It is fixed when the queue is created.")
    return changed


def check_same_attributes(
    name: str, current: QueueAttributes, given: Mapping[str, str], compatibility: Compatibility
) -> None:
    """Raises unless CreateQueue of an existing queue asks for the values that it has now."""
    # A queue of the other kind has another name, so only the values can differ.
    if name.endswith(FIFO_SUFFIX) and "FifoQueue" not in given:
        given = {**given, "FifoQueue": "true"}
    asked = created_attributes(name, given, compatibility)
    for attribute in given:
        field = FIELDS[attribute]
        if getattr(asked, field) != getattr(current, field):
            raise queue_name_exists(attribute)


FIELDS: dict[str, str] = {
    "Policy": "policy",
    "RedrivePolicy": "redrive_policy",
    "RedriveAllowPolicy": "redrive_allow_policy",
    "SqsManagedSseEnabled": "sqs_managed_sse_enabled",
    "KmsMasterKeyId": "kms_master_key_id",
    "VisibilityTimeout": "visibility_timeout",
    "DelaySeconds": "delay_seconds",
    "MaximumMessageSize": "maximum_message_size",
    "MessageRetentionPeriod": "message_retention_period",
    "ReceiveMessageWaitTimeSeconds": "receive_message_wait_time_seconds",
    "KmsDataKeyReusePeriodSeconds": "kms_data_key_reuse_period_seconds",
    "FifoQueue": "fifo_queue",
    "ContentBasedDeduplication": "content_based_deduplication",
    **{name: field for name, (field, _) in FIFO_CHOICES.items()},
    **{name: number.field for name, number in EXTENDED_NUMBERS.items()},
    **{name: field for name, (field, _) in EXTENDED_CHOICES.items()},
    **EXTENDED_BOOLEANS,
}
"""The field that each settable attribute sets."""


def _applied(
    current: QueueAttributes, given: Mapping[str, str], compatibility: Compatibility
) -> QueueAttributes:
    ranges = numbers(compatibility)
    changes: dict[str, Any] = {}
    for name, text in given.items():
        _check_known(name, current.fifo_queue, ranges, compatibility)
        changes[FIELDS[name]] = _value(name, text, ranges, current)
    changed = msgspec.structs.replace(current, **changes)
    return _checked_together(_with_one_encryption(changed, changes), given)


def _check_known(name: str, fifo: bool, ranges: Mapping[str, Number], compatibility: Compatibility) -> None:
    if name in FIFO_CHOICES:
        if not fifo:
            raise only_with_fifo(name)
    elif name in FIFO_ONLY:
        if not fifo:
            raise unknown_attribute(name)
    elif not (
        name in ranges
        or name in TEXTS
        or name == "SqsManagedSseEnabled"
        or (compatibility.extensions and (name in EXTENDED_CHOICES or name in EXTENDED_BOOLEANS))
    ):
        raise unknown_attribute(name)


def _value(name: str, text: str, ranges: Mapping[str, Number], current: QueueAttributes) -> Any:
    if name in ranges:
        return _number(name, text, ranges[name])
    if name in FIFO_CHOICES:
        return _choice(name, text, FIFO_CHOICES[name][1])
    if name in EXTENDED_CHOICES:
        return _choice(name, text, EXTENDED_CHOICES[name][1])
    if name in EXTENDED_BOOLEANS:
        return _boolean(name, text)
    match name:
        case "SqsManagedSseEnabled" | "ContentBasedDeduplication":
            return _boolean(name, text)
        case "FifoQueue":
            if not _boolean(name, text):
                raise invalid_attribute_value(name, "Modifying queue type is not supported.")
            return True
        case "Policy":
            return parse_new_queue_policy(text).text if text else None
        case "RedrivePolicy":
            return parse_redrive_policy(text) if text else None
        case "RedriveAllowPolicy":
            return parse_redrive_allow_policy(text) if text else None
        case "KmsMasterKeyId":
            if len(text) > KEY_ID_CHARACTERS:
                raise invalid_attribute_value(name)
            return text or None
        case _:
            raise unknown_attribute(name)


def _number(name: str, text: str, number: Number) -> int | None:
    if not text and name in OPTIONAL_NUMBERS:
        return None
    if not _DECIMAL.fullmatch(text) or not number.low <= int(text) <= number.high:
        raise invalid_attribute_value(name)
    return int(text)


def _boolean(name: str, text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise invalid_attribute_value(name)
    return value


def _choice(name: str, text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise invalid_attribute_value(name)
    return text


def _with_one_encryption(changed: QueueAttributes, changes: Mapping[str, Any]) -> QueueAttributes:
    """A key switches the service's own encryption off; switching that on drops the key."""
    sets_key = changes.get("kms_master_key_id") is not None
    enables = changes.get("sqs_managed_sse_enabled") is True
    if sets_key and enables:
        raise one_encryption_only()
    if sets_key:
        return msgspec.structs.replace(changed, sqs_managed_sse_enabled=False)
    if enables:
        return msgspec.structs.replace(changed, kms_master_key_id=None)
    return changed


def _checked_together(changed: QueueAttributes, given: Mapping[str, str]) -> QueueAttributes:
    """Checks combinations of attributes."""
    if changed.fifo_throughput_limit == "perMessageGroupId" and changed.deduplication_scope != "messageGroup":
        blamed = "FifoThroughputLimit" if "FifoThroughputLimit" in given else "DeduplicationScope"
        raise invalid_attribute_value(
            blamed, "FifoThroughputLimit perMessageGroupId needs DeduplicationScope messageGroup."
        )
    unfit = "best-effort" if changed.fifo_queue else "fifo"
    if changed.ordering == unfit:
        raise invalid_attribute_value(
            ORDERING, f"A {'FIFO' if changed.fifo_queue else 'standard'} queue cannot have the order {unfit}."
        )
    return changed

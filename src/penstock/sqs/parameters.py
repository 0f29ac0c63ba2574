"""The ranges and alphabets of single parameters, each with the sentence that refuses it."""

from __future__ import annotations

import re

from penstock.sqs.compatibility import (
    LIST_RESULTS,
    MOVE_RATE,
    MOVE_TASKS_LISTED,
    RECEIVE_MESSAGES,
    WAIT_SECONDS,
    Compatibility,
)
from penstock.sqs.refusals import invalid_value, missing_parameter

# Letters, digits and all punctuation of ASCII: everything printable but the space.
_FIFO_ID = re.compile(r"[!-~]{1,128}")
_LABEL = re.compile(r"[A-Za-z0-9_-]{1,80}")


def delay_seconds(value: int | None, compatibility: Compatibility) -> int | None:
    """`DelaySeconds` of a message; None = the queue's."""
    if value is not None and not 0 <= value <= compatibility.delay_seconds:
        raise invalid_value(
            value, "DelaySeconds", f"DelaySeconds must be >= 0 and <= {compatibility.delay_seconds}."
        )
    return value


def visibility_timeout(value: int | None, compatibility: Compatibility) -> int | None:
    """`VisibilityTimeout` of a receive or a change; None = the queue's."""
    if value is not None and not 0 <= value <= compatibility.visibility_seconds:
        raise invalid_value(
            value,
            "VisibilityTimeout",
            f"Must be >= 0 and <= {compatibility.visibility_seconds}, if provided.",
        )
    return value


def required_visibility_timeout(value: int | None, compatibility: Compatibility) -> int:
    """`VisibilityTimeout` where it must be given."""
    checked = visibility_timeout(value, compatibility)
    if checked is None:
        raise missing_parameter("VisibilityTimeout")
    return checked


def wait_time_seconds(value: int | None) -> int | None:
    """`WaitTimeSeconds`; None = the queue's."""
    if value is not None and not 0 <= value <= WAIT_SECONDS:
        raise invalid_value(value, "WaitTimeSeconds", f"Must be >= 0 and <= {WAIT_SECONDS}, if provided.")
    return value


def max_number_of_messages(value: int | None) -> int:
    """`MaxNumberOfMessages`, 1 unless given."""
    if value is None:
        return 1
    if not 1 <= value <= RECEIVE_MESSAGES:
        raise invalid_value(
            value, "MaxNumberOfMessages", f"Must be between 1 and {RECEIVE_MESSAGES}, if provided."
        )
    return value


def _fifo_id(value: str | None, parameter: str) -> str | None:
    if value is not None and not _FIFO_ID.fullmatch(value):
        raise invalid_value(
            value,
            parameter,
            f"{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length.",
        )
    return value


def deduplication_id(value: str | None) -> str | None:
    """`MessageDeduplicationId`, if given."""
    return _fifo_id(value, "MessageDeduplicationId")


def group_id(value: str | None) -> str | None:
    """`MessageGroupId`, if given; on standard queues too."""
    return _fifo_id(value, "MessageGroupId")


def attempt_id(value: str | None) -> str | None:
    """`ReceiveRequestAttemptId`, if given."""
    return _fifo_id(value, "ReceiveRequestAttemptId")


def label(value: str) -> str:
    """`Label` of a permission."""
    if not _LABEL.fullmatch(value):
        raise invalid_value(
            value,
            "Label",
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.",
        )
    return value


def max_results(value: int | None) -> int | None:
    """`MaxResults` of a list of queues; None = one page without a token."""
    if value is not None and not 1 <= value <= LIST_RESULTS:
        raise invalid_value(value, "MaxResults", f"Must be between 1 and {LIST_RESULTS}, if provided.")
    return value


def max_tasks(value: int | None) -> int:
    """`MaxResults` of ListMessageMoveTasks, 1 unless given."""
    if value is None:
        return 1
    if not 1 <= value <= MOVE_TASKS_LISTED:
        raise invalid_value(value, "MaxResults", f"Must be between 1 and {MOVE_TASKS_LISTED}, if provided.")
    return value


def messages_per_second(value: int | None) -> int | None:
    """`MaxNumberOfMessagesPerSecond` of a move task; None = as fast as it goes."""
    if value is not None and not 1 <= value <= MOVE_RATE:
        raise invalid_value(
            value, "MaxNumberOfMessagesPerSecond", f"Must be between 1 and {MOVE_RATE}, if provided."
        )
    return value

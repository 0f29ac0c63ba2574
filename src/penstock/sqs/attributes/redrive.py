"""RedrivePolicy and RedriveAllowPolicy: where dead letters go, and which queues may send them here."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from penstock.sqs.errors import SqsError
from penstock.sqs.names import QueueArn, parse_arn
from penstock.sqs.refusals import invalid_attribute_value, invalid_value

POLICY_CHARACTERS = 8192
RECEIVE_COUNT_MAX = 1000
SOURCE_QUEUES = 10

Permission = Literal["allowAll", "denyAll", "byQueue"]

_REDRIVE = "RedrivePolicy"
_ALLOW = "RedriveAllowPolicy"


class RedrivePolicy(msgspec.Struct, frozen=True, rename="camel"):
    """After how many receives a message moves to which queue; the field order is that of the text."""

    dead_letter_target_arn: str
    max_receive_count: int

    def __post_init__(self) -> None:
        if parse_arn(self.dead_letter_target_arn) is None:  # it may have been read from the store
            raise ValueError(f"{self.dead_letter_target_arn!r} is not the ARN of a queue")

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()

    @property
    def target(self) -> QueueArn:
        """The dead-letter queue."""
        arn = parse_arn(self.dead_letter_target_arn)
        assert arn is not None  # checked when it was made
        return arn


class RedriveAllowPolicy(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which queues may name this one as their dead-letter queue."""

    redrive_permission: Permission
    source_queue_arns: tuple[str, ...] = ()

    def __str__(self) -> str:
        return msgspec.json.encode(self).decode()

    def allows(self, source: QueueArn) -> bool:
        """Whether a queue may send its dead letters here."""
        match self.redrive_permission:
            case "allowAll":
                return True
            case "denyAll":
                return False
            case "byQueue":
                return str(source) in self.source_queue_arns


def parse_redrive_policy(text: str) -> RedrivePolicy:
    """The policy a text holds; whether its target exists and fits is for who knows the queues."""
    document = _document(text, _REDRIVE, "Redrive policy is not a valid JSON map.")
    if "maxReceiveCount" not in document:
        raise _missing(text, _REDRIVE, "Redrive policy", "maxReceiveCount")
    if "deadLetterTargetArn" not in document:
        raise _missing(text, _REDRIVE, "Redrive policy", "deadLetterTargetArn")
    if len(document) > 2:
        raise invalid_value(
            text,
            _REDRIVE,
            "Only following attributes are supported: [deadLetterTargetArn, maxReceiveCount].",
        )
    count = document["maxReceiveCount"]
    number = _whole_number(count)
    if number is None or not 1 <= number <= RECEIVE_COUNT_MAX:
        raise invalid_value(
            text,
            _REDRIVE,
            f"Invalid value for maxReceiveCount: {_shown(count)}, "
            f"valid values are from 1 to {RECEIVE_COUNT_MAX} both inclusive.",
        )
    arn = document["deadLetterTargetArn"]
    if not isinstance(arn, str) or parse_arn(arn) is None:
        raise invalid_value(text, _REDRIVE, "Invalid value for deadLetterTargetArn.")
    return RedrivePolicy(arn, number)


def _whole_number(value: Any) -> int | None:
    """Numbers are taken as numbers and as texts, booleans as neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 6:
        return int(value)
    return None


def dead_letter_target_missing(policy_text: str) -> SqsError:
    """The refusal when no queue has the target's name."""
    return invalid_value(policy_text, _REDRIVE, "Dead letter target does not exist.")


def dead_letter_type_differs(policy_text: str) -> SqsError:
    """The refusal when one of the two queues is FIFO and the other is not."""
    return invalid_value(policy_text, _REDRIVE, "Dead-letter queue must be same type of queue as the source.")


def dead_letter_not_allowed(policy_text: str) -> SqsError:
    """The refusal when the target's RedriveAllowPolicy does not allow this source."""
    return invalid_value(
        policy_text,
        _REDRIVE,
        "The dead-letter queue's RedriveAllowPolicy does not allow this queue as a source.",
    )


def late_queue_not_allowed(late: QueueArn) -> SqsError:
    """The refusal when the queue that would get late messages does not allow this source."""
    return invalid_attribute_value(
        "Penstock.Ordering",
        f"Late messages would go to {late}, whose RedriveAllowPolicy does not allow this queue as a source.",
    )


def parse_redrive_allow_policy(text: str) -> RedriveAllowPolicy:
    """The policy a text holds."""
    document = _document(text, _ALLOW, "Redrive allow policy is not a valid JSON map.")
    if "redrivePermission" not in document:
        raise _missing(text, _ALLOW, "Redrive allow policy", "redrivePermission")
    permission = document["redrivePermission"]
    arns = document.get("sourceQueueArns")
    if document.keys() - {"redrivePermission", "sourceQueueArns"}:
        raise invalid_value(
            text,
            _ALLOW,
            "Only following attributes are supported: [redrivePermission, sourceQueueArns].",
        )
    if permission not in get_args(Permission):
        raise invalid_value(text, _ALLOW, f"Invalid value for redrivePermission: {_shown(permission)}.")
    if permission != "byQueue":
        if arns:
            raise invalid_value(
                text, _ALLOW, "sourceQueueArns can be given only when redrivePermission is byQueue."
            )
        return RedriveAllowPolicy(permission)
    if not isinstance(arns, list) or not 1 <= len(arns) <= SOURCE_QUEUES:
        raise invalid_value(text, _ALLOW, f"sourceQueueArns must name 1 to {SOURCE_QUEUES} queues.")
    if not all(isinstance(arn, str) and parse_arn(arn) for arn in arns):
        raise invalid_value(text, _ALLOW, "Invalid value for sourceQueueArns.")
    return RedriveAllowPolicy(permission, tuple(arns))


def _document(text: str, attribute: str, reason: str) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(text) if len(text) <= POLICY_CHARACTERS else None
    except (msgspec.DecodeError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise invalid_value(text, attribute, reason)
    return document


def _missing(text: str, attribute: str, what: str, key: str) -> SqsError:
    return invalid_value(text, attribute, f"{what} does not contain mandatory attribute: {key}.")


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

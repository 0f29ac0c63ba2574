"""The attributes of a queue: their names, ranges and defaults, and the typed value of all of them.

On the wire every value is text. `changed_attributes` reads those texts, `attribute_texts` writes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from penstock.model.document import Document
from penstock.model.setting import ExtendedAttribute, SettingRow
from penstock.model.settings import SETTINGS, Ordering, QueueSettings
from penstock.sqs.attributes.redrive import RedriveAllowPolicy, RedrivePolicy
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.messages.outgoing import QueueTraits

DeduplicationScope = Literal["queue", "messageGroup"]
ThroughputLimit = Literal["perQueue", "perMessageGroupId"]

KMS_REUSE_SECONDS_DEFAULT = 300


_ORDERING = "ordering"

EXTENDED: dict[str, tuple[SettingRow, ExtendedAttribute]] = {
    attribute.name: (setting, attribute)
    for setting in SETTINGS.values()
    if (attribute := setting.extended) is not None
}
"""The attributes that Penstock adds, by name: the setting that each one sets."""


class Number(NamedTuple):
    """An attribute that is a whole number."""

    field: str
    low: int
    high: int


def _number(setting: SettingRow, attribute: ExtendedAttribute) -> Number:
    """The range of a setting in the units of its attribute."""
    low, high = setting.row.low or 0, setting.row.high or 0
    return Number(attribute.field, -(-low // attribute.scale), high // attribute.scale)


def extended_fields(settings: QueueSettings) -> dict[str, Any]:
    """Settings as fields of `QueueAttributes` and in the units of the attributes, without the order."""
    return {
        attribute.field: value
        if value is None or attribute.scale == 1
        else max(_number(setting, attribute).low, value // attribute.scale)
        for setting, attribute in EXTENDED.values()
        if setting.name != _ORDERING
        for value in (getattr(settings, setting.name),)
    }


if TYPE_CHECKING:
    ExtendedAttributes = Document
else:
    # A field for each of them. `ordering` is below: it may be left to the kind of queue.
    _DEFAULTS = extended_fields(QueueSettings())
    ExtendedAttributes = msgspec.defstruct(
        "ExtendedAttributes",
        [
            (attribute.field, setting.declared, _DEFAULTS[attribute.field])
            for setting, attribute in EXTENDED.values()
            if attribute.field in _DEFAULTS
        ],
        bases=(Document,),
        frozen=True,
        kw_only=True,
        module=__name__,
    )


class QueueAttributes(ExtendedAttributes, frozen=True, kw_only=True):
    """All attributes that can be set through SQS; seconds and bytes as in SQS."""

    visibility_timeout: int = 30
    delay_seconds: int = 0
    maximum_message_size: int = 1_048_576
    message_retention_period: int = 345_600
    receive_message_wait_time_seconds: int = 0
    policy: str | None = None
    """The text as it was sent."""
    redrive_policy: RedrivePolicy | None = None
    redrive_allow_policy: RedriveAllowPolicy | None = None
    sqs_managed_sse_enabled: bool = True
    kms_master_key_id: str | None = None
    kms_data_key_reuse_period_seconds: int = KMS_REUSE_SECONDS_DEFAULT
    fifo_queue: bool = False
    content_based_deduplication: bool = False
    deduplication_scope: DeduplicationScope = "queue"
    fifo_throughput_limit: ThroughputLimit = "perQueue"
    ordering: Ordering | None = None
    """None: the default of the kind of queue, `fifo` or `best-effort`."""

    @property
    def engine_ordering(self) -> Ordering:
        """The order of the engine's queue."""
        return self.ordering or ("fifo" if self.fifo_queue else "best-effort")

    @property
    def traits(self) -> QueueTraits:
        """The properties of the queue that a send needs."""
        return QueueTraits(self.fifo_queue, self.content_based_deduplication, self.maximum_message_size)


def numbers(compatibility: Compatibility) -> dict[str, Number]:
    """The numeric attributes and their ranges."""
    table = {
        "VisibilityTimeout": Number("visibility_timeout", 0, compatibility.visibility_seconds),
        "DelaySeconds": Number("delay_seconds", 0, compatibility.delay_seconds),
        "MaximumMessageSize": Number("maximum_message_size", 1024, 1_048_576),
        "MessageRetentionPeriod": Number(
            "message_retention_period",
            compatibility.retention_seconds_min,
            compatibility.retention_seconds_max,
        ),
        "ReceiveMessageWaitTimeSeconds": Number("receive_message_wait_time_seconds", 0, 20),
        "KmsDataKeyReusePeriodSeconds": Number("kms_data_key_reuse_period_seconds", 60, 86_400),
    }
    return table | EXTENDED_NUMBERS if compatibility.extensions else table


ORDERING = "Penstock.Ordering"
OVERFLOW = "Penstock.OverflowPolicy"
HELD_MESSAGES = "Penstock.ApproximateNumberOfMessagesHeld"
LATE_MESSAGES = "Penstock.NumberOfMessagesLate"

_NUMBERS = ("count", "size", "duration")


EXTENDED_NUMBERS: dict[str, Number] = {
    name: _number(*pair) for name, pair in EXTENDED.items() if pair[0].kind in _NUMBERS
}
OPTIONAL_NUMBERS = frozenset(name for name in EXTENDED_NUMBERS if EXTENDED[name][0].optional)
"""Numbers that `""` sets back to "no limit"."""
EXTENDED_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (attribute.field, setting.choices)
    for name, (setting, attribute) in EXTENDED.items()
    if setting.kind == "choice"
}
EXTENDED_BOOLEANS: dict[str, str] = {
    name: attribute.field for name, (setting, attribute) in EXTENDED.items() if setting.kind == "switch"
}
FIXED = tuple(name for name, (setting, _) in EXTENDED.items() if setting.row.fixed)
"""Attributes that only CreateQueue sets."""


def extended_settings(attributes: QueueAttributes) -> dict[str, Any]:
    """The reverse of `extended_fields`: attributes by the name of the setting and in the engine's units."""
    return {
        setting.name: value if value is None or attribute.scale == 1 else value * attribute.scale
        for setting, attribute in EXTENDED.values()
        if setting.name != _ORDERING
        for value in (getattr(attributes, attribute.field),)
    }


FIFO_ONLY = ("ContentBasedDeduplication", "FifoQueue")
"""Unknown on standard queues, whatever the value."""
FIFO_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "DeduplicationScope": ("deduplication_scope", ("queue", "messageGroup")),
    "FifoThroughputLimit": ("fifo_throughput_limit", ("perQueue", "perMessageGroupId")),
}
"""Refused on standard queues, each with its own sentence."""
TEXTS = ("Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId")
"""Attributes that `""` removes."""
READ_ONLY = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
)
ALL = "All"


def known_names(compatibility: Compatibility) -> frozenset[str]:
    """Every name GetQueueAttributes takes, on any kind of queue."""
    extended = (
        {*EXTENDED_CHOICES, *EXTENDED_BOOLEANS, HELD_MESSAGES, LATE_MESSAGES}
        if compatibility.extensions
        else set()
    )
    return frozenset(
        {*numbers(compatibility), *FIFO_ONLY, *FIFO_CHOICES, *TEXTS, *READ_ONLY, "SqsManagedSseEnabled", ALL}
        | extended
    )

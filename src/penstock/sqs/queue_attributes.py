"""The attributes of a queue: their names, ranges and defaults, and the typed value that holds them all.

On the wire every value is text. `attribute_changes` reads those texts, `attribute_texts` writes them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from penstock.model import limits
from penstock.model.document import Document
from penstock.model.settings import Consumption, Ordering, Overflow, Replication, Stamps, WhenUncertain
from penstock.sqs.compatibility import Compatibility
from penstock.sqs.outgoing import QueueTraits
from penstock.sqs.redrive import RedriveAllowPolicy, RedrivePolicy

DeduplicationScope = Literal["queue", "messageGroup"]
ThroughputLimit = Literal["perQueue", "perMessageGroupId"]

KMS_REUSE_SECONDS_DEFAULT = 300


class QueueAttributes(Document, frozen=True, kw_only=True):
    """Everything a queue can be told through SQS; seconds and bytes as the service counts them."""

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
    maximum_messages: int | None = None
    maximum_bytes: int | None = None
    overflow: Overflow = "reject"
    default_time_to_live_seconds: int | None = None
    ordering: Ordering | None = None
    """None: what the kind of queue says, `fifo` or `best-effort`."""
    stamps: Stamps = "server"
    window_milliseconds: int = limits.WINDOW_MS_DEFAULT
    maximum_uncertainty_milliseconds: int = limits.MAX_UNCERTAINTY_MS_DEFAULT
    when_uncertain: WhenUncertain = "refuse"
    consumption: Consumption = "queue"
    retain_bytes: int | None = None
    idle_expiry_seconds: int | None = None
    partitions: int = 1
    replicas: int = 1
    replication: Replication = "sync"
    minimum_in_sync: int | None = None
    lifecycle: bool = False

    @property
    def engine_ordering(self) -> Ordering:
        """The order of the engine's queue."""
        return self.ordering or ("fifo" if self.fifo_queue else "best-effort")

    @property
    def traits(self) -> QueueTraits:
        """What a send must know of the queue."""
        return QueueTraits(self.fifo_queue, self.content_based_deduplication, self.maximum_message_size)


class Number(NamedTuple):
    """An attribute that is a whole number."""

    field: str
    low: int
    high: int


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
    return table | EXTENDED_NUMBERS | ORDER_NUMBERS if compatibility.extensions else table


MAXIMUM_MESSAGES = "Penstock.MaximumMessages"
MAXIMUM_BYTES = "Penstock.MaximumBytes"
OVERFLOW = "Penstock.OverflowPolicy"
DEFAULT_TIME_TO_LIVE = "Penstock.DefaultTimeToLiveSeconds"
ORDERING = "Penstock.Ordering"
WINDOW = "Penstock.WindowMilliseconds"
MAXIMUM_UNCERTAINTY = "Penstock.MaximumUncertaintyMilliseconds"
RETAIN_BYTES = "Penstock.RetainBytes"
IDLE_EXPIRY = "Penstock.IdleExpirySeconds"
HELD_MESSAGES = "Penstock.ApproximateNumberOfMessagesHeld"
LATE_MESSAGES = "Penstock.NumberOfMessagesLate"

EXTENDED_NUMBERS: dict[str, Number] = {
    MAXIMUM_MESSAGES: Number("maximum_messages", 1, limits.QUEUE_MESSAGES_MAX),
    MAXIMUM_BYTES: Number("maximum_bytes", 1, limits.QUEUE_BYTES_MAX),
    DEFAULT_TIME_TO_LIVE: Number(
        "default_time_to_live_seconds", 1, limits.RETENTION_MS_MAX // limits.SECOND_MS
    ),
    RETAIN_BYTES: Number("retain_bytes", 1, limits.QUEUE_BYTES_MAX),
    "Penstock.MinimumInSync": Number("minimum_in_sync", 1, limits.REPLICAS_PER_PARTITION),
    IDLE_EXPIRY: Number("idle_expiry_seconds", 1, limits.RETENTION_MS_MAX // limits.SECOND_MS),
}
"""Numbers that `""` sets back to "no limit"."""
ORDER_NUMBERS: dict[str, Number] = {
    WINDOW: Number("window_milliseconds", 0, limits.WINDOW_MS_MAX),
    "Penstock.Partitions": Number("partitions", 1, limits.PARTITIONS_PER_QUEUE),
    "Penstock.Replicas": Number("replicas", 1, limits.REPLICAS_PER_PARTITION),
    MAXIMUM_UNCERTAINTY: Number("maximum_uncertainty_milliseconds", 1, limits.WINDOW_MS_MAX),
}
EXTENDED_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    OVERFLOW: ("overflow", get_args(Overflow)),
    ORDERING: ("ordering", get_args(Ordering)),
    "Penstock.Stamps": ("stamps", get_args(Stamps)),
    "Penstock.WhenUncertain": ("when_uncertain", get_args(WhenUncertain)),
    "Penstock.Consumption": ("consumption", get_args(Consumption)),
    "Penstock.Replication": ("replication", get_args(Replication)),
}
EXTENDED_BOOLEANS: dict[str, str] = {"Penstock.Lifecycle": "lifecycle"}
FIXED = (ORDERING, "Penstock.Stamps", "Penstock.Consumption", "Penstock.Partitions")
"""Attributes that only CreateQueue sets."""

FIFO_ONLY = ("ContentBasedDeduplication", "FifoQueue")
"""Unknown on standard queues, whatever the value."""
FIFO_CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "DeduplicationScope": ("deduplication_scope", ("queue", "messageGroup")),
    "FifoThroughputLimit": ("fifo_throughput_limit", ("perQueue", "perMessageGroupId")),
}
"""Refused on standard queues with a sentence of their own."""
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

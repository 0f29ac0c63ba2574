"""Queue settings: the choices of a user, one row each, with defaults. `settings_checks` has the invalid combinations."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, get_type_hints

import msgspec

from penstock.model import limits
from penstock.model.document import RESERVED, Document
from penstock.model.setting import Setting, SettingRow, row_of

Overflow = Literal["reject", "drop-oldest", "dead-letter"]
Ordering = Literal["best-effort", "fifo", "causal", "clock"]
Stamps = Literal["server", "producer"]
WhenUncertain = Literal["hold", "refuse"]
Consumption = Literal["queue", "log", "both"]
Replication = Literal["sync", "async"]


class QueueSettings(Document, frozen=True, kw_only=True):
    """All settings of a queue; `None` means "no limit" or "none". Settings of newer versions are kept."""

    ordering: Annotated[
        Ordering,
        Setting(
            help="The order of delivery within a group: none (`best-effort`), by the server's numbers "
            "(`fifo`), by each producer's stamps (`causal`), or by time (`clock`).",
            fixed=True,
            sqs="Penstock.Ordering",
        ),
    ] = "best-effort"
    stamps: Annotated[
        Stamps,
        Setting(
            help="The source of the timestamps that order a `clock` queue. A `causal` queue always uses its "
            "producers' stamps.",
            fixed=True,
            sqs="Penstock.Stamps",
            applies=lambda settings: settings.ordering == "clock",
        ),
    ] = "server"
    window_ms: Annotated[
        int,
        Setting(
            help="How long the queue holds messages back to sort them by their producers' stamps.",
            low=0,
            high=limits.WINDOW_MS_MAX,
            sqs="Penstock.WindowMilliseconds",
            applies=lambda settings: settings.sorted,
        ),
    ] = limits.WINDOW_MS_DEFAULT
    max_uncertainty_ms: Annotated[
        int,
        Setting(
            help="The largest uncertainty of the server's time at which a `clock` queue accepts sends.",
            low=1,
            high=limits.WINDOW_MS_MAX,
            sqs="Penstock.MaximumUncertaintyMilliseconds",
            applies=lambda settings: settings.ordering == "clock",
        ),
    ] = limits.MAX_UNCERTAINTY_MS_DEFAULT
    when_uncertain: Annotated[
        WhenUncertain,
        Setting(
            help="What happens to a send to a `clock` queue while the server's time is too uncertain: it is "
            "refused, or held until the time is certain enough.",
            sqs="Penstock.WhenUncertain",
            applies=lambda settings: settings.ordering == "clock",
        ),
    ] = "refuse"
    consumption: Annotated[
        Consumption,
        Setting(
            help="How messages are consumed: consumers receive and delete them (`queue`), readers read a "
            "retained log (`log`), or `both`.",
            fixed=True,
            sqs="Penstock.Consumption",
        ),
    ] = "queue"
    retain_bytes: Annotated[
        int | None,
        Setting(
            help="The largest size of a retained log; the oldest messages are removed first. Messages older "
            "than the retention are always removed.",
            low=1,
            high=limits.QUEUE_BYTES_MAX,
            divided=True,
            sqs="Penstock.RetainBytes",
            applies=lambda settings: settings.has_log,
        ),
    ] = None
    idle_expiry_ms: Annotated[
        int | None,
        Setting(
            help="Time without use after which the queue is deleted, with its messages. Sending, receiving, "
            "reading, settling and waiting count as use; showing the queue does not.",
            low=limits.IDLE_EXPIRY_MS_MIN,
            high=limits.RETENTION_MS_MAX,
            sqs="Penstock.IdleExpirySeconds",
        ),
    ] = None
    partitions: Annotated[
        int,
        Setting(
            help="The number of partitions of the queue in a cluster.",
            low=1,
            high=limits.PARTITIONS_PER_QUEUE,
            fixed=True,
            sqs="Penstock.Partitions",
            applies=lambda settings: settings.is_clustered,
        ),
    ] = 1
    replicas: Annotated[
        int,
        Setting(
            help="The number of nodes of a cluster that store each partition. The front ends of a cluster "
            "have their own default (3).",
            low=1,
            high=limits.REPLICAS_PER_PARTITION,
            sqs="Penstock.Replicas",
            applies=lambda settings: settings.is_clustered,
        ),
    ] = 1
    replication: Annotated[
        Replication,
        Setting(
            help="When a send is acknowledged: when all replicas in sync have it on disk (`sync`), or when "
            "the primary has it on disk (`async`).",
            sqs="Penstock.Replication",
            applies=lambda settings: settings.is_clustered,
        ),
    ] = "sync"
    min_in_sync: Annotated[
        int | None,
        Setting(
            help="The least number of replicas in sync at which sends are accepted.",
            none="a majority of the replicas",
            low=1,
            high=limits.REPLICAS_PER_PARTITION,
            sqs="Penstock.MinimumInSync",
            applies=lambda settings: settings.is_clustered,
        ),
    ] = None
    max_messages: Annotated[
        int | None,
        Setting(
            help="The largest number of messages in the queue.",
            low=1,
            high=limits.QUEUE_MESSAGES_MAX,
            divided=True,
            for_logs=False,
            sqs="Penstock.MaximumMessages",
        ),
    ] = None
    max_bytes: Annotated[
        int | None,
        Setting(
            help="The largest size of all messages in the queue.",
            low=1,
            high=limits.QUEUE_BYTES_MAX,
            divided=True,
            for_logs=False,
            sqs="Penstock.MaximumBytes",
        ),
    ] = None
    max_groups: Annotated[
        int | None,
        Setting(
            help="The largest number of groups that have messages in the queue at the same time. To make room "
            "for another group, the overflow policy drops or dead-letters all messages of a group.",
            low=1,
            high=limits.QUEUE_MESSAGES_MAX,
            divided=True,
            for_logs=False,
            sqs="Penstock.MaxGroups",
        ),
    ] = None
    max_message_bytes: Annotated[
        int,
        Setting(
            help="The largest size of a message.",
            low=1,
            high=limits.MESSAGE_BYTES_MAX,
            flag="--max-message-size",
            sqs="MaximumMessageSize",
        ),
    ] = limits.MESSAGE_BYTES_DEFAULT
    overflow: Annotated[
        Overflow,
        Setting(
            help="What a full queue does with a send: refuse it, or drop or dead-letter the oldest messages "
            "to make room.",
            sqs="Penstock.OverflowPolicy",
            sqs_field="overflow",
        ),
    ] = "reject"
    visibility_timeout_ms: Annotated[
        int,
        Setting(
            help="How long a received message is hidden from other consumers.",
            low=0,
            high=limits.VISIBILITY_TIMEOUT_MS_MAX,
            sqs="VisibilityTimeout",
        ),
    ] = limits.VISIBILITY_TIMEOUT_MS_DEFAULT
    retention_ms: Annotated[
        int,
        Setting(
            help="How long messages are kept before they expire.",
            low=limits.RETENTION_MS_MIN,
            high=limits.RETENTION_MS_MAX,
            sqs="MessageRetentionPeriod",
        ),
    ] = limits.RETENTION_MS_DEFAULT
    delay_ms: Annotated[
        int,
        Setting(
            help="How long new messages wait before they can be received; at most the retention.",
            low=0,
            high=limits.RETENTION_MS_MAX,
            for_logs=False,
            sqs="DelaySeconds",
        ),
    ] = 0
    default_ttl_ms: Annotated[
        int | None,
        Setting(
            help="The time to live of messages that have none of their own.",
            low=1,
            high=limits.RETENTION_MS_MAX,
            for_logs=False,
            sqs="Penstock.DefaultTimeToLiveSeconds",
        ),
    ] = None
    deduplication_window_ms: Annotated[
        int,
        Setting(
            help="How long a deduplication id is remembered.", low=1, high=limits.DEDUPLICATION_WINDOW_MS_MAX
        ),
    ] = limits.DEDUPLICATION_WINDOW_MS_DEFAULT
    max_receives: Annotated[
        int | None,
        Setting(
            help="The number of receives after which an undeleted message moves to the dead-letter queue.",
            low=1,
            high=limits.RECEIVE_COUNT_MAX,
            for_logs=False,
            sqs="RedrivePolicy",
        ),
    ] = None
    dead_letter_queue: Annotated[
        str | None,
        Setting(
            help="The dead-letter queue. It is created if it does not exist.",
            for_logs=False,
            sqs="RedrivePolicy",
        ),
    ] = None
    lifecycle: Annotated[
        bool,
        Setting(
            help="Whether every change of the queue's messages is written to the log `penstock.lifecycle`.",
            sqs="Penstock.Lifecycle",
        ),
    ] = False

    @property
    def fifo(self) -> bool:
        """Whether groups are delivered in the order of the server's numbers."""
        return self.ordering == "fifo"

    @property
    def strict(self) -> bool:
        """Whether groups are delivered in one order, each message only after its predecessor is gone."""
        return self.ordering != "best-effort"

    @property
    def server_stamped(self) -> bool:
        """Whether the server stamps messages with its clock, and answers when the stamp has passed."""
        return self.ordering == "clock" and self.stamps == "server"

    @property
    def sorted(self) -> bool:
        """Whether messages are sorted by their producers' stamps before they are delivered."""
        return self.ordering == "causal" or (self.ordering == "clock" and self.stamps == "producer")

    @property
    def is_clustered(self) -> bool:
        """Whether nodes of a cluster share the queue."""
        return self.partitions > 1 or self.replicas > 1

    @property
    def least_in_sync(self) -> int:
        """How many replicas must be in sync for sends to be taken."""
        return self.min_in_sync or self.replicas // 2 + 1

    @property
    def has_queue(self) -> bool:
        """Whether consumers receive and delete messages."""
        return self.consumption != "log"

    @property
    def has_log(self) -> bool:
        """Whether messages are retained for readers of the log."""
        return self.consumption != "queue"


def _rows() -> dict[str, SettingRow]:
    annotations = get_type_hints(QueueSettings, include_extras=True)
    return {
        field.name: row_of(field.name, annotations[field.name], field.default)
        for field in msgspec.structs.fields(QueueSettings)
        if field.name not in RESERVED
    }


SETTINGS: Mapping[str, SettingRow] = MappingProxyType(_rows())
"""All settings that this version knows, by name."""

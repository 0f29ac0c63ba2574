"""SQS's queue attributes as the engine's settings, and back.

What the engine knows nothing of (policies, encryption, waits, deduplication by content) stays with the
front end's metadata; what only the engine knows is kept as it is.
"""

from __future__ import annotations

import msgspec

from penstock.model.limits import KIBIBYTE, SECOND_MS
from penstock.model.settings import QueueSettings
from penstock.sqs.queue_attributes import QueueAttributes
from penstock.sqs.redrive import RECEIVE_COUNT_MAX, RedrivePolicy

ENVELOPE_BYTES = 16 * KIBIBYTE
"""What the engine may need for a message beyond what SQS counts: how attributes are written, and our own."""


def settings_of(
    attributes: QueueAttributes,
    dead_letter_queue: str | None,
    current: QueueSettings | None = None,
) -> QueueSettings:
    """The engine's settings; `dead_letter_queue` is the engine's name of the redrive policy's target."""
    redrive = attributes.redrive_policy if dead_letter_queue is not None else None
    return msgspec.structs.replace(
        current or QueueSettings(),
        ordering=attributes.engine_ordering,
        stamps=attributes.stamps,
        window_ms=attributes.window_milliseconds,
        max_uncertainty_ms=attributes.maximum_uncertainty_milliseconds,
        when_uncertain=attributes.when_uncertain,
        consumption=attributes.consumption,
        retain_bytes=attributes.retain_bytes,
        idle_expiry_ms=_milliseconds(attributes.idle_expiry_seconds),
        partitions=attributes.partitions,
        replicas=attributes.replicas,
        replication=attributes.replication,
        min_in_sync=attributes.minimum_in_sync,
        max_messages=attributes.maximum_messages,
        max_bytes=attributes.maximum_bytes,
        max_message_bytes=attributes.maximum_message_size + ENVELOPE_BYTES,
        overflow=attributes.overflow,
        visibility_timeout_ms=attributes.visibility_timeout * SECOND_MS,
        retention_ms=attributes.message_retention_period * SECOND_MS,
        delay_ms=attributes.delay_seconds * SECOND_MS,
        default_ttl_ms=_milliseconds(attributes.default_time_to_live_seconds),
        max_receives=None if redrive is None else redrive.max_receive_count,
        dead_letter_queue=dead_letter_queue,
        lifecycle=attributes.lifecycle,
    )


def attributes_of(
    settings: QueueSettings,
    dead_letter_target_arn: str | None,
    current: QueueAttributes | None = None,
) -> QueueAttributes:
    """The attributes of a queue that the native protocol made or changed; parts of a second are dropped."""
    redrive = None
    if dead_letter_target_arn is not None and settings.max_receives is not None:
        # The engine counts further than SQS can say.
        redrive = RedrivePolicy(dead_letter_target_arn, min(settings.max_receives, RECEIVE_COUNT_MAX))
    before = current or QueueAttributes()
    size = settings.max_message_bytes
    if size == before.maximum_message_size + ENVELOPE_BYTES:
        size = before.maximum_message_size
    fifo_queue = settings.fifo or before.fifo_queue  # order by time may stand on either kind of queue
    usual = "fifo" if fifo_queue else "best-effort"
    return msgspec.structs.replace(
        before,
        fifo_queue=fifo_queue,
        ordering=None if settings.ordering == usual else settings.ordering,
        stamps=settings.stamps,
        window_milliseconds=settings.window_ms,
        maximum_uncertainty_milliseconds=settings.max_uncertainty_ms,
        when_uncertain=settings.when_uncertain,
        consumption=settings.consumption,
        retain_bytes=settings.retain_bytes,
        idle_expiry_seconds=_seconds(settings.idle_expiry_ms),
        partitions=settings.partitions,
        replicas=settings.replicas,
        replication=settings.replication,
        minimum_in_sync=settings.min_in_sync,
        maximum_messages=settings.max_messages,
        maximum_bytes=settings.max_bytes,
        maximum_message_size=size,
        overflow=settings.overflow,
        visibility_timeout=settings.visibility_timeout_ms // SECOND_MS,
        message_retention_period=settings.retention_ms // SECOND_MS,
        delay_seconds=settings.delay_ms // SECOND_MS,
        default_time_to_live_seconds=_seconds(settings.default_ttl_ms),
        redrive_policy=redrive,
        lifecycle=settings.lifecycle,
    )


def _milliseconds(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * SECOND_MS


def _seconds(milliseconds: int | None) -> int | None:
    return None if milliseconds is None else max(1, milliseconds // SECOND_MS)

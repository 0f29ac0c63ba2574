"""Converts SQS's queue attributes to the engine's settings, and back.

Attributes that the engine does not have (policies, encryption, waits, deduplication by content) stay in the front end's
metadata; settings that only the engine has are kept unchanged.
"""

from __future__ import annotations

import msgspec

from penstock.model.limits import KIBIBYTE, SECOND_MS
from penstock.model.settings import QueueSettings
from penstock.sqs.attributes.queue_attributes import (
    EXTENDED,
    QueueAttributes,
    extended_fields,
    extended_settings,
)
from penstock.sqs.attributes.redrive import RECEIVE_COUNT_MAX, RedrivePolicy

ENVELOPE_BYTES = 16 * KIBIBYTE
"""The bytes that the engine may need for a message in addition to SQS's size: the encoding of attributes, and our own."""


def settings_of(
    attributes: QueueAttributes,
    dead_letter_queue: str | None,
    current: QueueSettings | None = None,
) -> QueueSettings:
    """The engine's settings; `dead_letter_queue` is the engine's name of the redrive policy's target."""
    redrive = attributes.redrive_policy if dead_letter_queue is not None else None
    return msgspec.structs.replace(
        current or QueueSettings(),
        **extended_settings(attributes),
        ordering=attributes.engine_ordering,
        max_message_bytes=attributes.maximum_message_size + ENVELOPE_BYTES,
        visibility_timeout_ms=attributes.visibility_timeout * SECOND_MS,
        retention_ms=attributes.message_retention_period * SECOND_MS,
        delay_ms=attributes.delay_seconds * SECOND_MS,
        max_receives=None if redrive is None else redrive.max_receive_count,
        dead_letter_queue=dead_letter_queue,
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
    fifo_queue = settings.fifo or before.fifo_queue  # either kind of queue may be ordered by time
    usual = "fifo" if fifo_queue else "best-effort"
    return msgspec.structs.replace(
        before,
        **extended_fields(settings),
        fifo_queue=fifo_queue,
        ordering=None if settings.ordering == usual else settings.ordering,
        maximum_message_size=size,
        visibility_timeout=settings.visibility_timeout_ms // SECOND_MS,
        message_retention_period=settings.retention_ms // SECOND_MS,
        delay_seconds=settings.delay_ms // SECOND_MS,
        redrive_policy=redrive,
    )


ENGINE_FIELDS = frozenset(
    {
        "visibility_timeout",
        "delay_seconds",
        "maximum_message_size",
        "message_retention_period",
        "redrive_policy",
        "fifo_queue",
        *(attribute.field for _, attribute in EXTENDED.values()),
    }
)
"""The attributes that follow from the engine's settings without any metadata."""

"""What of a queue's settings is one partition's."""

from __future__ import annotations

import msgspec

from penstock.model.settings import QueueSettings

_SHARED_OUT = ("max_messages", "max_bytes", "retain_bytes")


def share_of(settings: QueueSettings) -> QueueSettings:
    """The settings of one partition: limits of the queue are shared out evenly, rounded up."""
    if settings.partitions == 1:
        return settings
    shares = {
        field: -(-limit // settings.partitions)
        for field in _SHARED_OUT
        if (limit := getattr(settings, field)) is not None
    }
    return msgspec.structs.replace(settings, **shares)

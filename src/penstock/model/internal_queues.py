"""Queues of Penstock's own, that it writes about itself: people read them, and nobody else writes them."""

from __future__ import annotations

from penstock.model import limits
from penstock.model.settings import QueueSettings

INTERNAL_PREFIX = "penstock."
"""What their names begin with; SQS cannot say a name with a dot, so none of its queues can be meant."""

RETENTION_MS = 14 * limits.DAY_MS
RETAIN_BYTES = 4 * 1024 * limits.MEBIBYTE
MESSAGE_BYTES = limits.MEBIBYTE


def internal_log_settings(replicas: int = 1) -> QueueSettings:
    """What such a log is made with; an operator may change how long it is kept."""
    return QueueSettings(
        consumption="log",
        retention_ms=RETENTION_MS,
        retain_bytes=RETAIN_BYTES,
        max_message_bytes=MESSAGE_BYTES,
        replicas=replicas,
    )

"""Queues that Penstock writes about itself: users may read them, and only Penstock writes them."""

from __future__ import annotations

from penstock.model import limits
from penstock.model.settings import QueueSettings

INTERNAL_PREFIX = "penstock."
"""The prefix of their names; SQS names contain no dot, so none of its queues can have it."""

RETENTION_MS = 14 * limits.DAY_MS
RETAIN_BYTES = 4 * 1024 * limits.MEBIBYTE
MESSAGE_BYTES = limits.MEBIBYTE


def internal_log_settings(replicas: int = 1) -> QueueSettings:
    """The initial settings of such a log; an operator may change its retention."""
    return QueueSettings(
        consumption="log",
        retention_ms=RETENTION_MS,
        retain_bytes=RETAIN_BYTES,
        max_message_bytes=MESSAGE_BYTES,
        replicas=replicas,
    )

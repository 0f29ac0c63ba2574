"""The lookups for a request before it is handled."""

from __future__ import annotations

from penstock.wire import messages


def queue_of(request: messages.Request | None) -> int:
    """The queue that a request names; 0: none."""
    partition_id = getattr(request, "queue_id", 0)
    return partition_id if isinstance(partition_id, int) else 0

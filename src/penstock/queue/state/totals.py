"""The counters of a partition, since its first message."""

from __future__ import annotations

import msgspec


class Totals(msgspec.Struct, array_like=True):
    """Messages since the queue was created."""

    sent: int = 0
    deleted: int = 0
    redelivered: int = 0
    expired: int = 0
    dead_lettered: int = 0
    dropped: int = 0
    purged: int = 0
    late: int = 0
    lost: int = 0
    """In failovers of a partition that is replicated `async`."""

"""When a queue will be full, and how many partitions it needs: arithmetic on a few numbers, without Spark."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

FULL_SHARE = 0.8
"""A queue that is so full needs an operator's attention."""
PARTITION_MESSAGES_A_SECOND = 20_000
PARTITION_BYTES_A_SECOND = 20 << 20
"""The rate that a partition is expected to sustain easily; `penstock bench` measures yours."""
HORIZON_HOURS = 10 * 365 * 24
"""More than ten years counts as never."""


class Growth(NamedTuple):
    """The facts about a queue from its rows."""

    queue: str
    messages: int
    """Sent and not ended, as far as the rows tell."""
    bytes_a_message: float
    messages_an_hour: float | None
    """The recent growth of the queue; negative: it shrinks; None: unknown, because it has no lifecycle log."""
    peak_messages_a_second: float | None

    @property
    def bytes_an_hour(self) -> float | None:
        """The same in bytes."""
        return None if self.messages_an_hour is None else self.messages_an_hour * self.bytes_a_message


def unknown_growth(queue: str) -> Growth:
    """For a queue without a lifecycle log: its growth is unknown, which does not mean zero."""
    return Growth(queue, 0, 0.0, None, None)


class Limit(NamedTuple):
    """One limit."""

    name: str
    used: float
    most: float
    an_hour: float | None
    """The rate at which it is used up; None: unknown."""

    @property
    def fill(self) -> float:
        """From 0 to 1, and more where it is exceeded."""
        return self.used / self.most if self.most > 0 else 0.0

    @property
    def hours_left(self) -> float | None:
        """Until 80 %; None: never at this rate, or unknown."""
        if self.fill >= FULL_SHARE:
            return 0.0
        if self.an_hour is None or self.an_hour <= 0:
            return None
        hours = (FULL_SHARE * self.most - self.used) / self.an_hour
        return hours if hours <= HORIZON_HOURS else None


class Forecast(NamedTuple):
    """The forecast for a queue."""

    queue: str
    messages: int
    bytes: int
    messages_per_hour: float | None
    bytes_per_hour: float | None
    limit: str
    """Which limit comes first: max-messages, max-bytes, retention, disk; empty: none."""
    fill: float
    hours_to_full: float | None
    peak_per_second: float | None
    partitions: int
    recommended_partitions: int | None


def forecast(
    growth: Growth, settings: Mapping[str, Any] | None, disk: tuple[int, int, float] | None, now_us: int
) -> Forecast:
    """`settings`: limits and fill of the queue as the server says; `disk`: bytes used, bytes in all, growth an hour."""
    known = settings or {}
    messages = int(known.get("messages", growth.messages))
    size = int(known.get("bytes", messages * growth.bytes_a_message))
    limits = [
        Limit("max-messages", messages, known.get("max_messages") or 0, growth.messages_an_hour),
        Limit("max-bytes", size, known.get("max_bytes") or 0, growth.bytes_an_hour),
        _retention(known, growth, now_us),
    ]
    if disk is not None:
        limits.append(Limit("disk", *disk))
    tight = _first([limit for limit in limits if limit.most > 0])
    partitions = int(known.get("partitions") or 1)
    return Forecast(
        growth.queue,
        messages,
        size,
        growth.messages_an_hour,
        growth.bytes_an_hour,
        tight.name if tight is not None else "",
        tight.fill if tight is not None else 0.0,
        tight.hours_left if tight is not None else None,
        growth.peak_messages_a_second,
        partitions,
        recommended_partitions(growth),
    )


def recommended_partitions(growth: Growth) -> int | None:
    """Enough for the busiest minute; None if its traffic is unknown."""
    peak = growth.peak_messages_a_second
    if peak is None:
        return None
    by_count = peak / PARTITION_MESSAGES_A_SECOND
    by_size = peak * growth.bytes_a_message / PARTITION_BYTES_A_SECOND
    return max(1, math.ceil(max(by_count, by_size)))


def _retention(known: Mapping[str, Any], growth: Growth, now_us: int) -> Limit:
    """The oldest message grows older by an hour an hour while the queue does not get shorter."""
    oldest_ms = known.get("oldest_sent_ms")
    if oldest_ms is None or known.get("is_log"):
        return Limit("retention", 0, 0, 0)
    hour_ms = 3_600_000
    age_ms = max(0, now_us // 1000 - oldest_ms)
    an_hour = growth.messages_an_hour
    ages = None if an_hour is None else hour_ms if an_hour > 0 else 0
    return Limit("retention", age_ms, known["retention_ms"], ages)


def _first(limits: list[Limit]) -> Limit | None:
    """The limit that is reached first; if there is none, the fullest."""
    if not limits:
        return None
    ending = [limit for limit in limits if limit.hours_left is not None]
    if ending:
        return min(ending, key=lambda limit: (limit.hours_left or 0.0, -limit.fill))
    return max(limits, key=lambda limit: limit.fill)

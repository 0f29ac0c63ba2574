"""Combines the descriptions of several partitions into one description of their queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.cluster.layout.entries import QueueEntry
from penstock.wire.messages import QueueDescription, QueueStatistics

NOTHING_KNOWN = QueueStatistics(
    ready=0,
    leased=0,
    delayed=0,
    moving=0,
    bytes=0,
    next_sequence=1,
    oldest_sent_ms=None,
    waiting_receivers=0,
    sent_total=0,
    deleted_total=0,
    redelivered_total=0,
    expired_total=0,
    dead_lettered_total=0,
    dropped_total=0,
    purged_total=0,
    segment_files=0,
    segment_bytes=0,
    memory_bytes=0,
)
"""Of a partition that did not answer."""

_NOT_SUMMED: dict[str, Callable[[Iterable[Any]], Any]] = {
    "next_sequence": lambda numbers: 1 + sum(number - 1 for number in numbers),
    "oldest_sent_ms": lambda times: min((time for time in times if time is not None), default=None),
    "waiting_receivers": max,  # a receiver that waits for the queue waits for each of its partitions
    "watermark_us": lambda times: min((time for time in times if time), default=0),
    "log_begin": lambda numbers: next(iter(numbers)),  # the log of the first partition begins there
    "log_groups": max,
}


def summed(statistics: Sequence[QueueStatistics]) -> QueueStatistics:
    """The statistics of a queue whose partitions, in order, have these."""
    if len(statistics) == 1:
        return statistics[0]
    return QueueStatistics(
        **{
            field: _NOT_SUMMED.get(field, sum)(getattr(one, field) for one in statistics)
            for field in QueueStatistics.__struct_fields__
        }
    )


def described(
    queue: QueueEntry, parts: Sequence[QueueDescription | str], forecast: str = ""
) -> QueueDescription:
    """A queue, as its partitions described themselves; of one that did not, why."""
    damage = [
        f"partition {ordinal}: {text}" if len(parts) > 1 else text
        for ordinal, part in enumerate(parts)
        if (text := part if isinstance(part, str) else part.damage)
    ]
    statistics = [NOTHING_KNOWN if isinstance(part, str) else part.statistics for part in parts]
    return QueueDescription(
        queue.queue_id,
        queue.name,
        queue.settings,
        queue.created_ms,
        summed(statistics),
        "; ".join(damage) or None,
        forecast=forecast or None,
    )

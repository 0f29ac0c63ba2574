"""The metrics of queues, from their descriptions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from penstock.metrics.exposition import Family, Sample
from penstock.wire.messages import QueueDescription, QueueStatistics

_STATES = ("ready", "leased", "delayed", "held", "moving")


class _Figure(NamedTuple):
    field: str
    name: str
    kind: Literal["gauge", "counter"]
    meaning: str


_FIGURES = (
    _Figure("bytes", "penstock_queue_bytes", "gauge", "Bytes of the messages in the queue."),
    _Figure(
        "waiting_receivers", "penstock_queue_waiting_receivers", "gauge", "Receives that wait for messages."
    ),
    _Figure("sent_total", "penstock_queue_sent_total", "counter", "Messages sent."),
    _Figure("deleted_total", "penstock_queue_deleted_total", "counter", "Messages deleted by consumers."),
    _Figure(
        "redelivered_total",
        "penstock_queue_redelivered_total",
        "counter",
        "Messages whose lease ended without a delete.",
    ),
    _Figure("expired_total", "penstock_queue_expired_total", "counter", "Messages that expired."),
    _Figure(
        "dead_lettered_total",
        "penstock_queue_dead_lettered_total",
        "counter",
        "Messages moved to another queue.",
    ),
    _Figure("dropped_total", "penstock_queue_dropped_total", "counter", "Messages dropped to make room."),
    _Figure("purged_total", "penstock_queue_purged_total", "counter", "Messages purged."),
    _Figure(
        "late_total",
        "penstock_queue_late_total",
        "counter",
        "Messages that arrived too late for their position in the order.",
    ),
    _Figure(
        "lost_total",
        "penstock_queue_lost_total",
        "counter",
        "Messages lost in a failover of an async queue or an unclean election.",
    ),
    _Figure("log_messages", "penstock_queue_log_messages", "gauge", "Messages retained in the log."),
    _Figure("log_bytes", "penstock_queue_log_bytes", "gauge", "Bytes retained in the log."),
    _Figure(
        "lifecycle_waiting",
        "penstock_queue_lifecycle_waiting",
        "gauge",
        "Lifecycle rows that are not in penstock.lifecycle yet.",
    ),
    _Figure(
        "lifecycle_dropped_total",
        "penstock_queue_lifecycle_dropped_total",
        "counter",
        "Lifecycle rows that were dropped because too many waited.",
    ),
    _Figure("segment_files", "penstock_queue_segment_files", "gauge", "Segment files on disk."),
    _Figure("segment_bytes", "penstock_queue_segment_bytes", "gauge", "Bytes of segment files on disk."),
    _Figure(
        "memory_bytes", "penstock_queue_memory_bytes", "gauge", "Memory that the engine uses for the queue."
    ),
)


def queue_families(queues: Sequence[QueueDescription], now_ms: int) -> Iterator[Family]:
    """Every figure of every queue."""
    labels = [{"queue": queue.name} for queue in queues]
    yield Family(
        "penstock_queue_messages",
        "gauge",
        "Messages in the queue, by state.",
        [
            Sample(getattr(queue.statistics, state), {"queue": queue.name, "state": state})
            for queue in queues
            for state in _STATES
        ],
    )
    yield Family(
        "penstock_queue_oldest_message_seconds",
        "gauge",
        "Age of the oldest message; 0 if there is none.",
        [
            Sample(_age_seconds(queue.statistics, now_ms), label)
            for queue, label in zip(queues, labels, strict=True)
        ],
    )
    yield Family(
        "penstock_queue_damaged",
        "gauge",
        "1 if the queue is out of service because stored data is damaged.",
        [Sample(int(queue.damage is not None), label) for queue, label in zip(queues, labels, strict=True)],
    )
    for figure in _FIGURES:
        yield Family(
            figure.name,
            figure.kind,
            figure.meaning,
            [
                Sample(getattr(queue.statistics, figure.field), label)
                for queue, label in zip(queues, labels, strict=True)
            ],
        )


def _age_seconds(statistics: QueueStatistics, now_ms: int) -> float:
    oldest_ms = statistics.oldest_sent_ms
    return 0 if oldest_ms is None else max(0, now_ms - oldest_ms) / 1000

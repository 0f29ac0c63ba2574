"""The data pipeline's forecasts about queues as sentences: which queues fill up, and which need more partitions."""

from __future__ import annotations

import msgspec

from penstock.cluster.layout.entries import CapacityEntry
from penstock.cluster.layout.view import ClusterView

FULL_SHARE = 0.8
_HOUR_MS = 3_600_000


def warning(entry: CapacityEntry) -> str:
    """One sentence about a queue that is filling or should have more partitions; empty where neither is so."""
    parts = []
    if entry.limit and entry.fill >= FULL_SHARE:
        parts.append(f"is at {entry.fill:.0%} of its {entry.limit}")
    elif entry.limit and entry.full_at_ms is not None:
        hours = max(0.0, (entry.full_at_ms - entry.measured_ms) / _HOUR_MS)
        parts.append(f"is at {entry.fill:.0%} of its {entry.limit} and reaches 80 % in about {_span(hours)}")
    if entry.recommended_partitions > entry.partitions:
        parts.append(
            f"has {entry.partitions} partitions where its busiest minute asks for {entry.recommended_partitions}"
        )
    return f"the queue {entry.queue} {', and '.join(parts)}" if parts else ""


def subject(entry: CapacityEntry) -> tuple[str, bool, int]:
    """The subject of a warning: as long as it stays the same, the warning is not repeated."""
    wider = entry.recommended_partitions if entry.recommended_partitions > entry.partitions else 0
    fills = entry.limit if entry.full_at_ms is not None or entry.fill >= FULL_SHARE else ""
    return fills, bool(fills) and entry.fill >= FULL_SHARE, wider


def capacity_entries(view: ClusterView) -> list[CapacityEntry]:
    """The entries by queue, without queues that are no longer in the layout."""
    return [entry for name, entry in sorted(view.capacity.items()) if name in view.queues]


def capacity_facts(entry: CapacityEntry) -> dict[str, object]:
    """The entry as programs read it, with the sentence for people."""
    facts = {**msgspec.structs.asdict(entry), "warning": warning(entry)}
    return facts if entry.growth_known else {**facts, "messages_per_hour": None, "bytes_per_hour": None}


def _span(hours: float) -> str:
    return (
        f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours" if hours >= 2 else "an hour or two"
    )

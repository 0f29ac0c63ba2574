"""The metrics of consumer groups: the lag of each, and the number of its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.metrics.exposition import Family, Sample
from penstock.wire.log_messages import GroupDescription

QueueGroup = tuple[str, GroupDescription]
"""A queue's name, and one of its groups."""


def group_families(groups: Sequence[QueueGroup]) -> Iterator[Family]:
    """Every figure of every group."""
    labels = [{"queue": queue, "group": group.name} for queue, group in groups]
    figures: list[tuple[str, str, list[float]]] = [
        (
            "penstock_group_lag_messages",
            "Messages in the log after the group's position.",
            [group.lag_messages for _, group in groups],
        ),
        (
            "penstock_group_lag_seconds",
            "Age of the group's next message; 0 if there is none.",
            [group.lag_ms / 1000 for _, group in groups],
        ),
        (
            "penstock_group_members",
            "Members of the group.",
            [len(group.members) for _, group in groups],
        ),
    ]
    for name, meaning, values in figures:
        yield Family(name, "gauge", meaning, map(Sample, values, labels))

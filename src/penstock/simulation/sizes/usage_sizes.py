"""Sizes of the usage record, small in runs in which front ends record it; drawn separately, so that other runs do not change."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from penstock.simulation.sizes.size import Size

USAGE = (
    Size(
        "usage.collector",
        "BATCH_EVENTS",
        (1, 4, 30),
        "rows of usage handed on in one batch or in several",
    ),
    Size(
        "usage.collector",
        "BLOCK_EVENTS",
        (1, 3),
        "rows of answers that leave together, written as one entry or as several",
        ("frontend.usage.record_usage",),
    ),
    Size(
        "usage.spool",
        "LEAST_BYTES",
        (6_000, 12_000),
        "a spool with room for all rows that wait, or one that goes round and gets full",
        ("usage.collector",),
    ),
)
_SHARE = 0.4
_AS_IN_PRODUCTION = ("model.limits.PRODUCERS_PER_QUEUE", "journal_file_bytes")
"""Every process is a producer, and a batch of usage is larger than what others send: both have to fit."""


def with_usage_sizes(sizes: Mapping[str, int], random: Random) -> Mapping[str, int]:
    """The small sizes of a run, with those of usage, and without those that leave no room for it."""
    found = {name: value for name, value in sizes.items() if name not in _AS_IN_PRODUCTION}
    for size in USAGE:
        value = random.choice(size.small)
        if random.random() < _SHARE:
            found[f"{size.module}.{size.name}"] = value
    return found

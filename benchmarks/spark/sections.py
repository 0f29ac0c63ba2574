"""The sections of `penstock bench --spark`, by name; each begins Spark when it is measured, and not before.

A new one is a function here, rows for its name in `bench/options.py`, `command.py` and `progress.py`, and a file of its own
that yields the figures.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.stage import Stage


def source(stage: Stage) -> Iterator[Figure]:
    """Reading logs through the data source, and writing through the sink."""
    from benchmarks.spark.source import measure

    yield from measure(stage)


def jobs(stage: Stage) -> Iterator[Figure]:
    """What jobs do with many rows, beside DuckDB."""
    from benchmarks.spark.jobs import measure

    yield from measure(stage)


def follow(stage: Stage) -> Iterator[Figure]:
    """A job that follows its log: latency, what it costs the broker, memory."""
    from benchmarks.spark.follow import measure

    yield from measure(stage)

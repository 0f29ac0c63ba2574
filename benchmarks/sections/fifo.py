"""FIFO queues with many groups, in and out in batches."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure
from benchmarks.sections.throughput import measure_loads
from benchmarks.stage import Stage

GROUPS = 10_000
SIZE_BYTES = 100


def measure(stage: Stage) -> Iterator[Figure]:
    """The same loads as `throughput`; consecutive messages are of different groups."""
    with stage.server() as server:
        yield from measure_loads(
            stage, server, SIZE_BYTES, "", f"FIFO, {GROUPS:,} groups, {SIZE_BYTES} B", GROUPS, "fifo."
        )

"""The metrics of a front end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.metrics.exposition import Family, Sample


class FrontEndDescription(NamedTuple):
    """A front end for operators."""

    name: str
    version: str
    started_ms: int
    connected: bool
    cpu_seconds: float
    memory_bytes: int


def front_end_families(front_end: FrontEndDescription) -> Iterator[Family]:
    """Every figure of the front end itself."""
    about = {"frontend": front_end.name, "version": front_end.version}
    yield Family(
        "penstock_frontend_info", "gauge", "Name and version of this front end; always 1.", [Sample(1, about)]
    )
    for name, meaning, value in (
        ("start_time_seconds", "Start time, in seconds since 1970.", front_end.started_ms / 1000),
        (
            "connected",
            "1 while a node can be reached; otherwise requests get status 503.",
            int(front_end.connected),
        ),
        ("memory_bytes", "Resident memory of the process.", front_end.memory_bytes),
    ):
        yield Family(f"penstock_frontend_{name}", "gauge", meaning, [Sample(value)])
    yield Family(
        "penstock_frontend_cpu_seconds_total",
        "counter",
        "Processor time of the process.",
        [Sample(front_end.cpu_seconds)],
    )

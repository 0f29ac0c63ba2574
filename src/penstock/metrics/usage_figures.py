"""The metrics of usage rows."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.metrics.exposition import Family, Sample


def usage_families(recorded: int, reported: int, dropped: int, waiting: int) -> Iterator[Family]:
    """What happened to the usage rows of all requests, through SQS and the native protocol."""
    for name, meaning, total in (
        ("recorded", "Requests through SQS and the native protocol.", recorded),
        ("reported", "Requests that are in the log penstock.usage.", reported),
        (
            "dropped",
            "Requests that did not fit into the spool; the log shows where they are missing.",
            dropped,
        ),
    ):
        yield Family(f"penstock_usage_{name}_total", "counter", meaning, [Sample(total)])
    yield Family("penstock_usage_waiting", "gauge", "Requests that wait for the log.", [Sample(waiting)])

"""The metrics of a node's port for readers with tickets."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.metrics.exposition import Family, Sample


def reader_families(readers: int, refused: int, sent_bytes: int) -> Iterator[Family]:
    """The readers of logs at this node, and their traffic."""
    yield Family(
        "penstock_readers", "gauge", "Readers that are connected directly, with a ticket.", [Sample(readers)]
    )
    for name, meaning, total in (
        (
            "refused",
            "Connections that were closed because of a missing ticket or a forbidden request.",
            refused,
        ),
        ("sent_bytes", "Bytes sent to readers directly, not through a front end.", sent_bytes),
    ):
        yield Family(f"penstock_readers_{name}_total", "counter", meaning, [Sample(total)])

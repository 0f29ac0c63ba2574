"""The metrics of the node, from its description."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.metrics.exposition import Family, Sample
from penstock.wire.messages import NodeDescription


def node_families(node: NodeDescription) -> Iterator[Family]:
    """Every figure of the node."""
    about = {"node": node.node, "version": node.version}
    yield Family(
        "penstock_node_info", "gauge", "Name and version of this node; always 1.", [Sample(1, about)]
    )
    for name, meaning, value in (
        ("start_time_seconds", "Start time, in seconds since 1970.", node.started_ms / 1000),
        ("queues", "Queues on the node.", node.queues),
        ("connections", "Open connections of the native protocol.", node.connections),
        ("disk_full", "1 while sends are refused because the disk is full.", int(node.disk_full)),
        ("journal_bytes", "Bytes of journal files.", node.journal_bytes),
        ("segment_bytes", "Bytes of segment files.", node.segment_bytes),
        ("snapshot_bytes", "Bytes of the newest snapshot.", node.snapshot_bytes),
        ("memory_bytes", "Resident memory of the process.", node.memory_bytes),
        (
            "damaged_queues",
            "Queues that are out of service because stored data is damaged.",
            len(node.damage),
        ),
    ):
        yield Family(f"penstock_node_{name}", "gauge", meaning, [Sample(value)])
    for name, meaning, total in (
        ("flushes_total", "Flushes of the journal.", node.flushes_total),
        ("flushed_bytes_total", "Bytes flushed to the journal.", node.flushed_bytes_total),
        ("cpu_seconds_total", "Processor time of the process.", node.cpu_seconds),
    ):
        yield Family(f"penstock_node_{name}", "counter", meaning, [Sample(total)])

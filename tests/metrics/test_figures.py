"""Figures as text: a scraper's parser reads back exactly what the descriptions said."""

from __future__ import annotations

import re

import msgspec

from penstock.metrics.exposition import Family, Sample, exposition
from penstock.metrics.node_figures import node_families
from penstock.metrics.queue_figures import queue_families
from penstock.metrics.replica_figures import replica_families
from penstock.model.settings import QueueSettings
from penstock.wire.messages import NodeDescription, QueueDescription, QueueStatistics, ReplicaStatus

LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')

STATISTICS = QueueStatistics(
    ready=1, leased=2, delayed=3, moving=4, bytes=5, next_sequence=6, oldest_sent_ms=8_000, waiting_receivers=7,
    sent_total=8, deleted_total=9, redelivered_total=10, expired_total=11, dead_lettered_total=12, dropped_total=13,
    purged_total=14, segment_files=15, segment_bytes=16, memory_bytes=17, held=18, late_total=19,
)  # fmt: skip


def parsed(text: bytes) -> dict[tuple[str, str], float]:
    """Every figure by name and labels; fails on a line that is none."""
    found: dict[tuple[str, str], float] = {}
    for line in text.decode().splitlines():
        if line.startswith("# "):
            continue
        match = LINE.fullmatch(line)
        assert match, line
        assert (match[1], match[2] or "") not in found
        found[match[1], match[2] or ""] = float(match[3])
    return found


def queue(name: str, **changes: object) -> QueueDescription:
    statistics = msgspec.structs.replace(STATISTICS, **changes)
    return QueueDescription(1, name, QueueSettings(), 0, statistics)


def test_every_state_and_total_of_a_queue_is_a_figure() -> None:
    found = parsed(exposition(queue_families([queue("orders"), queue("idle", oldest_sent_ms=None)], 10_500)))
    states = {state: found["penstock_queue_messages", f'queue="orders",state="{state}"'] for state in
              ("ready", "leased", "delayed", "held", "moving")}  # fmt: skip
    assert states == {"ready": 1, "leased": 2, "delayed": 3, "held": 18, "moving": 4}
    totals = [name for name in QueueStatistics.__struct_fields__ if name.endswith("_total")]
    for total in totals:
        assert found[f"penstock_queue_{total}", 'queue="orders"'] == getattr(STATISTICS, total)
    assert found["penstock_queue_oldest_message_seconds", 'queue="orders"'] == 2.5
    assert found["penstock_queue_oldest_message_seconds", 'queue="idle"'] == 0
    assert found["penstock_queue_damaged", 'queue="orders"'] == 0


def test_labels_are_escaped_and_empty_families_left_out() -> None:
    odd = Sample(1.5, {"name": 'a "b"\\\n'})
    families = [Family("penstock_x", "gauge", "Odd.", [odd]), Family("penstock_y", "gauge", "None.", [])]
    assert exposition(families).decode() == (
        '# HELP penstock_x Odd.\n# TYPE penstock_x gauge\npenstock_x{name="a \\"b\\"\\\\\\n"} 1.5\n'
    )


NODE = NodeDescription(
    node="node-1", version="1.0", data_directory="/data", started_ms=5_500, queues=2, connections=3, disk_full=True,
    journal_files=1, journal_bytes=4, segment_files=1, segment_bytes=5, snapshot_bytes=6, flushes_total=7,
    flushed_bytes_total=8, cpu_seconds=9.25, memory_bytes=10, damage=["queue 'a': torn"],
)  # fmt: skip


def test_the_node_is_figures_too() -> None:
    found = parsed(exposition(node_families(NODE)))
    assert found["penstock_node_info", 'node="node-1",version="1.0"'] == 1
    assert found["penstock_node_disk_full", ""] == 1
    assert found["penstock_node_cpu_seconds_total", ""] == 9.25
    assert found["penstock_node_damaged_queues", ""] == 1


def test_replicas_are_figures_of_a_node_of_a_cluster_only() -> None:
    primary = ReplicaStatus("primary", 7, 100, 95, ["node-1", "node-2"], {"node-2": 5, "node-3": 60})
    follows = ReplicaStatus("secondary", 3, 10, 10, [], {})
    queues = [
        msgspec.structs.replace(queue("orders"), replica=primary, settings=QueueSettings(replicas=4)),
        msgspec.structs.replace(queue("orders~1"), replica=follows),
    ]
    found = parsed(exposition(replica_families(msgspec.structs.replace(NODE, leads=1, follows=1), queues)))
    assert found == {
        ("penstock_node_leads", ""): 1,
        ("penstock_node_follows", ""): 1,
        ("penstock_replica_primary", 'queue="orders"'): 1,
        ("penstock_replica_primary", 'queue="orders~1"'): 0,
        ("penstock_replica_epoch", 'queue="orders"'): 7,
        ("penstock_replica_epoch", 'queue="orders~1"'): 3,
        ("penstock_replica_in_sync", 'queue="orders"'): 2,
        ("penstock_replica_missing", 'queue="orders"'): 2,
        ("penstock_replica_behind_records", 'queue="orders",replica="node-2"'): 5,
        ("penstock_replica_behind_records", 'queue="orders",replica="node-3"'): 60,
    }
    assert list(replica_families(NODE, [queue("orders")])) == []

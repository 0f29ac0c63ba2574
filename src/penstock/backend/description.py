"""The node as operators see it."""

from __future__ import annotations

from penstock.backend.parts import NodeParts
from penstock.wire.messages import NodeDescription


def describe_node(
    parts: NodeParts,
    *,
    version: str,
    data_directory: str,
    started_ms: int,
    connections: int,
    usage: tuple[float, int],
) -> NodeDescription:
    """What it is, what it holds, and what is wrong with it; `usage` is CPU seconds and resident bytes."""
    store = parts.store
    statistics = store.statistics()
    cpu_seconds, memory_bytes = usage
    return NodeDescription(
        node=store.identity.node,
        version=version,
        data_directory=data_directory,
        started_ms=started_ms,
        queues=len(parts.catalogue.names),
        connections=connections,
        disk_full=not store.accepts_sends,
        journal_files=statistics.journal_files,
        journal_bytes=statistics.journal_bytes,
        segment_files=statistics.segment_files,
        segment_bytes=statistics.segment_bytes,
        snapshot_bytes=statistics.snapshot_bytes,
        flushes_total=statistics.flushes_total,
        flushed_bytes_total=statistics.flushed_bytes_total,
        cpu_seconds=cpu_seconds,
        memory_bytes=memory_bytes,
        damage=parts.catalogue.damages(),
    )

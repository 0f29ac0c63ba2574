"""The description of a node for operators."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.backend.node.environment import Environment
from penstock.backend.node.parts import NodeParts
from penstock.wire.messages import NodeDescription


def describe_node(
    parts: NodeParts,
    environment: Environment,
    started_ms: int,
    connections: int,
    owners: Sequence[str] = (),
) -> NodeDescription:
    """The node's properties, contents and problems; damaged queues only of `owners`, if any are named."""
    store = parts.store
    statistics = store.statistics()
    cpu_seconds, memory_bytes = environment.usage()
    leads, follows = parts.model.count()
    return NodeDescription(
        node=parts.model.name(),
        version=environment.version,
        data_directory=environment.data_directory,
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
        damage=parts.catalogue.damages(owners),
        leads=leads,
        follows=follows,
    )

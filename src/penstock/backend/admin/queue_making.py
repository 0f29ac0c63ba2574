"""Creates a queue on a single server, on request or because the node needs it."""

from __future__ import annotations

from penstock.backend.node.parts import NodeParts
from penstock.model.records import QueueCreated
from penstock.model.settings import QueueSettings
from penstock.queue.partition import Partition


def make_queue(parts: NodeParts, name: str, settings: QueueSettings, now_ms: int) -> Partition:
    """Creates a queue whose name is free."""
    record = QueueCreated(parts.catalogue.next_id, name, settings, now_ms)
    parts.logbook.write_catalogue(record)
    parts.catalogue.apply(record)
    parts.timed.add(record.partition_id)
    return parts.catalogue.partitions[record.partition_id]

"""The replicas that a node holds: created when the layout names the node, dropped when the layout says so."""

from __future__ import annotations

import logging

from penstock.backend.admin.administration import remove_queue
from penstock.backend.node.parts import NodeParts
from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.records import QueueCreated, QueueDeleted
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.layout_view import local_name

logger = logging.getLogger("penstock.backend")


class Holding:
    """The node's catalogue, changed by the layout."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts

    def is_of_another_queue(self, entry: PartitionEntry) -> bool:
        """Whether this node has data of another queue under the id of the entry.

        A queue takes its id and those of its partitions in one step, so the name with the ordinal identifies the queue id
        too.
        """
        partition = self._parts.catalogue.partitions.get(entry.partition)
        return partition is not None and partition.name != local_name(entry.queue, entry.ordinal)

    def refuse(self, entry: PartitionEntry) -> None:
        """Says that an entry is not acted upon."""
        logger.error(
            "partition %(partition)d is not served and not dropped: the layout assigns it to queue "
            "%(queue)r (id %(queue_id)d), but the data on this node belongs to %(found)r. The "
            "partition id was assigned twice; restore the correct entry",
            {
                "partition": entry.partition,
                "queue": local_name(entry.queue, entry.ordinal),
                "queue_id": entry.queue_id,
                "found": self._parts.catalogue.partitions[entry.partition].name,
            },
        )

    def hold(self, entry: PartitionEntry, now_ms: int) -> Partition:
        """The partition as this node has it, made empty where it has nothing."""
        catalogue = self._parts.catalogue
        partition = catalogue.partitions.get(entry.partition)
        if partition is not None:
            return partition
        record = QueueCreated(entry.partition, local_name(entry.queue, entry.ordinal), entry.settings, now_ms)
        self._parts.logbook.write_catalogue(record)
        catalogue.apply(record)
        return catalogue.partitions[entry.partition]

    def drop(self, partition_id: int, now_ms: int) -> None:
        """Removes everything that this node has of a partition."""
        parts = self._parts
        partition = parts.catalogue.partitions.get(partition_id)
        if partition is None:
            return
        logger.info(
            "dropped partition %(partition)d of %(queue)r: the layout no longer assigns it to this node",
            {"partition": partition_id, "queue": partition.name},
        )
        if partition_id not in parts.catalogue.deleting:
            record = QueueDeleted(partition_id, now_ms)
            parts.logbook.write_catalogue(record)
            parts.catalogue.apply(record)
        parts.leave_queue(partition_id)
        remove_queue(parts, partition, now_ms)

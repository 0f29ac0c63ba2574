"""The record log: what the node wrote about each queue and no crash took away, for checkers that read records."""

from __future__ import annotations

from penstock.backend.node.node import Node
from penstock.simulation.observed_store import AppendedRecord


class RecordLog:
    """Records by partition; a record that is written under a number again replaces what a crash took."""

    def __init__(self, logs: dict[int, list[AppendedRecord]]) -> None:
        self._logs = logs

    def on_append(self, record: AppendedRecord) -> None:
        """The node wrote a record."""
        log = self._logs.setdefault(record.partition, [])
        del log[record.number - 1 :]
        log.append(record)

    def recovered(self, node: Node) -> None:
        """The node is up again, or at its end: what it does not know any more was never promised to anybody.

        What is fenced may know it again when its disk has been restored from a copy.
        """
        catalogue = node._parts.catalogue
        for partition_id, partition in catalogue.partitions.items():
            if partition_id not in catalogue.damage:
                del self._logs.get(partition_id, [])[partition.index :]

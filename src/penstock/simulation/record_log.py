"""The record log: the node's records about each queue that no crash removed, for checkers that read records."""

from __future__ import annotations

from penstock.backend.node.node import Node
from penstock.simulation.observed_store import AppendedRecord


class RecordLog:
    """Records by partition; a record that is written under a number again replaces one that a crash removed."""

    def __init__(self, logs: dict[int, list[AppendedRecord]]) -> None:
        self._logs = logs

    def on_append(self, record: AppendedRecord) -> None:
        """The node wrote a record."""
        log = self._logs.setdefault(record.partition, [])
        del log[record.number - 1 :]
        log.append(record)

    def recovered(self, node: Node) -> None:
        """The node has started again, or is at its end: records that it no longer has were never acknowledged.

        A fenced partition may have them again when its disk has been restored from a copy.
        """
        catalogue = node._parts.catalogue
        for partition_id, partition in catalogue.partitions.items():
            if partition_id not in catalogue.damage:
                del self._logs.get(partition_id, [])[partition.index :]

"""The partitions as the store has them now. Faults and checks ask for them every millisecond, so they are decoded once a change."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.cluster import layout
from penstock.cluster.layout import PartitionEntry, QueueEntry
from penstock.simulation.cluster.metadata import SimulatedMetadata


class PartitionEntries:
    """All entries of partitions, by the partition's id."""

    def __init__(self, metadata: SimulatedMetadata) -> None:
        self._metadata = metadata
        self._version = -1
        self._found: Mapping[int, PartitionEntry] = {}
        self._decoded: dict[str, tuple[int, PartitionEntry]] = {}

    def now(self) -> Mapping[int, PartitionEntry]:
        """What the store has at this moment; what is returned never changes."""
        if self._metadata.version != self._version:
            self._version = self._metadata.version
            self._found = self._read()
        return self._found

    def _read(self) -> dict[int, PartitionEntry]:
        found: dict[int, PartitionEntry] = {}
        for key, stored in self._metadata.entries.items():
            if key.startswith(layout.PARTITIONS):
                version, entry = self._decoded.get(key) or (0, None)
                if entry is None or version != stored.version:
                    entry = layout.decode_partition(stored.value)
                    self._decoded[key] = (stored.version, entry)
                found[entry.partition] = entry
        return found


def queues_of(metadata: SimulatedMetadata) -> dict[int, QueueEntry]:
    """The queues as the store has them, by id."""
    found = [
        layout.decode_queue(stored.value)
        for key, stored in metadata.entries.items()
        if key.startswith(layout.QUEUES)
    ]
    return {queue.queue_id: queue for queue in found}

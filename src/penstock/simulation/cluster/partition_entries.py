"""The present partitions in the store. Faults and checks use them every millisecond, so they are decoded once for each change."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.cluster.layout import entries as layout
from penstock.cluster.layout.entries import PartitionEntry, QueueEntry
from penstock.cluster.layout.partition_settings import settings_of_partition
from penstock.simulation.cluster.metadata import SimulatedMetadata


class PartitionEntries:
    """All entries of partitions, by the partition's id."""

    def __init__(self, metadata: SimulatedMetadata) -> None:
        self._metadata = metadata
        self._version = -1
        self._found: Mapping[int, PartitionEntry] = {}
        self._decoded: dict[str, tuple[int, PartitionEntry]] = {}
        self._judged = (-1, False)
        """A version of the store, and whether it was settled then."""

    def now(self) -> Mapping[int, PartitionEntry]:
        """The present contents of the store; the result never changes."""
        if self._metadata.version != self._version:
            self._version = self._metadata.version
            self._found = self._read()
        return self._found

    def is_settled(self) -> bool:
        """Whether every partition is served by as many as its queue wants, and what is deleted is gone from every node.

        It is asked after every event, and only what the store has decides it.
        """
        version, settled = self._judged
        if version != self._metadata.version:
            version, settled = self._judged = (self._metadata.version, self._are_settled())
        return settled

    def _are_settled(self) -> bool:
        entries = self.now()
        if not all(
            entry.serving == entry.epoch
            and sorted(entry.in_sync) == sorted(entry.replicas)
            and entry.hand_over_to is None
            and not entry.leaving
            and not entry.deleted
            for entry in entries.values()
        ):
            return False
        queues = queues_of(self._metadata)
        return all(queue.state == "ready" for queue in queues.values()) and all(
            len(entry.replicas) == queues[entry.queue_id].settings.replicas
            and entry.settings == settings_of_partition(queues[entry.queue_id].settings)
            for entry in entries.values()
            if entry.queue_id in queues  # else its making was never finished
        )

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

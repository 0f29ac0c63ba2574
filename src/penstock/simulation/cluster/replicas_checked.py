"""Whether a replica's state follows from the records of its log: at every start, and whenever its log was cut or replaced.

The observer has seen every record of every log. They are applied again, from the first on, and the two states compared,
value by value; living messages must be on the disk as they were written. And a replica that cuts its log, or installs a
whole state, keeps everything that is committed.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.backend.node.node import Node
from penstock.model.batch import Batch
from penstock.model.records import CATALOGUE, QueueCreated, QueueDeleted, QueueRemoved, Sent, decode_record
from penstock.queue import living_files
from penstock.queue.partition import Partition
from penstock.queue.snapshot.chunk_image import ELSEWHERE
from penstock.replication.primary_secondary.node.replicated_node import ReplicatedNode
from penstock.simulation.cluster.observer import Observer
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.partition_state import differences
from penstock.simulation.stored_batches import StoredBatches

NAME = "log-cut"


class ReplicaCheck:
    """The check of one machine."""

    def __init__(self, name: str, observer: Observer, seed: int) -> None:
        self._name = name
        self._observer = observer
        self._seed = seed
        self._logs: dict[int, tuple[int, int]] = {}
        """By partition: the newest epoch of its log and its last record, after the last turn."""
        self._appended = -1
        """How far the journal went then: every change of a log is written there at the same moment."""

    def opened(self, node: Node, disk: SimulatedDisk, *, is_harmed: bool) -> Iterator[str]:
        """A process has started: the differences from the records."""
        self._logs.clear()
        self._appended = -1
        catalogue = node._parts.catalogue
        for partition_id, partition in sorted(catalogue.partitions.items()):
            if partition_id not in catalogue.damage:
                yield from self._unlike(node, partition, None if is_harmed else disk)

    def appended(self, record: AppendedRecord) -> None:
        """The node wrote a record: data that it drops because of the layout is not a cut."""
        if record.partition == CATALOGUE and isinstance(removed := decode_record(record.head), QueueRemoved):
            self._logs.pop(removed.partition_id, None)

    def turned(self, node: ReplicatedNode, disk: SimulatedDisk, *, is_harmed: bool) -> Iterator[str]:
        """A turn is over: the errors of its cuts."""
        position = node._parts.store.appended_position
        if position == self._appended:
            return
        self._appended = position
        catalogue, lineage = node._parts.catalogue, self._observer.lineage
        for partition_id, partition in catalogue.partitions.items():
            now, before = (partition.epochs.last, partition.index), self._logs.get(partition_id)
            if now == before:
                continue
            self._logs[partition_id] = now
            if before is None or (now[0] == before[0] and now[1] >= before[1]):
                continue
            common = lineage.last_common(partition_id, before, now)
            if common == before[1]:
                continue  # nothing is gone
            known = node.replication.state.layout.get(partition_id)
            follower_state = node.replication.follower.partitions.get(partition_id)
            unclean = max(
                known.entry.unclean if known is not None else 0,
                follower_state.unclean if follower_state is not None else 0,
            )
            for writer, index in self._observer.committed(partition_id, unclean).items():
                if common < index <= before[1] and lineage.at(partition_id, before[0], index) == writer:
                    yield (
                        f"partition {partition_id}: {self._name} goes back from record {before[1]} to {common}, and "
                        f"record {index} of epoch {writer} is committed"
                    )
            if partition_id not in catalogue.damage:
                yield from self._unlike(node, partition, None if is_harmed else disk)

    def _unlike(self, node: Node, partition: Partition, disk: SimulatedDisk | None) -> Iterator[str]:
        """The differences from the records of its log; without a disk bytes are not compared."""
        if not partition.index:
            return
        where = f"partition {partition.partition_id} on {self._name} at record {partition.index}"
        records = self._observer.log_of(partition)
        for sentence in differences(_replayed(partition, records), partition):
            yield f"{where}: {sentence}"
        if disk is not None:
            yield from self._lies(node, partition, records, disk, where)

    def _lies(
        self, node: Node, partition: Partition, records: list[AppendedRecord], disk: SimulatedDisk, where: str
    ) -> Iterator[str]:
        stored, committed = StoredBatches(disk, self._seed), node._parts.store.committed_position
        payloads: dict[int, bytes] = {}
        for written in records:
            record = decode_record(written.head)
            if isinstance(record, Sent):
                payloads[record.first] = written.payload
        for position in living_files.living_positions(partition):
            if position >= ELSEWHERE or (
                node._parts.store.is_journal(position >> 32) and position >= committed
            ):
                continue  # it is sent later; or it is not on the disk yet
            found = stored.at(partition.partition_id, position)
            if found is None or payloads.get(found.sent.first) != found.payload:
                yield f"{where}: what lies at {position:#x} is not what was written ({found and found.sent})"
                return


def _replayed(partition: Partition, records: list[AppendedRecord]) -> Partition:
    state = Partition(partition.partition_id, partition.name, partition.settings, partition.created_ms)
    for written in records:
        record = decode_record(written.head)
        assert not isinstance(record, QueueCreated | QueueDeleted | QueueRemoved)
        state.apply(record, Batch(written.payload) if isinstance(record, Sent) else None, written.position)
    return state

"""Index = ledger, at every start: a node is at the end of the journal on its disk, or reports that it is not.

The disk is read before the process starts (`ledger_reading`), by rules other than recovery's. After the start every
partition that is not fenced must be at the last record, the journal must continue from there, a reader of the log for
replicas must find each record at its position, and every message must be where the table says. Fencing must have a reason:
a disk without data that was written to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from penstock.backend.node.node import Node
from penstock.model.records import CATALOGUE
from penstock.queue import living_files
from penstock.queue.partition import Partition
from penstock.queue.snapshot.chunk_image import ELSEWHERE
from penstock.queue.state import chunk
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.ledger_reading import LedgerReading
from penstock.simulation.observed_store import AppendedRecord
from penstock.simulation.stored_batches import StoredBatches

NAME = "ledger"


class OpenedLedger:
    """The check of one machine."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._reading: LedgerReading | None = None
        self._appended: Counter[int] = Counter()
        self._fenced: set[int] = set()
        """Partitions that were reported as fenced without a reason."""

    def opening(self, disk: SimulatedDisk) -> None:
        """A process is about to start on the disk."""
        self._reading = LedgerReading(disk, self._seed)
        self._appended.clear()

    def appended(self, record: AppendedRecord) -> None:
        """The process wrote a record; the first ones while it starts."""
        if self._reading is not None:
            self._appended[record.partition] += 1

    def opened(self, node: Node, disk: SimulatedDisk, *, is_harmed: bool) -> Iterator[str]:
        """The process has started: the differences from the disk. With `is_harmed` the disk lacks data that was written to it."""
        reading, self._reading = self._reading, None
        assert reading is not None
        parts = node._parts
        fenced = parts.catalogue.damage
        yield from self._catalogue(reading, node)
        for partition_id, partition in sorted(parts.catalogue.partitions.items()):
            where = f"partition {partition_id} of {partition.name!r}"
            if partition_id in reading.disagreeing and not is_harmed:
                yield f"{where}: {reading.disagreeing[partition_id]}"
            if partition_id in fenced:
                if not is_harmed and partition_id not in self._fenced:
                    self._fenced.add(partition_id)
                    yield f"{where} is fenced, and nothing was done to the disk: {fenced[partition_id]}"
                continue
            if partition_id in reading.broken:
                yield f"{where} is opened as if it were whole, though {reading.broken[partition_id]}"
            for sentence in self._stands(reading, node, partition):
                yield f"{where} {sentence}"
            if not is_harmed:
                for sentence in self._lies(partition, disk):
                    yield f"{where}: {sentence}"

    def _catalogue(self, reading: LedgerReading, node: Node) -> Iterator[str]:
        """Whether everything that the disk has records of is there."""
        parts = node._parts
        standing = reading.standings.get(CATALOGUE)
        index = parts.logbook.catalogue_index - self._appended[CATALOGUE]
        if index != (standing.last if standing is not None else 0):
            yield f"the catalogue is opened at record {index}, and {standing} is the last on disk"
        for partition_id, stands in sorted(reading.standings.items()):
            if partition_id != CATALOGUE and stands.last and partition_id not in parts.catalogue.partitions:
                yield f"partition {partition_id} is not there, and the disk has it as of record {stands.last} ({stands.says})"

    def _stands(self, reading: LedgerReading, node: Node, partition: Partition) -> Iterator[str]:
        store, partition_id = node._parts.store, partition.partition_id
        standing, new = reading.standings.get(partition_id), self._appended[partition_id]
        expected = (standing.last if standing is not None else 0) + new
        if partition.index != expected:
            says = standing.says if standing is not None else "nothing"
            yield f"is opened at record {partition.index}, and its last one on disk is {expected} ({says})"
            return
        if not expected and partition_id in reading.former:
            # What the journal has of it no longer counts, and the node must know that it once had something.
            if store.replica_log is not None and not store.replica_log.had(partition_id):
                yield "was given up and is held again, and is opened as one that never had anything"
            return
        if store._journal.indexes.get(partition_id, 0) != expected:
            yield f"stands at record {expected}, and the journal goes on behind {store._journal.indexes.get(partition_id, 0)}"
        replica_log = store.replica_log
        first = replica_log.oldest(partition_id) if replica_log is not None else None
        if replica_log is None or first is None:
            return
        found = list(replica_log._map.positions(partition_id, first, 2**62))
        if first + len(found) != expected + 1:
            yield f"stands at record {expected}, and replicas would be read records {first} to {first + len(found) - 1}"
        places = reading.places.get(partition_id, {})
        for index, position in enumerate(found[: len(found) - new], first):
            if places.get(index) != position:
                yield f"has record {index} at {places.get(index)}, and replicas would be read what is at {position}"
                break

    def _lies(self, partition: Partition, disk: SimulatedDisk) -> Iterator[str]:
        """Whether living messages are where the table and the log say."""
        stored = StoredBatches(disk, self._seed)
        for position, number, piece in living_files.living_places(
            partition, living_files.files_of(partition), set()
        ):
            if not 0 <= position < ELSEWHERE:
                continue  # a replica waits for its batch, and says so
            found = stored.at(partition.partition_id, position)
            sent = found.sent if found is not None else None
            if piece >= 0:
                first = (number << chunk.CHUNK_BITS) + partition.table.chunks[number].starts[piece]
            else:
                assert partition.log is not None
                first = partition.log._firsts[number - partition.log._base]
            if sent is None or not sent.first <= first < sent.first + sent.count:
                yield f"message {first} is said to lie at {position:#x}, and there is {sent}"
                return

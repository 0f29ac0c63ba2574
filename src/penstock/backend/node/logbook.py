"""The logbook: decisions are appended to the journal, then applied. This is the only way to change a queue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from penstock.model.batch import Batch, Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import CATALOGUE, CatalogueRecord, QueueRecord, Sent, encode_record
from penstock.queue.decisions.decision import PendingRecord
from penstock.queue.partition import Partition
from penstock.storage.disk import DiskFullError
from penstock.storage.errors import JournalBusyError, JournalExhaustedError
from penstock.storage.store import Store

Appended = TypeVar("Appended")


class WrittenRecord(NamedTuple):
    """A record that this node was the first to write: no other node has it yet."""

    partition_id: int
    record_index: int
    head: bytes
    payload: Buffer
    """Empty for all but batches."""


class Logbook:
    """Writes for all partitions of a node."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.catalogue_index = 0
        self._written: list[WrittenRecord] | None = None

    def note_written(self) -> list[WrittenRecord]:
        """From now on every record that this node writes is noted in this list. The caller empties it in each turn."""
        self._written = []
        return self._written

    def check_room_for_send(self) -> None:
        """Raises before anything is decided if a send could not be written."""
        if not self._store.accepts_sends:
            raise disk_full()

    def check_room(self, partition: Partition, decided: Sequence[PendingRecord]) -> None:
        """Raises if these records do not all find room: a refused request must not be carried out in part."""
        rows = [
            (encode_record(record), (batch.data,) if batch is not None else ()) for record, batch in decided
        ]
        reserve = not any(isinstance(record, Sent) and record.origin is None for record, _ in decided)
        self._put(lambda: self._store.check_room(partition.partition_id, rows, reserve=reserve))

    def write(self, partition: Partition, decided: Iterable[PendingRecord]) -> None:
        """Appends and applies, in order. If it raises, nothing was appended of the record for which it raised."""
        store = self._store
        for record, batch in decided:
            head = encode_record(record)
            index = partition.index + 1
            try:
                if batch is None:
                    position = store.append(partition.partition_id, index, head, ())
                else:
                    own = isinstance(record, Sent) and record.origin is None
                    position = store.append(
                        partition.partition_id, index, head, (batch.data,), reserve=not own
                    )
            except (DiskFullError, JournalExhaustedError):
                raise disk_full() from None
            except JournalBusyError:
                raise busy() from None
            if batch is not None and isinstance(record, Sent):
                store.remember(position, record, batch)
            partition.apply(record, batch, position)
            if self._written is not None:
                payload = batch.data if batch is not None else b""
                self._written.append(WrittenRecord(partition.partition_id, index, head, payload))

    # -- records from a primary --------------------------------------------------------------------------------

    def copy(self, partition: Partition, record: QueueRecord, head: bytes, batch: Batch | None) -> None:
        """Appends and applies a record as another node wrote it."""
        payload = (batch.data,) if batch is not None else ()
        position = self._put(
            lambda: self._store.append(partition.partition_id, partition.index + 1, head, payload)
        )
        if batch is not None and isinstance(record, Sent):
            self._store.remember(position, record, batch)
        partition.apply(record, batch, position)

    def write_cut(self, partition_id: int, last: int) -> None:
        """Appends a cut after `last`."""
        log = self._store.replica_log
        assert log is not None
        self._put(lambda: log.cut(partition_id, last))

    def write_image(self, partition_id: int, index: int, part: int, parts: int, data: bytes) -> None:
        """Appends a part of a partition's state."""
        log = self._store.replica_log
        assert log is not None
        self._put(lambda: log.append_image(partition_id, index, part, parts, data))

    def write_batch(self, partition_id: int, index: int, head: bytes, payload: bytes) -> int:
        """Appends a batch that such a state refers to; returns where it is."""
        log = self._store.replica_log
        assert log is not None
        return self._put(lambda: log.append_batch(partition_id, index, head, payload))

    def _put(self, append: Callable[[], Appended]) -> Appended:
        try:
            return append()
        except (DiskFullError, JournalExhaustedError):
            raise disk_full() from None
        except JournalBusyError:
            raise busy() from None

    def write_catalogue(self, record: CatalogueRecord) -> None:
        """Appends a record of the node's catalogue; the caller applies it."""
        try:
            self._store.append(CATALOGUE, self.catalogue_index + 1, encode_record(record), ())
        except (DiskFullError, JournalExhaustedError):
            raise disk_full() from None
        except JournalBusyError:
            raise busy() from None
        self.catalogue_index += 1


def disk_full() -> PenstockError:
    """The error if there is no space."""
    return PenstockError(
        ErrorCode.DISK_FULL,
        "the disk is full: sends are refused, receives and deletes continue; free space or delete messages",
    )


def busy() -> PenstockError:
    """The error if the disk cannot keep up for a moment."""
    return PenstockError(ErrorCode.OVERLOADED, "the disk cannot keep up; try again in a moment")

"""What storage does for replicas besides appending: reading records back, cutting the log, installing a whole state.

There are three kinds of entries that a single server never writes. CUT says that records after an index no longer exist,
so that their numbers may be used again. IMAGE has a part of a partition's state, which is valid when its last part is
there: until then the partition is unchanged. BATCH has a batch that such a state refers to. The same flushes as for
records make them durable, so after a crash there is a prefix of them, in the order in which they were appended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from penstock.model.batch import Buffer
from penstock.model.limits import MEBIBYTE
from penstock.model.records import CATALOGUE
from penstock.storage.checkpointer import Checkpointer
from penstock.storage.disk import Disk
from penstock.storage.entry import BATCH, CUT, IMAGE, encode_part
from penstock.storage.entry_read import EntryReadJob, ReadEntry, RebuildJob
from penstock.storage.fences import Fences
from penstock.storage.index_map import IndexMap
from penstock.storage.journal import Journal
from penstock.storage.open_files import OpenFiles

IMAGE_PART_BYTES = 64 * 1024
READ_ENTRIES = 4_096
READ_BYTES = 2 * MEBIBYTE

Built = TypeVar("Built")


class ReplicaLog:
    """The logs of partitions for other replicas; owned by the thread that owns the store."""

    def __init__(
        self,
        disk: Disk,
        seed: int,
        journal: Journal,
        files: OpenFiles,
        fences: Fences,
        checkpointer: Checkpointer,
    ) -> None:
        self._disk = disk
        self._seed = seed
        self._journal = journal
        self._files = files
        self._fences = fences
        self._checkpointer = checkpointer
        self._map = IndexMap()

    def appended(self, partition: int, index: int, position: int) -> None:
        """A record was appended, or is replayed after a start."""
        if partition != CATALOGUE:
            self._map.note(partition, index, position)

    def image_replayed(self, partition: int) -> None:
        """A whole state was read from the journal after a start: the snapshot's state does not come before it."""
        self._map.forget(partition)
        self._checkpointer.indexes.pop(partition, None)

    def vacated(self, below: int) -> None:
        """A checkpoint has vacated journal files with lower numbers."""
        self._map.vacated(below)

    def had(self, partition: int) -> bool:
        """Whether the journal may hold records of a former life of a partition that is not there now."""
        return self._checkpointer.was_removed(partition) or bool(self._journal.indexes.get(partition))

    # -- reading ---------------------------------------------------------------------------------------------

    def oldest(self, partition: int) -> int | None:
        """The first record that can still be read from the journal."""
        return self._map.oldest(partition)

    def read_job(self, partition: int, first: int, last: int) -> EntryReadJob | None:
        """A job that reads some records from `first` on; None where that one is not on disk (yet, or any more)."""
        positions = self._map.positions(partition, first, min(READ_ENTRIES, last + 1 - first))
        committed = self._journal.committed_position
        positions = [position for position in positions if position < committed]
        if not positions:
            return None
        return EntryReadJob(self._files, self._seed, partition, positions, READ_BYTES, first)

    def batches_job(self, partition: int, positions: Sequence[int]) -> EntryReadJob:
        """A job that reads stored batches, wherever they are, as they were written."""
        return EntryReadJob(self._files, self._seed, partition, positions, READ_BYTES)

    # -- cutting ---------------------------------------------------------------------------------------------

    def rebuild_job(
        self,
        partition: int,
        last: int,
        build: Callable[[bytes | None, Sequence[ReadEntry]], Built],
    ) -> RebuildJob[Built] | None:
        """A job that rebuilds the state after record `last`; None if the snapshot and the journal do not reach that far.

        No checkpoint may be running, and none may begin before the cut.
        """
        base = self._checkpointer.indexes.get(partition, 0)
        if last < base:
            return None
        positions = self._map.positions(partition, base + 1, last - base) if last > base else ()
        if len(positions) < last - base:
            return None
        return RebuildJob(
            self._disk,
            self._checkpointer.snapshot_number,
            base,
            self._files,
            self._seed,
            partition,
            positions,
            build,
        )

    def cut(self, partition: int, last: int) -> None:
        """Removes records after `last`; the caller has the state as of then."""
        self._journal.append_replica(CUT, partition, last, b"", (), last=last)
        self._map.cut(partition, last)

    # -- taking in a whole state -----------------------------------------------------------------------------

    def append_image(self, partition: int, index: int, part: int, parts: int, data: Buffer) -> None:
        """A part of a state as of `index`; with the last one it takes the place of everything before."""
        is_last = part + 1 == parts
        last = index if is_last else self._journal.indexes.get(partition, 0)
        self._journal.append_replica(IMAGE, partition, index, encode_part(part, parts), (data,), last=last)
        if is_last:
            self._map.forget(partition)
            self._fences.pop(partition, None)
            self._checkpointer.is_back(partition)

    def append_batch(self, partition: int, index: int, head: bytes, payload: Buffer) -> int:
        """A batch that the state as of `index` refers to; returns where it is."""
        last = self._journal.indexes[partition]
        return self._journal.append_replica(BATCH, partition, index, head, (payload,), last=last)

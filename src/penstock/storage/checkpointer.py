"""Decides when a checkpoint is due and which files it vacates and reuses; the steps are in `checkpoint`."""

from __future__ import annotations

from penstock.storage.checkpoint import Checkpoint
from penstock.storage.disk import Disk
from penstock.storage.entry import POSITION_SHIFT
from penstock.storage.fences import Fences
from penstock.storage.journal import Journal
from penstock.storage.journal_file import FileNumbers
from penstock.storage.open_files import OpenFiles
from penstock.storage.options import StorageOptions
from penstock.storage.segments import Segments
from penstock.storage.snapshot import PartitionState, Snapshot, SnapshotJob

PAUSE_RETRIES = 10
"""On a full disk the next checkpoint waits this many times `retry_ms`: it may not help any more than the last."""


class Checkpointer:
    """The checkpoints of a node, one at a time."""

    def __init__(
        self,
        disk: Disk,
        options: StorageOptions,
        numbers: FileNumbers,
        journal: Journal,
        segments: Segments,
        files: OpenFiles,
        fences: Fences,
        snapshot: Snapshot,
    ) -> None:
        self._disk = disk
        self._options = options
        self._numbers = numbers
        self._journal = journal
        self._segments = segments
        self._files = files
        self._fences = fences
        self.snapshot_number = snapshot.number
        self.indexes = {
            section.partition: section.index for section in snapshot.table.sections if section.damage is None
        }
        """The last record of each partition that the snapshot on disk holds."""
        self.snapshot_bytes = snapshot.size
        self._under_way: Checkpoint | None = None
        self._not_before_ms = 0
        self._has_rotated = False  # for the checkpoint that is wanted
        self._waits_for = 0
        self._gone: dict[int, int] = {}  # removed partitions → the journal file current at the time
        self._vacated: set[int] = set()

    def is_due(self, now_ms: int) -> bool:
        """Whether the journal has grown enough, or the disk is so full that its files are needed.

        A file must be readable before it is vacated. So the journal first continues in a fresh file, and the checkpoint is
        due when the old files are committed.
        """
        if self._under_way is not None or now_ms < self._not_before_ms:
            return False
        if not self._has_rotated:
            if not self._is_wanted():
                return False
            if not self._journal.unflushed_bytes:
                return True  # `begin` will do it
            self._has_rotated = True
            if self._may_rotate():
                self._journal.rotate()
                self._waits_for = self._journal.appended_position
        return self._journal.committed_position >= self._waits_for

    def _is_wanted(self) -> bool:
        journal = self._journal
        older = self._vacatable(journal.current.number)
        if not older and not journal.can_rotate:
            return False
        limit = max(self._options.checkpoint_journal_bytes, 4 * self.snapshot_bytes)
        used, capacity = journal.current.used, 0
        for number in older:
            file = journal.live[number]
            used += file.used
            capacity += file.capacity
        # Every restart leaves a file that is hardly used.
        return used >= limit or capacity >= 2 * limit or not journal.accepts_sends

    def _may_rotate(self) -> bool:
        """On a full disk the last file that is ready is worth more than what a fresh start would vacate."""
        journal = self._journal
        return journal.can_rotate and (journal.accepts_sends or not self._vacatable(journal.current.number))

    def begin(self) -> Checkpoint:
        """Names the journal files to be vacated: those of which everything is committed, so it can be copied."""
        if self._under_way is not None:
            raise ValueError("a checkpoint is under way")
        journal = self._journal
        if not self._has_rotated and not journal.unflushed_bytes and self._may_rotate():
            journal.rotate()
            below = journal.current.number
        else:
            below = journal.committed_position >> POSITION_SHIFT
        self._has_rotated, self._waits_for = False, 0
        self._under_way = Checkpoint(
            journal, self._segments, self._fences, below, self._vacatable(below), self._make_job
        )
        return self._under_way

    def finish(self, checkpoint: Checkpoint, now_ms: int) -> None:
        """The snapshot is on disk: files that it does not need may be reused."""
        job = checkpoint.job
        if checkpoint is not self._under_way or job is None or not job.is_written:
            raise ValueError("the checkpoint's snapshot is not on disk")
        self.snapshot_number, self.snapshot_bytes = job.number, job.size
        self.indexes = checkpoint.indexes
        self._segments.snapshot_taken(checkpoint.moves)
        self._gone = {partition: file for partition, file in self._gone.items() if file >= checkpoint.below}
        self._vacated.update(
            number for number in self._vacatable(checkpoint.below) if checkpoint.is_journal(number)
        )
        self.abandon(checkpoint, now_ms)
        self.recycle()

    def abandon(self, checkpoint: Checkpoint, now_ms: int) -> None:
        """Ends a checkpoint that failed or is not needed."""
        if checkpoint is self._under_way:
            self._under_way = None
            if not self._journal.accepts_sends:
                self._not_before_ms = now_ms + PAUSE_RETRIES * self._options.retry_ms

    def partition_gone(self, partition: int) -> None:
        """A snapshot begun before must not bring the partition back, nor its records that are still replayed."""
        self._gone[partition] = self._journal.current.number
        self.indexes.pop(partition, None)
        if self._under_way is not None:
            self._under_way.forget(partition)

    def was_removed(self, partition: int) -> bool:
        """Whether records of a former life of the partition may still be replayed."""
        return partition in self._gone

    def is_back(self, partition: int) -> None:
        """A partition that was removed has a whole new state on this node, which has just been appended.

        A snapshot that does not say any more that the partition is gone waits until that state is on disk: a crash may take it, and the
        records of the former life would be replayed.
        """
        self._gone.pop(partition, None)
        self.indexes.pop(partition, None)
        if self._under_way is not None:
            self._under_way.indexes.pop(partition, None)
            self._under_way.needs_position = self._journal.appended_position

    def recycle(self) -> None:
        """Hands vacated files back to the journal, except those that a job still reads."""
        ready = [number for number in sorted(self._vacated) if not self._files.is_pinned(number)]
        if ready:
            self._vacated.difference_update(ready)
            for number in ready:
                self._files.retire(number)
            self._journal.recycle(ready)

    def _vacatable(self, below: int) -> list[int]:
        """Journal files that are neither vacated already nor kept for a damaged partition."""
        return [
            number
            for number in self._journal.live
            if number < below and number not in self._vacated and not self._fences.holds(number)
        ]

    def _make_job(self, checkpoint: Checkpoint, states: list[PartitionState]) -> SnapshotJob:
        # With durability "os" a flush does not sync, but a snapshot may only refer to what is on disk.
        unsynced = []
        if self._options.durability != "sync":
            unsynced = [number for number in self._journal.live if number >= checkpoint.below]
        job = SnapshotJob(
            self._disk,
            self.snapshot_number + 1,
            checkpoint.below,
            self._numbers,
            states,
            [partition for partition, file in self._gone.items() if file >= checkpoint.below],
            [self._files.get(number) for number in unsynced],
            [(fence.damage, fence.held) for fence in self._fences.values()],
        )
        job.pinned = unsynced
        self._files.pin(unsynced)
        return job

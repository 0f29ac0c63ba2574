"""Checkpoints in small steps: vacate old journal files, snapshot every queue, recycle the files.

    begin     a fresh journal file; everything older is to be vacated
    copy      what still lives in old files goes to the segments of its queue, a job at a time
    capture   every queue as bytes, each at its own place in the log
    settle    wait until the journal is on disk past everything captured: a snapshot must never be ahead of it
    write     the snapshot, as a job
    finish    recycle the journal files, remove the segments that were vacated

Sparse segments, of which most is gone, are vacated on the way. A crash at any step leaves the old snapshot with
all its files, or the new one with all of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from penstock.backend.parts import NodeParts
from penstock.model.records import CATALOGUE
from penstock.queue import living_files, snapshot
from penstock.storage.checkpoint import Checkpoint
from penstock.storage.copy import CopyJob
from penstock.storage.errors import DamagedEntryError
from penstock.storage.job import Job

_POSITIONS_PER_COPY = 4_096
_RETRY_MS = 1_000
_SPARSE = 4
"""A segment is vacated when less than one in this many of its batches still lives."""


class Checkpointer:
    """At most one checkpoint at a time."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._checkpoint: Checkpoint | None = None
        self._copies: Iterator[CopyJob] = iter(())
        self._copying: CopyJob | None = None
        self._captured = False
        self._begun_position = 0
        self._writing: Job | None = None
        self._not_before_ms = 0
        self.may_begin: Callable[[], bool] = lambda: True
        """A node of a cluster begins none while it goes back to the last one."""
        self._pieces: dict[int, int] = {}
        """Batches each segment had when it was last filled."""

    @property
    def copying(self) -> int | None:
        """The queue whose messages are being copied right now."""
        return self._copying.partition if self._copying is not None else None

    @property
    def is_under_way(self) -> bool:
        """Whether one has begun and not ended."""
        return self._checkpoint is not None

    def drop_emptied(self) -> None:
        """Files in which nothing lives go, unless a copy may be writing to them right now."""
        parts = self._parts
        for queue_id, file in [row for row in parts.emptied if row[0] != self.copying]:
            parts.emptied.discard((queue_id, file))
            partition = parts.catalogue.partitions.get(queue_id)
            if partition is not None and not living_files.lives_in(partition, file):
                parts.store.drop_file(queue_id, file)

    def step(self, now_ms: int) -> Job | None:
        """Does the next thing; returns a job for the helper thread if that is what comes next."""
        if self._checkpoint is None:
            if now_ms < self._not_before_ms or not self.may_begin():
                return None
            if not self._parts.store.checkpoint_due(now_ms):
                return None
            self._checkpoint = self._parts.store.begin_checkpoint()
            self._copies = self._plan(self._checkpoint)
            self._begun_position = self._checkpoint.needs_position
        if self._parts.store.committed_position < self._begun_position:
            return None  # the last entries of the old files are still on their way to them
        if self._copying is not None or self._writing is not None:
            return None
        self._copying = next(self._copies, None)
        if self._copying is not None:
            return self._copying
        if not self._captured:
            self._capture(self._checkpoint)
        self._writing = self._checkpoint.snapshot_job()
        return self._writing

    def job_done(self, job: Job, now_ms: int) -> bool:
        """Takes a finished job; False if it is not one of a checkpoint."""
        if job is self._copying:
            self._copying = None
            if job.error is not None:
                self._give_up(now_ms)
            else:
                self._copied(job)
            return True
        if job is self._writing:
            assert self._checkpoint is not None
            if job.error is None:
                self._parts.store.finish_checkpoint(self._checkpoint)
                self._reset()
            else:
                self._give_up(now_ms)
            return True
        return False

    def _plan(self, checkpoint: Checkpoint) -> Iterator[CopyJob]:
        """Copies to make, queue by queue; made as they are needed, so that what dies meanwhile is not copied."""
        parts = self._parts
        for queue_id in list(parts.catalogue.partitions):
            done: set[int] = set()
            while (positions := self._to_copy(checkpoint, queue_id, done)) != []:
                done.update(positions)
                yield parts.store.copy_job(queue_id, positions)

    def _to_copy(self, checkpoint: Checkpoint, queue_id: int, done: set[int]) -> list[int]:
        """The next positions of a queue to copy; each is tried once."""
        parts = self._parts
        partition = parts.catalogue.partitions.get(queue_id)
        if partition is None or queue_id in parts.catalogue.damage:
            return []
        segments = parts.store.segment_numbers(queue_id)
        journal = {file for file in living_files.files_of(partition) if checkpoint.is_journal(file)}
        # Of a log only the front goes: a segment that holds some of it is soon empty, and better left in order.
        logged = partition.log.files if partition.log is not None else {}
        sparse = {
            file
            for file, living in partition.table.files.items()
            if file in segments and file not in logged and self._is_sparse(file, living)
        }
        found: list[int] = []
        for position in living_files.living_positions(partition, journal, sparse):
            if position not in done and (not found or position != found[-1]):
                found.append(position)
                if len(found) == _POSITIONS_PER_COPY:
                    break
        return found

    def _is_sparse(self, file: int, living: int) -> bool:
        return living * _SPARSE < self._pieces.setdefault(file, living)

    def _copied(self, job: CopyJob) -> None:
        for damage in job.damages:
            self._parts.fence(damage.partition, DamagedEntryError(damage.file, damage.offset, damage.reason))
        partition = self._parts.catalogue.partitions.get(job.partition)
        if partition is None:
            return
        living_files.relocate(partition, job.moved)
        self._parts.emptied.update((job.partition, file) for file in living_files.take_emptied(partition))
        for position in job.moved.values():
            self._pieces[position >> 32] = self._pieces.get(position >> 32, 0) + 1

    def _capture(self, checkpoint: Checkpoint) -> None:
        parts = self._parts
        index = parts.logbook.catalogue_index
        checkpoint.add(CATALOGUE, index, parts.catalogue.dump(index))
        for partition in parts.catalogue.partitions.values():
            checkpoint.add(partition.queue_id, partition.index, snapshot.dump(partition))
        self._captured = True

    def _give_up(self, now_ms: int) -> None:
        """The disk is full: the old snapshot and its files stay, and another try is made in a while."""
        if self._checkpoint is not None:
            self._parts.store.abandon_checkpoint(self._checkpoint)
        self._not_before_ms = now_ms + _RETRY_MS
        self._reset()

    def _reset(self) -> None:
        partitions = self._parts.catalogue.partitions.values()
        files = {file for partition in partitions for file in living_files.files_of(partition)}
        self._pieces = {file: pieces for file, pieces in self._pieces.items() if file in files}
        self._checkpoint = None
        self._copies = iter(())
        self._writing = None
        self._captured = False

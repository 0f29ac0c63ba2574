"""Checkpoints in small steps: vacate old journal files, snapshot every queue, recycle the files.

    begin     a fresh journal file; all older ones are to be vacated
    copy      living entries in old files go to the segments of their queues, a job at a time
    capture   every queue as bytes, one after the other, each at its own position in the log
    settle    wait until the journal is on disk past everything captured: a snapshot must never be ahead of it
    write     the snapshot, as a job
    finish    recycle the journal files, remove the segments that were vacated

Sparse segments, of which most is gone, are vacated as well. A crash at any step leaves the old snapshot with all its
files, or the new one with all of its own. The search for living entries and the captures continue turn by turn: none takes
long, for any amount of data.

The catalogue is captured first. Queues created after it are not captured: their records, including the one that creates
them, are all in files that are kept.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.backend.node.parts import NodeParts
from penstock.backend.upkeep.captures import Wanted
from penstock.model.batch import Buffer
from penstock.model.records import CATALOGUE
from penstock.queue import living_files
from penstock.queue.snapshot.capture import Capture
from penstock.queue.state.table import Place
from penstock.storage.checkpoint import Checkpoint, Mark
from penstock.storage.copy import CopyJob
from penstock.storage.errors import DamagedEntryError
from penstock.storage.job import Job

_POSITIONS_PER_COPY = 4_096
_PLACES_PER_TURN = 8_192
"""The number of pieces of batches that a turn examines."""
_PARTITION_PLACES = 64
"""Looking at a queue counts as so many."""
_RETRY_MS = 1_000
_SPARSE = 4
"""A segment is vacated when less than one in this many of its batches still lives."""


class Checkpointer:
    """At most one checkpoint at a time."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts
        self._checkpoint: Checkpoint | None = None
        self._copies: Iterator[CopyJob | None] = iter(())
        self._copying: CopyJob | None = None
        self._places: list[Place] = []
        """Of the queue whose messages are being copied: what is at the positions of the copy."""
        self._catalogue: Iterator[bool] | None = None
        self._to_capture: list[int] = []
        self._captured = False
        self.has_more = False
        """Whether another turn is wanted though nothing arrives."""
        self._begun_position = 0
        self._writing: Job | None = None
        self._not_before_ms = 0
        self._pieces: dict[int, int] = {}
        """Batches each segment had when it was last filled."""

    @property
    def copying(self) -> int | None:
        """The queue whose messages are being copied now."""
        return self._copying.partition if self._copying is not None else None

    @property
    def is_under_way(self) -> bool:
        """Whether one has begun and not ended."""
        return self._checkpoint is not None

    def drop_emptied(self) -> None:
        """Files in which nothing lives go, unless a copy may be writing to them right now."""
        parts = self._parts
        if not parts.emptied:
            return
        for partition_id, file in [row for row in parts.emptied if row[0] != self.copying]:
            parts.emptied.discard((partition_id, file))
            partition = parts.catalogue.partitions.get(partition_id)
            if partition is not None and not living_files.lives_in(partition, file):
                parts.store.drop_file(partition_id, file)

    def step(self, now_ms: int) -> Job | None:
        """Does the next thing; returns a job for the helper thread if that is what comes next."""
        self.has_more = False
        if self._checkpoint is None:
            if now_ms < self._not_before_ms or not self._parts.model.may_begin_checkpoint():
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
        for job in self._copies:
            self._copying, self.has_more = job, job is None
            return job
        if not self._captured:
            self._capture(self._checkpoint)
            return None
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

    def _plan(self, checkpoint: Checkpoint) -> Iterator[CopyJob | None]:
        """Copies to make, queue by queue; None: something else may be done first."""
        looked_at = 0
        for partition_id in list(self._parts.catalogue.partitions):
            looked_at += _PARTITION_PLACES
            found: list[Place] = []
            chunk = -1
            for place in self._to_copy(checkpoint, partition_id):
                looked_at += 1
                if place[2] >= 0 and place[1] != chunk:
                    chunk = place[1]
                    looked_at += self._pieces_of(partition_id, chunk)
                if place[0] >= 0:
                    found.append(place)
                if len(found) >= _POSITIONS_PER_COPY:
                    yield from self._copy(partition_id, found)
                    found = []
                if looked_at >= _PLACES_PER_TURN:
                    yield None
                    looked_at = 0
            yield from self._copy(partition_id, found)
            if looked_at >= _PLACES_PER_TURN:
                yield None
                looked_at = 0

    def _pieces_of(self, partition_id: int, number: int) -> int:
        partition = self._parts.catalogue.partitions.get(partition_id)
        chunk = partition.table.chunks.get(number) if partition is not None else None
        return len(chunk.positions) if chunk is not None else 0

    def _to_copy(self, checkpoint: Checkpoint, partition_id: int) -> Iterator[Place]:
        """The entries of a queue to copy, found one by one, so that messages that end meanwhile are not copied."""
        parts = self._parts
        partition = parts.catalogue.partitions.get(partition_id)
        if partition is None or partition_id in parts.catalogue.damage:
            return
        segments = parts.store.segment_numbers(partition_id)
        journal = {file for file in living_files.files_of(partition) if checkpoint.is_journal(file)}
        # Of a log only the front goes: a segment that holds some of it is soon empty, and better left in order.
        logged = partition.log.files if partition.log is not None else {}
        sparse = {
            file
            for file, living in partition.table.files.items()
            if file in segments and file not in logged and self._is_sparse(file, living)
        }
        if not journal and not sparse:
            return
        for place in living_files.living_places(partition, journal, sparse):
            if (
                parts.catalogue.partitions.get(partition_id) is not partition
                or partition_id in parts.catalogue.damage
            ):
                return
            yield place

    def _copy(self, partition_id: int, found: list[Place]) -> Iterator[CopyJob]:
        """A job that copies what is still at the places that were found, some of them turns ago."""
        partition = self._parts.catalogue.partitions.get(partition_id)
        if partition is None or partition_id in self._parts.catalogue.damage:
            return
        self._places = [place for place in found if living_files.is_there(partition, place)]
        positions = list(dict.fromkeys(position for position, _, _ in self._places))
        if positions:
            yield self._parts.store.copy_job(partition_id, positions)

    def _is_sparse(self, file: int, living: int) -> bool:
        return living * _SPARSE < self._pieces.setdefault(file, living)

    def _copied(self, job: CopyJob) -> None:
        for damage in job.damages:
            self._parts.fence(damage.partition, DamagedEntryError(damage.file, damage.offset, damage.reason))
        partition = self._parts.catalogue.partitions.get(job.partition)
        if partition is None:
            return
        living_files.relocate(partition, self._places, job.moved)
        self._places = []
        self._parts.emptied.update((job.partition, file) for file in living_files.take_emptied(partition))
        for position in job.moved.values():
            self._pieces[position >> 32] = self._pieces.get(position >> 32, 0) + 1

    def _capture(self, checkpoint: Checkpoint) -> None:
        """The catalogue, a piece a turn; with its first piece it is known which queues follow, one after the other."""
        parts = self._parts
        if self._catalogue is None:
            index, mark = parts.logbook.catalogue_index, checkpoint.mark()
            self._to_capture = list(reversed(parts.catalogue.partitions))
            self._catalogue = self._capture_catalogue(checkpoint, index, mark)
        self.has_more = next(self._catalogue, True)

    def _capture_catalogue(self, checkpoint: Checkpoint, index: int, mark: Mark) -> Iterator[bool]:
        pieces: list[Buffer] = []
        for piece in self._parts.catalogue.capture(index):
            pieces.append(piece)
            yield True
        checkpoint.add(CATALOGUE, index, pieces, mark)
        self._capture_next(checkpoint)
        while not self._captured:
            yield False  # the captures of the node have their own turns

    def _capture_next(self, checkpoint: Checkpoint) -> None:
        if not self._to_capture:
            self._captured = self.has_more = True
            return
        partition_id = self._to_capture.pop()
        marks: list[Mark] = []

        def begun(capture: Capture) -> None:
            marks.append(checkpoint.mark())

        def done(capture: Capture | None) -> None:
            if capture is not None:
                checkpoint.add(partition_id, capture.index, capture.buffers, marks[0])
            self._capture_next(checkpoint)

        self._parts.captures.ask(
            Wanted(
                lambda: self._parts.catalogue.partitions.get(partition_id),
                begun,
                done,
                lambda: self._checkpoint is checkpoint,
            )
        )

    def _give_up(self, now_ms: int) -> None:
        """The disk is full: the old snapshot and its files stay, and another try is made in a while."""
        if self._checkpoint is not None:
            self._parts.store.abandon_checkpoint(self._checkpoint)
        self._not_before_ms = now_ms + _RETRY_MS
        self._reset()

    def _reset(self) -> None:
        has_segment = self._parts.store.has_segment
        self._pieces = {file: pieces for file, pieces in self._pieces.items() if has_segment(file)}
        self._checkpoint = None
        self._copies = iter(())
        self._places = []
        self._catalogue = None
        self._to_capture = []
        self._writing = None
        self._captured = False

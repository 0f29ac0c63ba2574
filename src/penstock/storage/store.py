"""The store: journal, segments, snapshots and recovery behind one interface, the only one that the node uses.

One thread owns it and never waits for the disk: flushes and jobs are taken from the store, run in helper threads, and
returned with `flushed` and `job_done`. It decides when bytes are safe; the node knows what they mean.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.model.batch import Batch, Buffer
from penstock.model.records import CATALOGUE, Sent
from penstock.storage.checkpoint import Checkpoint
from penstock.storage.checkpointer import Checkpointer
from penstock.storage.copy import CopyJob
from penstock.storage.disk import Disk, DiskFullError
from penstock.storage.entry import POSITION_SHIFT, entry_bytes
from penstock.storage.errors import Damage, StorageFailedError, TornTail
from penstock.storage.fences import Fences
from penstock.storage.flush import Flush
from penstock.storage.identity import Identity
from penstock.storage.job import Job
from penstock.storage.journal import Journal
from penstock.storage.journal_file import PrepareJob, RecycleJob
from penstock.storage.opening import OpenedDirectory, open_directory
from penstock.storage.options import StorageOptions
from penstock.storage.range_read import Place, RangeReadJob
from penstock.storage.reader import Reader, ReadJob, Stored
from penstock.storage.recovery import Entry
from penstock.storage.replica_log import ReplicaLog


@dataclass
class Recovery:
    """The contents of the directory when it was opened."""

    snapshots: dict[int, tuple[int, bytes]]
    """Partition → (index, state); take them out as you go, they may be large."""
    entries: Callable[[], Iterator[Entry]]
    """The records since, in order; to be read before the first checkpoint."""
    indexes: Mapping[int, int]
    """Partition → its last record, by the snapshot and the entries: its state after they are applied."""
    damages: list[Damage]
    torn: TornTail | None
    unread: Callable[[int, str, int], Damage | None]
    """See `Ledger.unread`."""


class StorageStatistics(NamedTuple):
    """The store in numbers."""

    journal_files: int
    journal_bytes: int
    segment_files: int
    segment_bytes: int
    snapshot_bytes: int
    flushes_total: int
    flushed_bytes_total: int
    unflushed_bytes: int
    cached_bytes: int
    cache_hits_total: int
    cache_misses_total: int


class Store:
    """The storage of a node."""

    def __init__(self, disk: Disk, options: StorageOptions, opened: OpenedDirectory) -> None:
        self._disk = disk
        self._options = options
        self.identity = opened.identity
        self._numbers = opened.numbers
        self._files = opened.files
        self._segments = opened.segments
        self._reader = Reader(self._files, self.identity.seed, options.cache_bytes, options.read_ahead_bytes)
        self._fences = Fences.recovered(
            opened.damages, opened.snapshot, (file.number for file in opened.live)
        )
        unused = {*self._fences, *opened.ledger.gone}
        self._journal = Journal(
            disk,
            options,
            self.identity.seed,
            self._numbers,
            opened.current,
            {partition: index for partition, index in opened.ledger.last.items() if partition not in unused},
            opened.spares,
        )
        self._journal.live.update((file.number, file) for file in opened.live)
        self._reader.committed_position = self._journal.committed_position
        self._checkpointer = Checkpointer(
            disk,
            options,
            self._numbers,
            self._journal,
            self._segments,
            self._files,
            self._fences,
            opened.snapshot,
        )
        for partition in opened.ledger.gone:
            # Its records are passed over at every start until a snapshot does not name it any more, or a whole state has come.
            self._checkpointer.partition_gone(partition)
        self._jobs: list[Job] = []
        self._now_ms = 0
        self.replica_log: ReplicaLog | None = None
        """Used only by the nodes of a cluster."""
        table = opened.snapshot.table
        unknown = {damage.partition for damage in opened.snapshot.unreadable}
        # A partition that was damaged before any snapshot knew it has a place in the table and no state.
        unknown.update(row.partition for row in table.sections if row.damage is not None and not row.size)
        self.recovery = Recovery(
            {
                section.partition: (section.index, opened.snapshot.states[section.partition])
                for section in table.sections
                if section.partition not in unknown
            },
            opened.tail.entries,
            opened.ledger.last,
            opened.damages,
            opened.tail.torn,
            opened.ledger.unread,
        )

    @classmethod
    def open(cls, disk: Disk, options: StorageOptions, identity: Identity) -> Store:
        """Takes the directory and recovers what is in it; `identity` is for a directory that is new."""
        return cls(disk, options, open_directory(disk, options, identity))

    # -- the journal -----------------------------------------------------------------------------------------

    def append(
        self, partition: int, index: int, head: bytes, payload: Sequence[Buffer] = (), *, reserve: bool = True
    ) -> int:
        """See `Journal.append`; sends pass `reserve=False`."""
        position = self._journal.append(partition, index, head, payload, reserve=reserve)
        if self.replica_log is not None:
            self.replica_log.appended(partition, index, position)
        return position

    def check_room(
        self, partition: int, records: Sequence[tuple[bytes, Sequence[Buffer]]], *, reserve: bool
    ) -> None:
        """Raises what `append` would where these records (head, payload) do not all find room; nothing is appended."""
        sizes = [entry_bytes(len(head), sum(map(len, payload))) for head, payload in records]
        self._journal.check_room(sizes, reserve=reserve)

    def keep_replica_log(self) -> ReplicaLog:
        """For a node of a cluster, before anything is replayed: from now on the positions of records are remembered."""
        self.replica_log = ReplicaLog(
            self._disk, self.identity.seed, self._journal, self._files, self._fences, self._checkpointer
        )
        return self.replica_log

    @property
    def entry_bytes_max(self) -> int:
        """The largest entry that the journal takes."""
        return self._options.entry_bytes_max

    def take_flush(self) -> Flush | None:
        """The records appended since the last flush; None while one is running or if there are none."""
        return self._journal.take_flush()

    def flushed(self, flush: Flush) -> int:
        """The position below which everything is committed; `JournalFailedError` means that the node must stop."""
        committed = self._journal.flushed(flush)
        self._files.readable.update(flush.ends)
        self._reader.committed_position = committed
        self._reader.shrink()
        if self._segments.has_removals:
            self._remove()
        return committed

    @property
    def committed_position(self) -> int:
        """Entries below it are as durable as the options ask."""
        return self._journal.committed_position

    @property
    def appended_position(self) -> int:
        """Behind everything that was appended."""
        return self._journal.appended_position

    @property
    def accepts_sends(self) -> bool:
        """False while the disk is full."""
        return self._journal.accepts_sends

    @property
    def unflushed_bytes(self) -> int:
        """Appended and not yet committed."""
        return self._journal.unflushed_bytes

    @property
    def congested(self) -> bool:
        """True while the next journal file is not ready and will be needed soon: take no sends for a moment."""
        return self._journal.congested

    # -- background work -------------------------------------------------------------------------------------

    def take_jobs(self) -> list[Job]:
        """The store's own work for the helper thread; do it before copies and reads, appends may wait for it."""
        jobs = self._journal.take_jobs() + self._jobs
        self._jobs = []
        return jobs

    def job_done(self, job: Job) -> None:
        """Takes a finished job back. `StorageFailedError` means that the node must stop. The caller checks `job.error` for
        the other error of jobs that it requested, a full disk.
        """
        self._files.unpin(job.pinned)
        job.done()
        match job:
            case PrepareJob():
                file = self._journal.prepared(job)
                if file is not None:
                    self._files.add(file.number, file.name, 0)
            case RecycleJob():
                self._journal.recycled(job)
            case CopyJob():
                self._segments.copied(job, self.appended_position)
                for old, new in job.moved.items():
                    self._reader.moved(old, new)
                self._remove()
            case _:
                pass
        if job.error is not None and not isinstance(job.error, DiskFullError | FileNotFoundError):
            raise StorageFailedError(f"background work failed: {job.error!r}") from job.error
        if job.pinned:
            self._checkpointer.recycle()

    def tick(self, now_ms: int) -> None:
        """Lets time pass: a full disk is tried again."""
        self._now_ms = now_ms
        self._journal.tick(now_ms)

    def next_wakeup_ms(self) -> int | None:
        """When `tick` has to run; None: storage waits for nothing."""
        return self._journal.retry_ms

    # -- reading ---------------------------------------------------------------------------------------------

    def read(self, partition: int, position: int, *, block: bool = False) -> Stored:
        """The batch of a partition that is stored at a position.

        Raises `WouldBlockError` when it is not in memory and `block` is not set (then `read_job` brings it
        there), `DamagedEntryError` when it is not what was written.
        """
        return self._reader.read(partition, position, block=block)

    def remember(self, position: int, sent: Sent, batch: Batch) -> None:
        """Keeps a batch that was just appended: until it is flushed in any case, afterwards while there is room."""
        self._reader.add(position, (sent, batch))

    def hand_out(self, partition: int, position: int, end: int, *, block: bool = False) -> Stored:
        """Like `read`, for a consumer who takes the batch up to message `end`: the last to want it, mostly."""
        return self._reader.hand_out(partition, position, end, block=block)

    def cached(self, partition: int, position: int) -> Stored | None:
        """The batch stored at a position if it is in the cache, which stays as it is."""
        return self._reader.cached(partition, position)

    def has_cached(self, position: int) -> bool:
        """Whether the batch is in the cache."""
        return self._reader.has(position)

    def range_read_job(self, partition: int, places: Sequence[Place]) -> RangeReadJob:
        """A job that reads many batches of a partition, given with their sizes, past the cache."""
        return RangeReadJob(self._files, self.identity.seed, partition, places)

    def read_job(self, positions: Sequence[int]) -> ReadJob:
        """A job that brings batches into memory, as many of the first ones as half the cache holds."""
        return self._reader.job(positions)

    # -- segments --------------------------------------------------------------------------------------------

    def copy_job(self, partition: int, positions: Sequence[int]) -> CopyJob:
        """A job that copies entries to the partition's segment: `moved` says where they are then, `damages`
        which could not be copied. One at a time for a partition; keep it to some MiB, other jobs wait for it."""
        return self._segments.copy_job(partition, positions, self._numbers)

    def drop_file(self, partition: int, file_number: int) -> None:
        """Removes a segment that the partition's state does not refer to any more, as soon as that is durable."""
        if partition not in self._fences:
            self._segments.drop(partition, file_number, self.appended_position)
            self._remove()

    def drop_partition(self, partition: int) -> None:
        """Removes everything of a partition; the record that says it is gone must have been appended before."""
        self._segments.drop_partition(partition, self.appended_position)
        self._journal.indexes.pop(partition, None)
        self._fences.pop(partition, None)
        self._checkpointer.partition_gone(partition)
        self._remove()

    def keep_only(self, partition: int, referenced: Iterable[int]) -> None:
        """After recovery: removes segments that nothing refers to, unless the partition is damaged."""
        if partition not in self._fences:
            self._segments.keep_only(partition, referenced, self.appended_position)
            self._remove()

    def keep_partitions(self, known: Collection[int]) -> None:
        """After recovery: removes what is left of partitions that do not exist, the damaged ones among them."""
        for partition in {*self._segments.partitions, *self._fences}.difference(known, [CATALOGUE]):
            self.drop_partition(partition)

    def segment_sizes(self, partition: int) -> tuple[int, int]:
        """Segment files and bytes of a partition."""
        return self._segments.sizes(partition)

    def segment_numbers(self, partition: int) -> dict[int, int]:
        """Segment file number → bytes, for a partition."""
        return self._segments.numbers(partition)

    def has_file(self, partition: int, file_number: int) -> bool:
        """Whether there is such a segment of the partition, or such a journal file."""
        return (
            self._files.owners.get(file_number, partition) == partition
            and file_number in self._files.readable
        )

    def has_segment(self, file_number: int) -> bool:
        """Whether there is such a segment of any partition."""
        return file_number in self._files.owners

    def is_journal(self, file_number: int) -> bool:
        """Whether a file is of the journal (and not a segment)."""
        return file_number in self._journal.live

    def _remove(self) -> None:
        """Hands out the removals that may go ahead now."""
        job = self._segments.removal_job(self.committed_position)
        if job is not None:
            if self._options.durability != "sync":
                number = self.committed_position >> POSITION_SHIFT
                job.sync_first = self._files.get(number)
                job.pinned = (number,)
                self._files.pin(job.pinned)
            self._jobs.append(job)

    # -- damage ----------------------------------------------------------------------------------------------

    def fence(self, damage: Damage) -> None:
        """Notes damage found while running, so that it is known after a restart and nothing of it is reused."""
        self._fences.add(damage, self._journal.live)
        self._journal.indexes.pop(damage.partition, None)

    @property
    def damages(self) -> list[Damage]:
        """Every damaged partition, found now or before."""
        return [fence.damage for fence in self._fences.values()]

    # -- checkpoints -----------------------------------------------------------------------------------------

    def checkpoint_due(self, now_ms: int) -> bool:
        """Whether the journal has grown enough, or the disk is so full that its files are needed."""
        return self._checkpointer.is_due(now_ms)

    def begin_checkpoint(self) -> Checkpoint:
        """Starts to vacate the journal; see `checkpoint` for the steps and why each is safe."""
        return self._checkpointer.begin()

    def finish_checkpoint(self, checkpoint: Checkpoint) -> None:
        """The snapshot is on disk: the vacated files may be used again."""
        self._checkpointer.finish(checkpoint, self._now_ms)
        if self.replica_log is not None:
            self.replica_log.vacated(checkpoint.below)
        self._remove()

    def abandon_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Gives a checkpoint up, after a full disk for example; nothing is lost and another may be begun later."""
        self._checkpointer.abandon(checkpoint, self._now_ms)

    # -- the end ---------------------------------------------------------------------------------------------

    def statistics(self) -> StorageStatistics:
        """The store in numbers."""
        journal = self._journal
        return StorageStatistics(
            journal.files_on_disk,
            journal.bytes_on_disk,
            self._segments.files_total,
            self._segments.bytes_total,
            self._checkpointer.snapshot_bytes,
            journal.flushes_total,
            journal.flushed_bytes_total,
            journal.unflushed_bytes,
            self._reader.cached_bytes,
            self._reader.hits,
            self._reader.misses,
        )

    def close(self) -> None:
        """A clean stop: everything appended is synced, and the journal says so. No flush may be under way."""
        try:
            self._journal.close()
        finally:
            self._files.close()

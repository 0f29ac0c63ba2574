"""The journal: one log for all partitions of a node, in files of fixed size that are prepared ahead and reused.

`append` only puts an entry on a list and returns its position. `take_flush` hands the list to a helper thread; `flushed`
returns how far the log is on disk. One flush runs at a time; later entries join the next one. Nothing is read back here;
see `reader` and `recovery`.

The last prepared file is a reserve. Records that relieve the node (deletes, leases, moves) may use it, sends may not. So a
full disk refuses sends first and everything else much later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.model.batch import Buffer
from penstock.storage.disk import Disk, DiskFailedError, DiskFullError
from penstock.storage.entry import (
    ALIGNMENT,
    BATCH,
    CLOSED,
    END,
    HEAD_BYTES_MAX,
    HEADER_BYTES,
    POSITION_SHIFT,
    RECORD,
    encode_table,
    entry_bytes,
)
from penstock.storage.errors import JournalBusyError, JournalExhaustedError, JournalFailedError, StorageError
from penstock.storage.flush import Flush, Piece
from penstock.storage.job import Job
from penstock.storage.journal_file import FileNumbers, JournalFile, PrepareJob, RecycleJob
from penstock.storage.options import StorageOptions

TABLE_SHARE = 64
"""A 64th of every file is kept for the table in END or CLOSED; one that would be larger is left out."""
TABLE_ROW_BYTES = 16


class Journal:
    """The log of a node, owned by one thread."""

    def __init__(
        self,
        disk: Disk,
        options: StorageOptions,
        seed: int,
        numbers: FileNumbers,
        current: JournalFile,
        indexes: dict[int, int],
        spares: Sequence[str] = (),
    ) -> None:
        self._disk = disk
        self._options = options
        self._seed = seed
        self._numbers = numbers
        self.indexes = indexes
        """The index of the last record of each partition; the next one must follow it."""
        self._spares = list(spares)
        self._prepared: deque[JournalFile] = deque()
        self._preparing: PrepareJob | None = None
        self._full = False
        self._retry_ms: int | None = None
        self._jobs: list[Job] = []
        self._flushing: Flush | None = None
        self._failed: str | None = None
        self.live: dict[int, JournalFile] = {}
        """Files that hold entries or are about to, the current one included."""
        self.flushes_total = 0
        self.flushed_bytes_total = 0
        self.unflushed_bytes = 0
        self._start(current)
        self.committed_position = self.appended_position
        self._pieces = [self._piece]
        self._request_files()

    def _start(self, file: JournalFile) -> None:
        self.live[file.number] = self.current = file
        self._base = file.number << POSITION_SHIFT
        self._offset = 0
        self._limit = file.capacity - file.capacity // TABLE_SHARE - 4 * HEADER_BYTES
        self._touched: set[int] = set()
        self._piece = Piece(file, 0)

    # -- appending -------------------------------------------------------------------------------------------

    @property
    def appended_position(self) -> int:
        """The position of the next entry; everything appended is below it."""
        return self._base | self._offset

    def append(
        self, partition: int, index: int, head: bytes, payload: Sequence[Buffer] = (), *, reserve: bool = True
    ) -> int:
        """Puts a record at the end of the log and returns its position; it is durable once a flush says so.

        The buffers must stay as they are until then. Without `reserve` the record may not use the last file
        that is ready: `DiskFullError` or `JournalBusyError`, and nothing was appended.
        """
        if index != self.indexes.get(partition, 0) + 1:
            raise ValueError(
                f"record {index} of partition {partition} follows {self.indexes.get(partition, 0)}"
            )
        position = self._put(RECORD, partition, index, head, payload, reserve=reserve)
        self.indexes[partition] = index
        return position

    def append_replica(
        self, kind: int, partition: int, index: int, head: bytes, payload: Sequence[Buffer], *, last: int
    ) -> int:
        """Puts an entry that is no record (CUT, IMAGE, BATCH) at the end; the partition's last record is `last` then."""
        position = self._put(kind, partition, index, head, payload, reserve=kind != BATCH)
        self.indexes[partition] = last
        return position

    def _put(
        self,
        kind: int,
        partition: int,
        index: int,
        head: bytes,
        payload: Sequence[Buffer],
        *,
        reserve: bool,
    ) -> int:
        head_size = len(head)
        if head_size > HEAD_BYTES_MAX:
            raise ValueError(f"a record head of {head_size} bytes is over {HEAD_BYTES_MAX}")
        payload_size = 0
        for buffer in payload:
            payload_size += len(buffer) if type(buffer) is bytes else memoryview(buffer).nbytes
        size = (HEADER_BYTES + ALIGNMENT - 1 + head_size + payload_size) & -ALIGNMENT
        if self._offset + size > self._limit:
            self._go_on(size, reserve=reserve)
        elif self._failed:
            raise JournalFailedError(self._failed)
        offset = self._offset
        self._piece.entries.append((kind, partition, index, head, payload, payload_size))
        self._offset = offset + size
        self.unflushed_bytes += size
        self._touched.add(partition)
        return self._base | offset

    def check_room(self, sizes: Sequence[int], *, reserve: bool) -> None:
        """Raises what `append` would where entries of these sizes, one after the other, do not all find room."""
        offset, files = self._offset, 0
        for size in sizes:
            if offset + size > self._limit:
                offset, files = 0, files + 1
            offset += size
        if files:
            self._check_files(files, reserve=reserve)

    def _go_on(self, size: int, *, reserve: bool) -> None:
        """Continues in the next file for an entry of `size` bytes, or raises before anything has changed."""
        if self._failed:
            raise JournalFailedError(self._failed)
        if size > self._limit:
            raise ValueError(f"an entry of {size} bytes does not fit in a journal file")
        self._check_files(1, reserve=reserve)
        self.rotate()

    def _check_files(self, count: int, *, reserve: bool) -> None:
        """Raises where so many files are not ready."""
        if len(self._prepared) < (count if reserve else count + 1):
            if not self._full:
                raise JournalBusyError("the next journal file is not ready yet")
            if not reserve:
                raise DiskFullError("the disk is full: only the journal's reserve is left")
            raise JournalExhaustedError("the journal's last file is full and there is no room for another")

    def rotate(self) -> None:
        """Ends the current file and continues in the next; `can_rotate` must be true."""
        following = self._prepared.popleft()
        self._mark(END, following.number)
        self.current.used = self._offset
        self._start(following)
        self._pieces.append(self._piece)
        self._request_files()

    @property
    def can_rotate(self) -> bool:
        """Whether another file is ready and there is something in this one."""
        return bool(self._prepared) and self._offset > 0

    def _mark(self, kind: int, index: int) -> None:
        """Appends END or CLOSED, with what each partition's last record in this file is."""
        table = b""
        if len(self._touched) * TABLE_ROW_BYTES <= self.current.capacity // TABLE_SHARE:
            table = encode_table(
                (partition, self.indexes.get(partition, 0)) for partition in sorted(self._touched)
            )
        self._piece.entries.append((kind, 0, index, b"", (table,), len(table)))
        size = entry_bytes(0, len(table))
        self._offset += size
        self.unflushed_bytes += size

    # -- flushing --------------------------------------------------------------------------------------------

    def take_flush(self) -> Flush | None:
        """Everything appended since the last one, or None where there is nothing or a flush is under way."""
        if self._failed:
            raise JournalFailedError(self._failed)
        if self._flushing is not None or not self.unflushed_bytes:
            return None
        return self._take(sync=self._options.durability == "sync")

    def _take(self, *, sync: bool) -> Flush:
        self._flushing = flush = Flush(self._pieces, self.appended_position, self._seed, sync=sync)
        self._piece = Piece(self.current, self._offset)
        self._pieces = [self._piece]
        return flush

    def flushed(self, flush: Flush) -> int:
        """Returns how far the log is committed now. Raises `JournalFailedError`, now and at every later call, if that cannot
        be known.
        """
        if flush is not self._flushing:
            raise ValueError("not the flush under way")
        self._flushing = None
        if flush.error is not None:
            self._failed = f"the journal cannot be written: {flush.error}"
            raise JournalFailedError(self._failed) from flush.error
        self.committed_position = flush.end
        self.unflushed_bytes -= flush.written_bytes
        self.flushes_total += 1
        self.flushed_bytes_total += flush.written_bytes
        self.current.used = self._offset
        return flush.end

    def close(self) -> None:
        """Flushes, and says on disk that the stop was clean; the marker is written after all else is synced."""
        if self._flushing is not None:
            raise StorageError("a flush is still under way")
        if self._offset or self.unflushed_bytes:
            self._close_current()
        self._failed = "the journal is closed"
        for file in (*self.live.values(), *self._prepared):
            file.file.close()

    def _close_current(self) -> None:
        flush = self.take_flush()
        if flush is not None:
            flush.run()
            self.flushed(flush)
        self._mark(CLOSED, 0)
        try:
            self.current.file.sync()
        except DiskFailedError as error:
            raise JournalFailedError(f"the journal cannot be synced: {error}") from error
        flush = self._take(sync=True)
        flush.run()
        self.flushed(flush)

    # -- files -----------------------------------------------------------------------------------------------

    @property
    def accepts_sends(self) -> bool:
        """False while the disk has no room for the next journal file."""
        return not self._full

    @property
    def congested(self) -> bool:
        """True while sends come faster than files can be made ready; a moment without them is enough."""
        return not self._full and len(self._prepared) < 2 and self._offset > self._limit // 2

    def take_jobs(self) -> list[Job]:
        """Work for the helper thread."""
        jobs, self._jobs = self._jobs, []
        return jobs

    def tick(self, now_ms: int) -> None:
        """Tries again for space when it is time to."""
        if self._full and self._preparing is None:
            if self._retry_ms is None:
                self._retry_ms = now_ms + self._options.retry_ms
            elif now_ms >= self._retry_ms:
                self._retry_ms = None
                self._prepare()

    @property
    def retry_ms(self) -> int | None:
        """When `tick` has to run next; 0 = soon, None = nothing to try again."""
        return (self._retry_ms or 0) if self._full and self._preparing is None else None

    def _request_files(self) -> None:
        if (
            self._preparing is None
            and not self._full
            and len(self._prepared) < self._options.journal_files_ahead
        ):
            self._prepare()

    def _prepare(self) -> None:
        spare = self._spares.pop() if self._spares else None
        options = self._options
        self._preparing = PrepareJob(
            self._disk, self._numbers.take(), spare, options.journal_file_bytes, options.free_bytes_min
        )
        self._jobs.append(self._preparing)

    def prepared(self, job: PrepareJob) -> JournalFile | None:
        """Takes the file that a `PrepareJob` made, or notes that the disk is full."""
        self._preparing = None
        if job.result is not None:
            self._prepared.append(job.result)
            if len(self._prepared) >= self._options.journal_files_ahead:
                self._full = False
            elif self._full:
                self._prepare()
        elif isinstance(job.error, DiskFullError):
            self._full = True
            self._retry_ms = None
        self._request_files()
        return job.result

    def recycle(self, numbers: Sequence[int]) -> None:
        """Puts vacated files aside for reuse, as many as may be kept."""
        room = max(0, self._options.spare_files_max - len(self._spares))
        keep: list[int] = []
        remove: list[int] = []
        for number in numbers:
            file = self.live.pop(number)
            file.file.close()
            fits = file.capacity == self._options.journal_file_bytes and len(keep) < room
            (keep if fits else remove).append(number)
        self._jobs.append(RecycleJob(self._disk, keep, remove))

    def recycled(self, job: RecycleJob) -> None:
        """Takes the spares; on a full disk they are used at once."""
        self._spares += job.spares
        if self._full and self._preparing is None:
            self._prepare()

    @property
    def files_on_disk(self) -> int:
        """Files in use, ready and spare."""
        return len(self.live) + len(self._prepared) + len(self._spares)

    @property
    def bytes_on_disk(self) -> int:
        """The size of those files."""
        files = (*self.live.values(), *self._prepared)
        return sum(file.capacity for file in files) + len(self._spares) * self._options.journal_file_bytes

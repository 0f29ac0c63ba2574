"""Segments: for each partition, the entries that outlived their journal file.

A removal waits until it is safe. The entries of a segment may have been deleted by records that are not on disk yet, so
the removal waits for the flush. They may have been copied, which only the next snapshot will contain, so then it waits for
that snapshot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from penstock.storage.copy import FOLDER, CopyJob, Source, partition_folder, segment_name
from penstock.storage.disk import Disk, File
from penstock.storage.entry import OFFSET_MASK, POSITION_SHIFT
from penstock.storage.job import Job
from penstock.storage.journal_file import FileNumbers
from penstock.storage.open_files import OpenFiles
from penstock.storage.options import StorageOptions

__all__ = ["CopyJob", "RemoveJob", "Segments"]

_NAME = re.compile(r"(\d{10})\.segment")


class RemoveJob(Job):
    """Removes unused files, and the directories of removed partitions."""

    def __init__(self, disk: Disk, names: Sequence[str], partitions: Sequence[int]) -> None:
        self._disk = disk
        self._names = names
        self._partitions = partitions
        self.sync_first: File | None = None
        """The journal file whose records make the files superfluous, if the flush did not sync it."""

    def _work(self) -> None:
        if self.sync_first is not None:
            self.sync_first.sync()
        for name in self._names:
            self._remove(name)
        for partition in self._partitions:
            folder = partition_folder(partition)
            if not self._disk.list(folder):
                self._remove(folder)

    def _remove(self, name: str) -> None:
        try:
            self._disk.remove(name)
        except FileNotFoundError:
            pass  # removed before a crash that forgot what else was to be done


class Segments:
    """All segments of a node, owned by one thread."""

    def __init__(self, disk: Disk, options: StorageOptions, seed: int, files: OpenFiles) -> None:
        self._disk = disk
        self._options = options
        self._seed = seed
        self._files = files
        self._sizes: dict[int, dict[int, int]] = {}
        self._open: dict[int, int] = {}
        self._copying: set[int] = set()
        self._dropped: set[int] = set()  # while entries of theirs were being copied
        self._moves = 0
        self._moved_out: dict[int, tuple[int, int]] = {}  # segment → its partition, when entries left it last
        self._removals: list[tuple[int, int, str]] = []  # position to be committed, number, name
        self._gone: list[tuple[int, int]] = []  # position to be committed, partition
        self.bytes_total = 0
        self.files_total = 0
        self.highest_number = 0
        for folder in disk.list(FOLDER):
            if folder.isdecimal():
                self._load(int(folder))

    def _load(self, partition: int) -> None:
        sizes = self._sizes[partition] = {}
        for name in self._disk.list(partition_folder(partition)):
            if match := _NAME.fullmatch(name):
                number = int(match[1])
                file = self._disk.open(segment_name(partition, number))
                sizes[number] = file.size()
                file.close()
                self._files.add(number, segment_name(partition, number), sizes[number], partition)
                self.highest_number = max(self.highest_number, number)
        self.files_total += len(sizes)
        self.bytes_total += sum(sizes.values())

    @property
    def partitions(self) -> list[int]:
        """Partitions that have a folder."""
        return sorted(self._sizes)

    def sizes(self, partition: int) -> tuple[int, int]:
        """Files and bytes of a partition."""
        sizes = self._sizes.get(partition, {})
        return len(sizes), sum(sizes.values())

    def numbers(self, partition: int) -> dict[int, int]:
        """The size of each segment of a partition."""
        return dict(self._sizes.get(partition, {}))

    # -- copying ---------------------------------------------------------------------------------------------

    def copy_job(self, partition: int, positions: Sequence[int], numbers: FileNumbers) -> CopyJob:
        """A job that copies entries to the partition's segment; one per partition at a time."""
        if partition in self._copying:
            raise ValueError(f"entries of partition {partition} are being copied already")
        sources: dict[int, Source] = {}
        for number in sorted({position >> POSITION_SHIFT for position in positions}):
            file: File | None = None
            try:
                file = self._files.get(number)
            except FileNotFoundError:
                pass  # each entry of it is reported as damaged
            readable, owner = self._files.readable.get(number, 0), self._files.owners.get(number)
            sources[number] = Source(self._files.name(number), file, readable, owner)
        for position in positions:
            if position & OFFSET_MASK >= sources[position >> POSITION_SHIFT].readable > 0:
                raise ValueError(
                    f"the entry at position {position:#x} is not flushed yet, so it cannot be copied"
                )
        self._files.pin(sources)
        self._copying.add(partition)
        opened = self._open.get(partition)
        if opened in sources:
            opened = None  # a segment that is copied from is to become empty, not longer
        segment = None if opened is None else (opened, self._sizes[partition][opened])
        return CopyJob(
            self._disk,
            partition,
            positions,
            sources,
            numbers,
            self._seed,
            self._options.segment_bytes,
            segment,
        )

    def copied(self, job: CopyJob, appended_position: int) -> None:
        """Takes note of what a copy wrote and of the segments it took entries from."""
        self._copying.discard(job.partition)
        was_dropped = job.partition in self._dropped
        self._dropped.discard(
            job.partition
        )  # also if the copy failed: the next one may be of a partition that is back
        if job.error is not None:
            return
        sizes = self._sizes.setdefault(job.partition, {})
        for number, size in job.sizes.items():
            self.files_total += number not in sizes
            self.bytes_total += size - sizes.get(number, 0)
            sizes[number] = size
            self._files.add(number, segment_name(job.partition, number), size, job.partition)
        if job.segment is not None and job.segment[0] in sizes:
            self._open[job.partition] = job.segment[0]
        self._moves += 1
        for number, source in job.sources.items():
            if source.owner is not None:
                self._moved_out[number] = (job.partition, self._moves)
        if was_dropped:
            self.drop_partition(job.partition, appended_position)

    # -- removing --------------------------------------------------------------------------------------------

    def drop(self, partition: int, number: int, appended_position: int) -> None:
        """Removes a segment that nothing refers to, once that is on disk."""
        size = self._sizes.get(partition, {}).pop(number, None)
        if size is not None:
            self.bytes_total -= size
            self.files_total -= 1
            if self._open.get(partition) == number:
                del self._open[partition]
            self._files.retire(number)
            self._removals.append((appended_position, number, segment_name(partition, number)))

    def drop_partition(self, partition: int, appended_position: int) -> None:
        """Removes everything of a partition, once it is on disk that the partition is gone."""
        if partition in self._copying:
            self._dropped.add(partition)
        for number in list(self._sizes.get(partition, ())):
            self.drop(partition, number, appended_position)
        for number in [number for number, row in self._moved_out.items() if row[0] == partition]:
            del self._moved_out[number]
        if self._sizes.pop(partition, None) is not None:
            self._gone.append((appended_position, partition))

    def keep_only(self, partition: int, referenced: Iterable[int], appended_position: int) -> None:
        """Removes the segments of a partition that its recovered state does not refer to."""
        for number in self._sizes.get(partition, {}).keys() - set(referenced):
            self.drop(partition, number, appended_position)

    def removal_job(self, committed_position: int) -> RemoveJob | None:
        """A job for the removals that may go ahead now."""
        ready = [
            name
            for position, number, name in self._removals
            if position <= committed_position and number not in self._moved_out
        ]
        gone = [partition for position, partition in self._gone if position <= committed_position]
        if not ready and not gone:
            return None
        names = set(ready)
        self._removals = [removal for removal in self._removals if removal[2] not in names]
        self._gone = [row for row in self._gone if row[0] > committed_position]
        return RemoveJob(self._disk, ready, gone)

    @property
    def has_removals(self) -> bool:
        """Whether anything waits to be removed."""
        return bool(self._removals or self._gone)

    @property
    def moves(self) -> int:
        """How many copies have been noted: the age of a state that is added to a snapshot."""
        return self._moves

    def snapshot_taken(self, moves: dict[int, int]) -> None:
        """A snapshot is on disk that knows all copies of each partition up to the number given."""
        for number, (partition, move) in list(self._moved_out.items()):
            if move <= moves.get(partition, -1):
                del self._moved_out[number]

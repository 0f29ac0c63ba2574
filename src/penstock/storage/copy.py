"""Copies living entries out of the journal (or an older segment) into a partition's segment.

Entries are copied byte for byte, with their checksums, in their order, one window at a time. A copy and the name of its
file are on disk before the job ends: from then on a snapshot may refer to it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from penstock.model.batch import Buffer
from penstock.model.limits import KIBIBYTE, MEBIBYTE
from penstock.storage.disk import Disk, DiskFailedError, DiskFullError, File
from penstock.storage.entry import HEADER_BYTES, OFFSET_MASK, POSITION_SHIFT, decode_header
from penstock.storage.errors import Damage
from penstock.storage.job import Job
from penstock.storage.journal_file import FileNumbers
from penstock.storage.reader import problem_of

FOLDER = "segments"
WINDOW_BYTES = MEBIBYTE
LAST_ENTRY_BYTES = 64 * KIBIBYTE
"""How much to read for the last entry of a window before its size is known."""
_SECTOR_BYTES = 512


def partition_folder(partition: int) -> str:
    """The directory of a partition's segments."""
    return f"{FOLDER}/{partition}"


def segment_name(partition: int, number: int) -> str:
    """The path of the segment with that number."""
    return f"{FOLDER}/{partition}/{number:010}.segment"


class Source(NamedTuple):
    """A file to copy from; `owner` is None for a journal file."""

    name: str
    file: File | None
    readable: int
    owner: int | None


class SegmentWriter:
    """Appends entries to a partition's open segment and starts new ones as they fill; `finish` syncs."""

    def __init__(
        self,
        disk: Disk,
        partition: int,
        numbers: FileNumbers,
        segment_bytes: int,
        number: int | None,
        size: int,
    ) -> None:
        self._disk = disk
        self._partition = partition
        self._numbers = numbers
        self._segment_bytes = segment_bytes
        self.number = number
        self._size = size
        self._file: File | None = None
        if number is not None:
            try:
                self._file = disk.open(segment_name(partition, number))
            except FileNotFoundError:
                pass  # its damage is reported when it is read; here a new segment begins
        self._waiting: list[Buffer] = []
        self._waiting_bytes = 0
        self.sizes: dict[int, int] = {}
        """The files written to and how far they are good now."""
        self._created: list[int] = []

    def append(self, entry: Buffer) -> int:
        """The position that the entry will have."""
        if self._file is None or self._size >= self._segment_bytes:
            self._next_file()
        assert self.number is not None
        position = self.number << POSITION_SHIFT | self._size
        self._waiting.append(entry)
        self._waiting_bytes += len(entry)
        self._size += len(entry)
        return position

    def write(self) -> None:
        """Writes what waits, so that its memory can be given back."""
        if self._waiting and self._file is not None and self.number is not None:
            self._file.write_at(self._size - self._waiting_bytes, self._waiting)
            self.sizes[self.number] = self._size
            self._waiting, self._waiting_bytes = [], 0

    def _next_file(self) -> None:
        self._sync()
        folder = partition_folder(self._partition)
        self._disk.make_folder(folder)
        self.number, self._size = self._numbers.take(), 0
        self._file = self._disk.open(segment_name(self._partition, self.number), create=True)
        self._created.append(self.number)

    def _sync(self) -> None:
        self.write()
        if self._file is not None:
            if self.number in self.sizes:
                self._file.sync()
            self._file.close()
            self._file = None

    def finish(self) -> None:
        """Returns when everything is on disk."""
        self._sync()
        if self._created:
            self._disk.sync_directory(partition_folder(self._partition))
            self._disk.sync_directory(FOLDER)

    def abandon(self) -> None:
        """Removes what was begun; bytes behind the known end of an older file are overwritten by the next copy."""
        if self._file is not None:
            self._file.close()
        for number in self._created:
            self._disk.remove(segment_name(self._partition, number))


class CopyJob(Job):
    """Copies the entries at some positions to their partition's segment."""

    def __init__(
        self,
        disk: Disk,
        partition: int,
        positions: Sequence[int],
        sources: dict[int, Source],
        numbers: FileNumbers,
        seed: int,
        segment_bytes: int,
        segment: tuple[int, int] | None,
    ) -> None:
        self.partition = partition
        self.moved: dict[int, int] = {}
        """Old position → new position; empty after an error."""
        self.damages: list[Damage] = []
        """Entries that could not be copied because they are not what was written."""
        self.sizes: dict[int, int] = {}
        self.segment = segment
        self.sources = sources
        self.pinned = sources.keys()
        self._disk = disk
        self._positions = sorted(positions)
        self._numbers = numbers
        self._seed = seed
        self._segment_bytes = segment_bytes

    def _work(self) -> None:
        number, size = self.segment or (None, 0)
        writer = SegmentWriter(self._disk, self.partition, self._numbers, self._segment_bytes, number, size)
        moved: dict[int, int] = {}
        try:
            start = 0
            while start < len(self._positions):
                source = self._positions[start] >> POSITION_SHIFT
                end = bisect_right(self._positions, source << POSITION_SHIFT | OFFSET_MASK, start)
                self._copy_from(source, self._positions[start:end], writer, moved)
                start = end
            writer.finish()
        except DiskFullError:
            writer.abandon()
            raise
        self.moved = moved
        self.sizes = writer.sizes
        if writer.number is not None:
            self.segment = (writer.number, writer.sizes.get(writer.number, size))

    def _copy_from(
        self, number: int, positions: list[int], writer: SegmentWriter, moved: dict[int, int]
    ) -> None:
        """Copies from one file, reading nearby entries with one read."""
        place = 0
        while place < len(positions):
            start = positions[place] & OFFSET_MASK
            last = bisect_right(positions, positions[place] + WINDOW_BYTES, place) - 1
            data = self._read(number, start, (positions[last] & OFFSET_MASK) - start + LAST_ENTRY_BYTES)
            first = place
            for position in positions[place : last + 1]:
                at = (position & OFFSET_MASK) - start
                entry, reason = self._entry(number, start, data, at, may_wait=place > first)
                if entry is not None:
                    moved[position] = writer.append(entry)
                elif reason is None:
                    break  # it is not all in this window: begin the next one with it
                else:
                    name = self.sources[number].name
                    self.damages.append(Damage(self.partition, name, position & OFFSET_MASK, reason))
                place += 1
            writer.write()

    def _entry(
        self, number: int, start: int, data: bytes, at: int, *, may_wait: bool
    ) -> tuple[Buffer | None, str | None]:
        """The entry, or what is wrong with it, or neither when it should be read again by itself."""
        source = self.sources[number]
        if source.file is None:
            return None, "the file is missing"
        if may_wait and at + HEADER_BYTES > len(data):
            return None, None
        header = decode_header(data, at, self._seed)
        if header is not None and at + header.size > len(data):
            if may_wait:
                return None, None
            data, at = self._read(number, start + at, header.size), 0
        entry = data if header is None else data[at : at + header.size]
        reason = problem_of(header, entry, number, source.owner)
        if reason is None and header is not None and header.partition != self.partition:
            reason = "another entry is there"
        return (entry, None) if reason is None else (None, reason)

    def _read(self, number: int, offset: int, size: int) -> bytes:
        """Less where the disk cannot read it all, so that only entries that lie there show as damaged."""
        source = self.sources[number]
        size = min(size, source.readable - offset)
        while source.file is not None and size > 0:
            try:
                return source.file.read_at(offset, size)
            except DiskFailedError:
                size = size // 2 if size > _SECTOR_BYTES else 0
        return b""

"""Reads records back as they were written, for replicas: to send them, or to rebuild a state from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from penstock.model.errors import PenstockError
from penstock.model.limits import MEBIBYTE
from penstock.storage.disk import Disk, DiskFailedError, File
from penstock.storage.entry import HEADER_BYTES, OFFSET_MASK, POSITION_SHIFT, decode_header
from penstock.storage.errors import DamagedEntryError, StorageDamagedError
from penstock.storage.job import Job
from penstock.storage.open_files import OpenFiles
from penstock.storage.reader import problem_of
from penstock.storage.snapshot import load_section

WINDOW_BYTES = MEBIBYTE

Built = TypeVar("Built")


class ReadEntry(msgspec.Struct, frozen=True, gc=False):
    """A record as it is in the journal."""

    index: int
    head: bytes
    payload: memoryview
    position: int


class EntryReadJob(Job):
    """Reads entries of one partition in the given order, until they have `most` bytes or one is damaged.

    Records from `first` on must be numbered consecutively; without `first` the entries are batches with any numbers.
    """

    def __init__(
        self,
        files: OpenFiles,
        seed: int,
        partition: int,
        positions: Sequence[int],
        most: int,
        first: int | None = None,
    ) -> None:
        self.partition = partition
        self.entries: list[ReadEntry] = []
        self.damaged: DamagedEntryError | None = None
        self._seed = seed
        self._positions = positions
        self._most = most
        self._first = first
        self._files: dict[int, tuple[File, str, int, int | None]] = {}
        for number in {position >> POSITION_SHIFT for position in positions}:
            try:
                row = (
                    files.get(number),
                    files.name(number),
                    files.readable[number],
                    files.owners.get(number),
                )
            except FileNotFoundError:
                continue  # reported when an entry of it is needed
            self._files[number] = row
        self.pinned = list(self._files)
        files.pin(self.pinned)

    def _work(self) -> None:
        try:
            self.read()
        except DamagedEntryError as damaged:
            self.damaged = damaged

    def read(self) -> None:
        """Fills `entries`; raises at the first that is not what was written."""
        size = 0
        window, start, number = memoryview(b""), 0, 0
        for position in self._positions:
            offset = position & OFFSET_MASK
            if position >> POSITION_SHIFT != number or not start <= offset < start + len(window):
                number, start = position >> POSITION_SHIFT, offset
                window = self._read(number, start, WINDOW_BYTES)
            entry = self._entry(number, window, start, offset)
            if entry is None:
                start, window = offset, self._read(number, offset, WINDOW_BYTES)
                entry = self._entry(number, window, start, offset)
            if entry is None:
                header = decode_header(window, 0, self._seed)
                window = self._read(number, offset, header.size if header is not None else 0)
                entry = self._entry(number, window, start, offset)
            if entry is None:
                raise self._damage(number, offset, "the file ends before the entry does")
            if self._first is not None and entry.index != self._first + len(self.entries):
                raise self._damage(number, offset, f"record {entry.index} is there instead of the one wanted")
            self.entries.append(entry)
            size += len(entry.head) + len(entry.payload)
            if size >= self._most:
                return

    def _entry(self, number: int, window: memoryview, start: int, offset: int) -> ReadEntry | None:
        """The entry; None where the window does not hold all of it."""
        at = offset - start
        if at + HEADER_BYTES > len(window):
            return None
        header = decode_header(window, at, self._seed)
        if header is not None and at + header.size > len(window):
            return None
        data = window[at : at + header.size] if header is not None else window[:0]
        reason = problem_of(header, data, number, self._files[number][3])
        if reason is None and header is not None and header.partition != self.partition:
            reason = "another entry is there"
        if reason is not None or header is None:
            raise self._damage(number, offset, reason or "there is no entry")
        middle = HEADER_BYTES + header.head_size
        return ReadEntry(
            header.index,
            bytes(data[HEADER_BYTES:middle]),
            data[middle : middle + header.payload_size],
            number << POSITION_SHIFT | offset,
        )

    def _read(self, number: int, offset: int, size: int) -> memoryview:
        if number not in self._files:
            raise self._damage(number, offset, "the file is missing")
        file, _, readable, _ = self._files[number]
        size = min(size, readable - offset)
        while size > 0:
            try:
                return memoryview(file.read_at(offset, size))
            except DiskFailedError:
                size = size // 2 if size > HEADER_BYTES else 0
        raise self._damage(number, offset, "it cannot be read")

    def _damage(self, number: int, offset: int, reason: str) -> DamagedEntryError:
        name = self._files[number][1] if number in self._files else f"file {number}"
        return DamagedEntryError(name, offset, reason)


class RebuildJob(EntryReadJob, Generic[Built]):
    """Rebuilds a partition's state from the snapshot and the records at some positions after it."""

    def __init__(
        self,
        disk: Disk,
        snapshot: int,
        base: int,
        files: OpenFiles,
        seed: int,
        partition: int,
        positions: Sequence[int],
        build: Callable[[bytes | None, Sequence[ReadEntry]], Built],
    ) -> None:
        super().__init__(files, seed, partition, positions, 2**62, base + 1)
        self._disk = disk
        self._snapshot = snapshot
        self._base = base
        self._build = build
        self.built: Built | None = None
        """None where it cannot be done."""

    def _work(self) -> None:
        super()._work()
        if self.damaged is not None:
            return
        try:
            section = load_section(self._disk, self._snapshot, self.partition) if self._base else None
            if (section[0] if section is not None else 0) == self._base:
                self.built = self._build(section[1] if section is not None else None, self.entries)
        except (StorageDamagedError, DiskFailedError, PenstockError, ValueError, FileNotFoundError):
            self.built = None  # then the partition is taken over whole

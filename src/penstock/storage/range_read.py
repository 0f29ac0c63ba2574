"""Reads many neighbouring batches of a file at once, for readers of a retained log.

These reads bypass the cache: a reader of a long log would only evict what consumers of queues need next. Checksums are
verified in the helper thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from penstock.model.batch import Buffer
from penstock.model.limits import KIBIBYTE, MEBIBYTE
from penstock.model.records import Sent, decode_record
from penstock.storage.disk import DiskFailedError, File
from penstock.storage.entry import HEADER_BYTES, OFFSET_MASK, POSITION_SHIFT, decode_header
from penstock.storage.errors import DamagedEntryError
from penstock.storage.job import Job
from penstock.storage.open_files import OpenFiles
from penstock.storage.reader import problem_of

RANGE_BYTES = 4 * MEBIBYTE
"""The approximate maximum of one read."""
_GAP_BYTES = 64 * KIBIBYTE
"""Entries of others between two batches are read over rather than jumped if they have not more bytes."""
_HEAD_BYTES = 512
"""The usual maximum of an entry's head. Batches with a long origin have more, and are read again alone."""

Place = tuple[int, int]
"""Position and stored bytes of a batch."""
LoggedEntry = tuple[Sent, memoryview]


class RangeReadJob(Job):
    """Reads batches in the given order; `entries` has those before the first damaged one."""

    def __init__(self, files: OpenFiles, seed: int, partition: int, places: Sequence[Place]) -> None:
        self.entries: list[LoggedEntry] = []
        self.damaged: DamagedEntryError | None = None
        self._seed = seed
        self._partition = partition
        self._places = places
        self._files: dict[int, tuple[File | None, str, int, int | None]] = {}
        for number in {position >> POSITION_SHIFT for position, _ in places}:
            handle: File | None = None
            try:
                handle = files.get(number)
            except FileNotFoundError:
                pass  # reported when an entry of it is needed
            readable, owner = files.readable.get(number, 0), files.owners.get(number)
            self._files[number] = (handle, files.name(number), readable, owner)
        self.pinned = [number for number, row in self._files.items() if row[0] is not None]
        files.pin(self.pinned)

    def _work(self) -> None:
        try:
            for places in _ranges(self._places):
                self._read_range(places)
        except DamagedEntryError as damaged:
            self.damaged = damaged

    def _read_range(self, places: Sequence[Place]) -> None:
        number, start = places[0][0] >> POSITION_SHIFT, places[0][0] & OFFSET_MASK
        last, stored_bytes = places[-1]
        size = (last & OFFSET_MASK) - start + HEADER_BYTES + _HEAD_BYTES + stored_bytes
        try:
            data = memoryview(self._read(number, start, size))
        except DiskFailedError:
            data = memoryview(
                b""
            )  # each entry is read by itself, so that only what cannot be read is damaged
        for position, _ in places:
            self.entries.append(self._entry(number, data, start, position & OFFSET_MASK))

    def _entry(self, number: int, data: memoryview, start: int, offset: int) -> LoggedEntry:
        _, name, _, owner = self._files[number]
        at = offset - start
        header = decode_header(data, at, self._seed) if at + HEADER_BYTES <= len(data) else None
        try:
            if header is None:
                data, at = memoryview(self._read(number, offset, HEADER_BYTES)), 0
                header = decode_header(data, 0, self._seed)
            if header is not None and at + header.size > len(data):
                data, at = memoryview(self._read(number, offset, header.size)), 0
        except DiskFailedError as error:
            raise DamagedEntryError(name, offset, f"it cannot be read: {error}") from error
        entry = data[at : at + header.size] if header is not None else data[:0]
        reason = problem_of(header, entry, number, owner)
        if header is not None and reason is None and header.partition != self._partition:
            reason = "another entry is there"
        if reason is None:
            assert header is not None
            middle = HEADER_BYTES + header.head_size
            try:
                record = decode_record(entry[HEADER_BYTES:middle])
                if isinstance(record, Sent):
                    return record, entry[middle : middle + header.payload_size]
                reason = "the entry holds no batch"
            except msgspec.DecodeError as error:
                reason = f"the contents of the entry make no sense: {error}"
        raise DamagedEntryError(name, offset, reason)

    def _read(self, number: int, offset: int, size: int) -> Buffer:
        file, name, readable, _ = self._files[number]
        if file is None:
            raise DamagedEntryError(name, offset, "the file is missing")
        if offset >= readable:
            raise DamagedEntryError(name, offset, "the file ends before the entry")
        return file.read_at(offset, min(size, readable - offset))


def _ranges(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """Cuts the batches where a read should end: at another file, a gap, or what one read may have."""
    begin = 0
    for place, ((position, stored_bytes), (following, _)) in enumerate(pairwise(places), 1):
        gap = following - position - stored_bytes
        if not 0 <= gap <= _GAP_BYTES or following - places[begin][0] > RANGE_BYTES:
            yield places[begin:place]
            begin = place
    if places:
        yield places[begin:]

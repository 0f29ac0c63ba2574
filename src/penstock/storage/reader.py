"""Reads stored batches: from the cache, from the operating system's memory, or in a job from the disk.

A miss also reads the entries that follow, so consuming a cold backlog in order costs one read for every
`read_ahead_bytes`. They stay raw until they are used: only then they are checked and decoded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence, Sized

import msgspec

from penstock.model.batch import Batch, Buffer
from penstock.model.errors import PenstockError
from penstock.model.limits import KIBIBYTE
from penstock.model.records import Sent, decode_record
from penstock.storage.disk import DiskFailedError, File, WouldBlockError
from penstock.storage.entry import (
    BATCH,
    HEADER_BYTES,
    OFFSET_MASK,
    POSITION_SHIFT,
    RECORD,
    Header,
    decode_header,
    payload_is_whole,
)
from penstock.storage.errors import DamagedEntryError
from penstock.storage.job import Job
from penstock.storage.open_files import OpenFiles

SMALL_READ_BYTES = 4096
SEEK_BYTES = 16 * KIBIBYTE
"""The size of a read that does not continue the last one: neighbours would only evict others from the cache."""
FILES_REMEMBERED = 4_096
OVERHEAD_BYTES = 600
"""The memory of a cached batch besides its bytes."""

Stored = tuple[Sent, Batch]


class RawEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry as it is on disk; only its header is checked."""

    header: Header
    data: Buffer


def problem_of(header: Header | None, data: Buffer, number: int, owner: int | None) -> str | None:
    """The problem of an entry that should be a record of the journal file `number` or of partition `owner`."""
    if header is None:
        return "the header of the entry is damaged"
    if header.kind not in (RECORD, BATCH) or (
        header.file_number != number if owner is None else header.partition != owner
    ):
        return "another entry is there"
    if not payload_is_whole(header, data, 0):
        return "the contents of the entry are damaged"
    return None


def fetch(
    file: File, offset: int, readable: int, ahead: int, seed: int, number: int | None, *, block: bool
) -> list[tuple[int, RawEntry]]:
    """The entry at `offset`, then the following ones of the same partition that the same read returned.

    Nothing at or beyond `readable` is examined. In a journal file, `number` identifies the entries of the current use.
    """
    most = readable - offset
    if most <= 0:
        return []
    try:
        data = file.read_at(offset, min(ahead, most), block=block)
    except WouldBlockError:
        data = file.read_at(offset, min(SMALL_READ_BYTES, most), block=block)
    first = decode_header(data, 0, seed)
    if first is None or first.size > most:
        return []
    if len(data) < first.size:
        data += file.read_at(offset + len(data), first.size - len(data), block=block)
    view = memoryview(data)
    found = [(offset, RawEntry(first, view[: first.size]))]
    at = kept = first.size
    while (header := decode_header(view, at, seed)) is not None:
        size = header.size
        if at + size > len(view) or (number is not None and header.file_number != number):
            break
        if header.partition == first.partition and header.kind in (RECORD, BATCH) and header.payload_size:
            found.append((offset + at, RawEntry(header, view[at : at + size])))
            kept += size
        at += size
    if 2 * kept < len(view):  # mostly others' entries: a view would keep them all in memory
        return [(place, RawEntry(entry.header, bytes(entry.data))) for place, entry in found]
    return found


class Reader:
    """The batches of a node by position, owned by one thread."""

    def __init__(self, files: OpenFiles, seed: int, cache_bytes: int, read_ahead_bytes: int) -> None:
        self._files = files
        self._seed = seed
        self._cache_bytes = cache_bytes
        self._ahead = read_ahead_bytes
        self._cache: OrderedDict[int, Stored | RawEntry] = OrderedDict()
        self._shared: dict[int, int] = {}
        """The number of batches that are views of the same bytes, as they came from a socket; counted once, as a whole."""
        self.cached_bytes = 0
        self.committed_position = 0
        """Batches at or beyond it are only in the cache, so they stay there."""
        self._ends: dict[int, int] = {}
        """Where the last read of each file ended."""
        self.hits = 0
        self.misses = 0

    def read(self, partition: int, position: int, *, block: bool) -> Stored:
        """The batch of a partition at a position; raises `WouldBlockError` or `DamagedEntryError`."""
        found = self._cache.get(position)
        if type(found) is tuple:
            self.hits += 1
            return found
        if found is None:
            self.misses += 1
            found = self._miss(position, block=block)
        assert isinstance(found, RawEntry)
        stored = self._decode(partition, position, found)
        self.put(position, stored)
        return stored

    def has(self, position: int) -> bool:
        """Whether the batch is in the cache."""
        return position in self._cache

    def cached(self, partition: int, position: int) -> Stored | None:
        """The batch at a position if it is in the cache, which stays as it is; raises `DamagedEntryError`."""
        found = self._cache.get(position)
        return self._decode(partition, position, found) if isinstance(found, RawEntry) else found

    def hand_out(self, partition: int, position: int, end: int, *, block: bool) -> Stored:
        """Like `read`, for a consumer who wants the batch up to message `end`; if that is all, it is forgotten.

        A queue is read in the order it was written, mostly once. Kept by age alone, a backlog larger than the
        cache would push out each batch just before it is wanted.
        """
        found = self._cache.get(position)
        if type(found) is tuple:
            self.hits += 1
            stored = found
        else:
            if found is None:
                self.misses += 1
                raw = self._miss(position, block=block)
            else:
                assert isinstance(found, RawEntry)
                raw = found
            stored = self._decode(partition, position, raw)
        sent = stored[0]
        if end < sent.first + sent.count:
            if stored is found:
                self._cache.move_to_end(position)
            else:
                self.put(position, stored)
        elif found is not None and (
            position < self.committed_position or position >> POSITION_SHIFT in self._files.owners
        ):
            del self._cache[position]
            self._lose(found)
        return stored

    def add(self, position: int, stored: Stored) -> None:
        """Keeps a batch that was just appended; the next flush evicts others for it, in one sweep."""
        self._cache[position] = stored
        owner: Sized = stored[1].data.obj  # type: ignore[assignment]  # bytes from a socket, or from `select`
        shared = self._shared.get(id(owner), 0)
        self._shared[id(owner)] = shared + 1
        self.cached_bytes += OVERHEAD_BYTES if shared else OVERHEAD_BYTES + len(owner)

    def _lose(self, stored: Stored | RawEntry) -> None:
        """Takes what is no longer kept off the scales."""
        if isinstance(stored, RawEntry):
            self.cached_bytes -= _weight(stored)
            return
        owner: Sized = stored[1].data.obj  # type: ignore[assignment]  # bytes, as above
        shared = self._shared.get(id(owner))
        if shared is None:
            self.cached_bytes -= _weight(stored)
        elif shared > 1:
            self._shared[id(owner)] = shared - 1
            self.cached_bytes -= OVERHEAD_BYTES
        else:
            del self._shared[id(owner)]
            self.cached_bytes -= OVERHEAD_BYTES + len(owner)

    def put(self, position: int, stored: Stored | RawEntry) -> None:
        """Keeps a batch; the oldest that are on disk make room for it."""
        cache = self._cache
        if (old := cache.get(position)) is not None:
            self._lose(old)
        cache[position] = stored
        self.cached_bytes += _weight(stored)
        if self.cached_bytes > self._cache_bytes:
            self.shrink()

    def put_new(self, position: int, entry: RawEntry) -> None:
        """Keeps an entry unless its batch is here already."""
        if position not in self._cache:
            self.put(position, entry)

    def shrink(self) -> None:
        """Evicts the oldest batches, as far as they can be read again; the newest always stays."""
        cache = self._cache
        committed, segments = self.committed_position, self._files.owners
        while self.cached_bytes > self._cache_bytes and len(cache) > 1:
            oldest, stored = cache.popitem(last=False)
            if oldest >= committed and oldest >> POSITION_SHIFT not in segments:
                cache[oldest] = stored
                cache.move_to_end(oldest, last=False)
                return
            self._lose(stored)

    def forget(self, position: int) -> None:
        """Frees a batch that will not be read again."""
        stored = self._cache.pop(position, None)
        if stored is not None:
            self._lose(stored)

    def moved(self, old: int, new: int) -> None:
        """Follows an entry that was copied to a segment."""
        stored = self._cache.pop(old, None)
        if stored is not None:
            self._cache[new] = stored

    def job(self, positions: Sequence[int]) -> ReadJob:
        """Reads batches in a helper thread; afterwards they are in the cache."""
        return ReadJob(self, self._files, positions, self._seed, self._ahead, self._cache_bytes // 2)

    def _miss(self, position: int, *, block: bool) -> RawEntry:
        number, offset = position >> POSITION_SHIFT, position & OFFSET_MASK
        files = self._files
        readable = files.readable.get(number, 0)
        try:
            file = files.get(number)
            if offset >= readable:
                raise ValueError(f"nothing was flushed at offset {offset} of {files.name(number)}")
            life = None if number in files.owners else number
            found = fetch(file, offset, readable, self._window(number, offset), self._seed, life, block=block)
        except FileNotFoundError:
            raise DamagedEntryError(files.name(number), offset, "the file is missing") from None
        except DiskFailedError as error:
            raise DamagedEntryError(files.name(number), offset, f"it cannot be read: {error}") from error
        if not found:
            raise DamagedEntryError(files.name(number), offset, "the header of the entry is damaged")
        self._put_ahead(number << POSITION_SHIFT, found[1:])
        self._ends[number] = found[-1][0] + len(found[-1][1].data)
        return found[0][1]

    def _window(self, number: int, offset: int) -> int:
        """The size of a read: large after the last read of a file, small after a jump."""
        if len(self._ends) > FILES_REMEMBERED:
            self._ends.clear()
        end = self._ends.get(number, 0)
        return self._ahead if end <= offset < end + self._ahead else min(SEEK_BYTES, self._ahead)

    def _put_ahead(self, base: int, found: list[tuple[int, RawEntry]]) -> None:
        """Keeps the additional entries of a read."""
        cache = self._cache
        for at, entry in found:
            if (base | at) not in cache:
                cache[base | at] = entry
                self.cached_bytes += len(entry.data) + OVERHEAD_BYTES
        if self.cached_bytes > self._cache_bytes:
            self.shrink()

    def _decode(self, partition: int, position: int, entry: RawEntry) -> Stored:
        number, offset = position >> POSITION_SHIFT, position & OFFSET_MASK
        header, data = entry.header, entry.data
        reason = problem_of(header, data, number, self._files.owners.get(number))
        if reason is None and header.partition != partition:
            reason = "an entry of another partition is there"
        if reason is None:
            middle = HEADER_BYTES + header.head_size
            try:
                record = decode_record(memoryview(data)[HEADER_BYTES:middle])
                if isinstance(record, Sent):
                    return record, Batch(memoryview(data)[middle : middle + header.payload_size])
                reason = "the entry holds no batch"
            except (msgspec.DecodeError, PenstockError) as error:
                reason = f"the contents of the entry make no sense: {error}"
        self.forget(position)
        raise DamagedEntryError(self._files.name(number), offset, reason)


class ReadJob(Job):
    """Reads batches into the cache, in the given order, as many as it can hold."""

    def __init__(
        self,
        reader: Reader,
        files: OpenFiles,
        positions: Sequence[int],
        seed: int,
        ahead: int,
        bytes_max: int,
    ) -> None:
        self.positions = positions
        self._reader = reader
        self._seed = seed
        self._ahead = ahead
        self._bytes_max = bytes_max
        self._handles: dict[int, tuple[File, int, int | None]] = {}
        for number in {position >> POSITION_SHIFT for position in positions}:
            try:
                handle = files.get(number)
            except FileNotFoundError:
                continue  # the read that follows says so
            self._handles[number] = (
                handle,
                files.readable[number],
                None if number in files.owners else number,
            )
        self.pinned = self._handles.keys()
        files.pin(self.pinned)
        self._found: dict[int, RawEntry] = {}

    def _work(self) -> None:
        size = 0
        for position in self.positions:
            number = position >> POSITION_SHIFT
            if position in self._found or number not in self._handles:
                continue
            if size >= self._bytes_max:
                break
            file, readable, life = self._handles[number]
            try:
                found = fetch(
                    file, position & OFFSET_MASK, readable, self._ahead, self._seed, life, block=True
                )
            except DiskFailedError:
                continue  # the read that follows says so, for this entry alone
            for at, entry in found:
                self._found[number << POSITION_SHIFT | at] = entry
                size += len(entry.data)

    def done(self) -> None:
        # In reverse, so that the first requested batch is evicted last.
        for position, entry in reversed(self._found.items()):
            self._reader.put_new(position, entry)
        self._found = {}


def _weight(stored: Stored | RawEntry) -> int:
    if isinstance(stored, RawEntry):
        return len(stored.data) + OVERHEAD_BYTES
    return len(stored[1].data) + OVERHEAD_BYTES

"""Reads the journal after a stop: which records to replay, which the crash tore, which are damaged.

Every file is read from its start. For an invalid entry the question is whether it had once been acknowledged. If a later
entry of the file says that the log was synced beyond it (`synced_through`), or if a later file has any entry (a file is
synced before the next is written), it was on disk, and this is *damage*. Otherwise the crash interrupted its writing, it
was never acknowledged, and the log ends here: a *torn tail*.

This module reads and judges. `opening` writes the consequences.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from penstock.storage.disk import Disk
from penstock.storage.entry import (
    BATCH,
    CLOSED,
    CUT,
    END,
    HEADER_BYTES,
    IMAGE,
    RECORD,
    Header,
    decode_header,
    decode_part,
    decode_table,
    position_of,
)
from penstock.storage.errors import StorageDamagedError, StorageVersionError, TornTail
from penstock.storage.journal_file import journal_name
from penstock.storage.ledger import Ledger
from penstock.storage.scan import JournalScan, read_whole


class Entry(msgspec.Struct, frozen=True, gc=False):
    """A record to apply again. The payload is a view that is valid until the next entry is requested."""

    partition: int
    index: int
    head: bytes
    payload: memoryview
    position: int
    kind: int = RECORD
    """RECORD; of a partition that was restored from another replica also IMAGE and BATCH."""


class ScannedFile(NamedTuple):
    """A journal file and the offsets of its records that must be replayed."""

    number: int
    used: int
    offsets: array[int]
    synced_through: int
    """Below it everything was on disk when the last entry was written."""


class Cut(NamedTuple):
    """The end of the log: the place to seal before anything new is written elsewhere."""

    number: int
    offset: int
    extent: int
    """Bytes from here to the end of the last remains of unpromised entries; 0 = nothing is there."""
    table: dict[int, int] | None
    """The last index of each partition in the file; None where the file cannot vouch for them."""


class JournalTail:
    """The result of reading the journal from the starting point of a snapshot."""

    def __init__(self, disk: Disk, seed: int, numbers: Sequence[int], ledger: Ledger) -> None:
        self._disk = disk
        self._seed = seed
        self._numbers = numbers
        self._ledger = ledger
        self._has_entries: dict[int, bool] = {}
        self.files: list[ScannedFile] = []
        self.unused: list[int] = []
        """Files that were made ready and never written to."""
        self.cut: Cut | None = None
        """None where there is no journal or its last file names a next one that is missing."""
        self.torn: TornTail | None = None
        self._ends: dict[int, list[tuple[int, int]]] = {}
        """By partition (position, index): entries before the position with a later index no longer count."""
        self._parts: dict[int, tuple[int, int]] = {}
        """By partition: the beginning of the state that is being read, and the number of its parts that were found."""
        self._read()

    def entries(self) -> Iterator[Entry]:
        """The records to replay, in order; their bytes were checked when the tail was read."""
        for number, _, offsets, _ in self.files:
            if not offsets:
                continue
            data = self._load(number).data
            view = memoryview(data)
            for offset in offsets:
                header = decode_header(data, offset, self._seed)
                if header is None:  # it was there when the tail was read
                    raise StorageDamagedError(
                        f"{journal_name(number)} at offset {offset}: the disk returns other bytes than a moment ago; "
                        "check the disk, and start again"
                    )
                if header.partition in self._ends and self._is_over(header, position_of(number, offset)):
                    continue
                start = offset + HEADER_BYTES
                middle = start + header.head_size
                yield Entry(
                    header.partition,
                    header.index,
                    data[start:middle],
                    view[middle : middle + header.payload_size],
                    position_of(number, offset),
                    header.kind,
                )

    def _is_over(self, header: Header, position: int) -> bool:
        return any(position < end and header.index > last for end, last in self._ends[header.partition])

    def _read(self) -> None:
        expected: int | None = None
        for place, number in enumerate(self._numbers):
            if expected is not None and number != expected:
                if number < expected and not self._holds_entries(number):
                    self.unused.append(number)
                    continue
                self._ledger.hole(journal_name(expected), 0, "the journal file is missing")
            expected = self._read_file(place, self._load(number))
            if self.cut is not None:
                self.unused.extend(self._numbers[place + 1 :])
                return
        if expected is not None:
            self._ledger.hole(journal_name(expected), 0, "the journal file is missing")

    def _read_file(self, place: int, scan: JournalScan) -> int | None:
        """Reads one file to its end or to the cut; the number of the file that must follow, where it says so."""
        name, ledger, offsets = journal_name(scan.number), self._ledger, array("I")
        table: dict[int, int] = {}
        following: int | None = None
        vouched = False
        offset = synced_through = 0
        ledger.start_file()
        while True:
            header = scan.header_at(offset)
            whole = header is not None and scan.is_whole(offset, header)
            if not whole and not self._is_proven(place, scan, offset):
                self._cut_here(scan, offset, header, table if ledger.all_found and not vouched else None)
                break
            if header is None:
                ledger.hole(name, offset, "the header of an entry is damaged")
                behind = scan.headers_after(offset)
                if not behind:
                    break
                offset = behind[0][0]
                continue
            position = position_of(scan.number, offset)
            if header.kind in (END, CLOSED):
                if whole and header.payload_size:
                    start = offset + HEADER_BYTES
                    rows = decode_table(scan.data[start : start + header.payload_size])
                    ledger.table(rows, name, offset, position)
            elif not whole:
                table[header.partition] = max(header.index, table.get(header.partition, 0))
                ledger.unreadable_record(
                    header.partition,
                    header.index,
                    name,
                    offset,
                    "the contents of an entry are damaged",
                    position,
                    is_state=header.kind == IMAGE,
                )
            elif header.kind == RECORD:
                table[header.partition] = header.index
                if ledger.record(header.partition, header.index, name, offset, position):
                    offsets.append(offset)
            elif self._read_replica(scan, header, offset, position, table):
                offsets.append(offset)
            vouched = header.kind == CLOSED
            synced_through = max(synced_through, header.synced_through)
            offset += header.size
            if header.kind == END:
                following = header.index
                break
        self.files.append(ScannedFile(scan.number, offset, offsets, synced_through))
        return following

    def _read_replica(
        self, scan: JournalScan, header: Header, offset: int, position: int, table: dict[int, int]
    ) -> bool:
        """An entry that only replicas have; whether it is to be replayed."""
        partition, ledger, name = header.partition, self._ledger, journal_name(scan.number)
        taken = ledger.is_taken(partition, position)
        if header.kind == BATCH:
            return not taken
        if header.kind == CUT:
            table[partition] = header.index
            if not taken and ledger.cut(partition, header.index, name, offset):
                self._ends.setdefault(partition, []).append((position, header.index))
            return False
        if header.kind != IMAGE:
            raise StorageVersionError(
                f"{name} at offset {offset} has an entry of kind {header.kind}, which this version does not know: "
                "upgrade this process, or start on another directory"
            )
        start = offset + HEADER_BYTES
        part, parts = decode_part(scan.data[start : start + header.head_size])
        begin, found = self._parts.get(partition, (position, 0)) if part else (position, 0)
        self._parts[partition] = (begin, found + 1)
        if part + 1 < parts:
            return True  # also one from before the snapshot, because its last part may be after the snapshot
        table[partition] = header.index
        if taken:
            return False
        if found + 1 != parts:
            ledger.incomplete_image(partition, name, offset)
        else:
            ledger.image(partition, header.index)
            self._ends.setdefault(partition, []).append((begin, -1))
        return True

    def _is_proven(self, place: int, scan: JournalScan, offset: int) -> bool:
        """Whether what is at `offset` was on disk before something that is still there was written."""
        return any(header.synced_through > offset for _, header in scan.headers_after(offset)) or any(
            self._holds_entries(number) for number in self._numbers[place + 1 :]
        )

    def _cut_here(
        self, scan: JournalScan, offset: int, header: Header | None, table: dict[int, int] | None
    ) -> None:
        ends = [at + behind.size for at, behind in scan.headers_after(offset)]
        if header is not None:
            ends.append(offset + header.size)
        extent = max(ends) - offset if ends else 0
        self.cut = Cut(scan.number, offset, extent, table)
        begun = scan.data[offset : offset + HEADER_BYTES]
        # Behind the end are zeros, or an entry of a former life; anything else was begun in this one.
        former = decode_header(scan.data, offset, self._seed)
        if extent or (any(begun) and former is None):
            self.torn = TornTail(journal_name(scan.number), offset, max(extent, len(begun)))

    def _holds_entries(self, number: int) -> bool:
        """Whether anything was ever written to the file in its present life."""
        if number not in self._has_entries:
            scan = self._load(number)
            self._has_entries[number] = scan.header_at(0) is not None or bool(scan.headers_after(-1))
        return self._has_entries[number]

    def _load(self, number: int) -> JournalScan:
        file = self._disk.open(journal_name(number))
        try:
            return JournalScan(number, read_whole(file), self._seed)
        finally:
            file.close()

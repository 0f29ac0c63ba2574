"""Reads each partition from the disk of a machine before a node is opened on it, with rules other than recovery's.

Recovery decides for every record whether to replay it. Here the whole journal is read from its first file on, and the last
entry about a partition counts: a record, a cut, the last part of a whole state, or its removal. A snapshot's statement
about the position at which it was captured is not trusted: the records before that position must end at the snapshot's
index. Only the decoding of entries is shared with the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from crc32c import crc32c

from penstock.model.records import CATALOGUE, QueueRemoved, decode_record
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.stored_batches import readable
from penstock.storage import journal_file, snapshot
from penstock.storage.entry import (
    BATCH,
    CUT,
    END,
    HEADER_BYTES,
    IMAGE,
    RECORD,
    Header,
    decode_part,
    position_of,
)
from penstock.storage.scan import JournalScan

_HEADER_SIZE = 24
"""Of a snapshot: magic 8, format, size and checksum of the table, checksum of the header."""


class LogEnd(NamedTuple):
    """Where the records of one partition end."""

    last: int
    says: str
    """The entry that says so."""


class LedgerReading:
    """The contents of the disk about every partition."""

    def __init__(self, disk: SimulatedDisk, seed: int) -> None:
        self.standings: dict[int, LogEnd] = {}
        self.places: dict[int, dict[int, int]] = {}
        """By partition: index → position of the record that counts, of those in the journal."""
        self.broken: dict[int, str] = {}
        """Partitions whose records are not consecutive after their snapshot: they must be fenced."""
        self.disagreeing: dict[int, str] = {}
        """Partitions whose snapshot is not at the end of the records before it. Only damage may cause that."""
        self.former: set[int] = set()
        """Partitions of which the disk has something from before they were given up."""
        self._disk = disk
        self._seed = seed
        self._early: dict[int, int] = {}
        """By partition: the end of the records before its snapshot, as far as the journal still has them."""
        self._parts: dict[int, int] = {}
        """By partition: how many parts of a state were found one after the other."""
        table = _newest_table(disk)
        if table is None:
            return  # a new directory
        self._taken = {section.partition: section.position for section in table.sections}
        for section in table.sections:
            self.standings[section.partition] = LogEnd(section.index, "the snapshot")
        snapshots = dict(self.standings)
        for position, header, head in self._entries(table.replay_from):
            self._take(position, header, head)
        for partition, index in self._early.items():
            if partition in snapshots and index != snapshots[partition].last:
                self.disagreeing[partition] = (
                    f"the snapshot stands at record {snapshots[partition].last}, the journal before it at {index}"
                )

    # -- the journal -----------------------------------------------------------------------------------------

    def _entries(self, first: int) -> Iterator[tuple[int, Header, bytes]]:
        """(position, header, head) of every entry, up to where the log ends."""
        scans = [
            JournalScan(number, readable(self._disk, journal_file.journal_name(number)), self._seed)
            for number in journal_file.list_journal(self._disk)[0]
            if number >= first
        ]
        for place, scan in enumerate(scans):
            offset = 0
            while True:
                header = scan.header_at(offset)
                if header is None or not scan.is_whole(offset, header):
                    behind = scan.headers_after(offset)
                    if not any(row.synced_through > offset for _, row in behind) and not any(
                        later.headers_after(-1) for later in scans[place + 1 :]
                    ):
                        return
                    if header is None:
                        if not behind:
                            break
                        offset = behind[0][0]
                        continue
                if header.kind == END:
                    break
                start = offset + HEADER_BYTES
                yield (
                    position_of(scan.number, offset),
                    header,
                    scan.data[start : start + header.head_size],
                )
                offset += header.size

    def _take(self, position: int, header: Header, head: bytes) -> None:
        partition, index = header.partition, header.index
        is_early = position < self._taken.get(partition, 0)
        if header.kind == RECORD:
            self._record(partition, index, position, is_early=is_early)
            if partition == CATALOGUE:
                self._catalogue(head)
        elif header.kind == CUT:
            self._stand(partition, LogEnd(index, "a cut"), is_early=is_early)
            places = self.places.get(partition, {})
            self.places[partition] = {known: at for known, at in places.items() if known <= index}
        elif header.kind == IMAGE:
            part, parts = decode_part(head)
            found = self._parts.get(partition, 0) if part else 0
            self._parts[partition] = found + 1
            if part + 1 == parts:
                if found + 1 == parts:
                    self._stand(partition, LogEnd(index, "a whole state"), is_early=is_early)
                    self.places.pop(partition, None)
                    self.broken.pop(partition, None)
                elif not is_early:
                    self.broken[partition] = f"a state in {parts} parts has {found + 1}"
        elif header.kind != BATCH:
            self._parts.pop(partition, None)

    def _stand(self, partition: int, standing: LogEnd, *, is_early: bool) -> None:
        if is_early:
            self._early[partition] = standing.last
        else:
            self.standings[partition] = standing

    def _record(self, partition: int, index: int, position: int, *, is_early: bool) -> None:
        if is_early:
            self._early[partition] = index
        else:
            last = self.standings.get(partition, LogEnd(0, "nothing"))
            if index != last.last + 1:
                self.broken.setdefault(
                    partition, f"record {index} stands behind record {last.last} ({last.says})"
                )
            self.standings[partition] = LogEnd(index, "the journal")
        self.places.setdefault(partition, {})[index] = position

    def _catalogue(self, head: bytes) -> None:
        """A partition that a node gives up is gone, with everything that was written about it before."""
        try:
            record = decode_record(head)
        except msgspec.MsgspecError:
            return  # it is damaged, and the node refuses to start
        if isinstance(record, QueueRemoved):
            known_before = self.standings.get(record.partition_id)
            if record.partition_id in self.places or (known_before is not None and known_before.last):
                self.former.add(record.partition_id)
            for known in (self.standings, self.places, self.broken, self._early, self._parts):
                known.pop(record.partition_id, None)
            self._taken.pop(record.partition_id, None)


def _newest_table(disk: SimulatedDisk) -> snapshot.Table | None:
    """The contents of the newest snapshot with an undamaged table."""
    for number in reversed(snapshot.list_snapshots(disk)):
        data = readable(disk, snapshot.snapshot_name(number))
        for front in (True, False):
            header = data[:_HEADER_SIZE] if front else data[-_HEADER_SIZE:]
            size = int.from_bytes(header[12:16], "little")
            table = data[_HEADER_SIZE:][:size] if front else data[:-_HEADER_SIZE][-size:]
            if crc32c(header[:20]) == int.from_bytes(header[20:24], "little") and crc32c(
                table
            ) == int.from_bytes(header[16:20], "little"):
                return msgspec.msgpack.decode(table, type=snapshot.Table)
    return None

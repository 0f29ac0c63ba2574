"""The snapshot: the state of every partition at some index, in one file, and the position where the journal continues.

    header   magic 8 | format u32 | table size u32 | table crc u32 | header crc u32
    table    msgpack: replay_from, next_number, and for each section its partition, index, size and checksum
    sections the states, one after the other
    trailer  the table and the header again

The file is written under another name, synced, and renamed, so under its own name it is always complete. If both tables
are bad, it is damaged; one damaged section costs only its partition.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from itertools import chain

import msgspec
from crc32c import crc32c

from penstock.model.batch import Buffer
from penstock.storage.disk import Disk, DiskFailedError, DiskFullError, File
from penstock.storage.errors import Damage, StorageDamagedError
from penstock.storage.identity import FORMAT, check_format
from penstock.storage.job import Job
from penstock.storage.journal_file import FileNumbers

FOLDER = "snapshots"
MAGIC = b"PENSNAP\x00"
WRITE_BYTES = 2**20

_UNFINISHED = "new"
_NAME = re.compile(r"(\d{10})\.snapshot")
_HEADER = struct.Struct("<8sIIII")
_HEADER_CRC_OFFSET = _HEADER.size - 4


class Section(msgspec.Struct, frozen=True, array_like=True):
    """A row of the table: one partition's state."""

    partition: int
    index: int
    size: int
    crc: int
    damage: Damage | None = None
    held: list[int] = []
    """Journal files that are kept because the partition is damaged and they hold what is left of it."""
    position: int = 0
    """The end of the journal when the state was captured: entries before it are in the state."""


class Table(msgspec.Struct, frozen=True, array_like=True):
    """The contents of a snapshot."""

    replay_from: int
    """The journal file to replay from; older ones are not needed."""
    next_number: int
    """Greater than every file number in use when it was written."""
    sections: list[Section]
    gone: list[int] = []
    """Partitions that were removed while it was made; the journal may still have records of them."""


class Snapshot:
    """A snapshot that was read."""

    def __init__(self, number: int, size: int, table: Table) -> None:
        self.number = number
        self.size = size
        self.table = table
        self.states: dict[int, bytes] = {}
        self.unreadable: list[Damage] = []
        """Partitions whose state here differs from what was written."""

    @property
    def damages(self) -> list[Damage]:
        """The damage in it, and the damage that was found earlier."""
        return self.unreadable + [
            section.damage for section in self.table.sections if section.damage is not None
        ]


def snapshot_name(number: int) -> str:
    """The path of the snapshot with that number."""
    return f"{FOLDER}/{number:010}.snapshot"


def list_snapshots(disk: Disk) -> list[int]:
    """The numbers of all snapshots, oldest first."""
    return [int(match[1]) for name in disk.list(FOLDER) if (match := _NAME.fullmatch(name))]


def load_newest(disk: Disk) -> Snapshot | None:
    """The newest readable snapshot; None if there is no snapshot.

    An older one is only there if a crash came before its removal, and then its journal files are also there.
    """
    numbers = list_snapshots(disk)
    reasons = []
    for number in reversed(numbers):
        file = disk.open(snapshot_name(number))
        try:
            return _load(number, file)
        except (StorageDamagedError, DiskFailedError) as error:
            reasons.append(str(error))
        finally:
            file.close()
    if numbers:
        raise StorageDamagedError(
            f"no snapshot can be read ({'; '.join(reasons)}); restore {FOLDER}/ from a copy, the journal alone "
            "does not hold everything"
        )
    return None


def _load(number: int, file: File) -> Snapshot:
    name, size = snapshot_name(number), file.size()
    table, offset = _read_table(name, file, size)
    snapshot = Snapshot(number, size, table)
    for section in table.sections:
        try:
            state = file.read_at(offset, section.size)
        except DiskFailedError:
            state = b""
        if len(state) != section.size or crc32c(state) != section.crc:
            reason = "the state in the snapshot is damaged"
            snapshot.unreadable.append(Damage(section.partition, name, offset, reason))
        snapshot.states[section.partition] = state
        offset += section.size
    return snapshot


def load_section(disk: Disk, number: int, partition: int) -> tuple[int, bytes] | None:
    """The index and the state of one partition in a snapshot; None where it is not there as it was written."""
    file = disk.open(snapshot_name(number))
    try:
        table, offset = _read_table(snapshot_name(number), file, file.size())
        for section in table.sections:
            if section.partition == partition:
                state = file.read_at(offset, section.size)
                is_good = len(state) == section.size and crc32c(state) == section.crc and not section.damage
                return (section.index, state) if is_good else None
            offset += section.size
        return None
    finally:
        file.close()


def _read_table(name: str, file: File, size: int) -> tuple[Table, int]:
    """The table from the front, or from the back where the front is damaged; and where the sections start."""
    front = _decode_header(name, file.read_at(0, _HEADER.size))
    if front is not None:
        table = _decode_table(file.read_at(_HEADER.size, front[0]), front[1])
        if table is not None:
            return table, _HEADER.size + front[0]
    back = _decode_header(name, file.read_at(max(0, size - _HEADER.size), _HEADER.size))
    if back is not None:
        table = _decode_table(file.read_at(max(0, size - _HEADER.size - back[0]), back[0]), back[1])
        if table is not None:
            return table, _HEADER.size + back[0]
    raise StorageDamagedError(f"{name} is damaged in both of its tables")


def _decode_header(name: str, data: bytes) -> tuple[int, int] | None:
    """Size and checksum of the table; an unknown format has its own error."""
    if len(data) < _HEADER.size or not data.startswith(MAGIC):
        return None
    _, written, table_size, table_crc, header_crc = _HEADER.unpack(data)
    if crc32c(data[:_HEADER_CRC_OFFSET]) != header_crc:
        return None
    check_format(name, written)
    return table_size, table_crc


def _decode_table(data: bytes, crc: int) -> Table | None:
    if crc32c(data) != crc:
        return None
    try:
        return msgspec.msgpack.decode(data, type=Table)
    except msgspec.DecodeError:
        return None


class PartitionState(msgspec.Struct, frozen=True):
    """One state of a snapshot: a partition as it was after its record `index`."""

    partition: int
    index: int
    state: Sequence[Buffer]
    damage: Damage | None = None
    held: Sequence[int] = ()
    position: int = 0

    def section(self) -> Section:
        """Its row in the table."""
        size = crc = 0
        for buffer in self.state:
            size += len(buffer)
            crc = crc32c(buffer, crc)
        return Section(self.partition, self.index, size, crc, self.damage, list(self.held), self.position)


class SnapshotJob(Job):
    """Writes a snapshot; only when it is on disk are older ones removed."""

    def __init__(
        self,
        disk: Disk,
        number: int,
        replay_from: int,
        numbers: FileNumbers,
        states: Sequence[PartitionState],
        gone: Sequence[int] = (),
        sync_first: Sequence[File] = (),
        damaged: Sequence[tuple[Damage, Sequence[int]]] = (),
    ) -> None:
        self._disk = disk
        self.number = number
        self._replay_from = replay_from
        self._numbers = numbers
        self._states = states
        self._gone = gone
        self._sync_first = sync_first
        self._damaged = damaged
        self.size = 0
        self.is_written = False

    def _work(self) -> None:
        # A state may refer to entries of these files: they have to be on disk before it is.
        for file in self._sync_first:
            file.sync()
        if self._damaged:
            self._states = [*self._states, *self._carried_over()]
        temporary = f"{FOLDER}/{_UNFINISHED}"
        file = self._disk.open(temporary, create=True)
        try:
            file.truncate(0)
            self._write(file)
            file.sync()
        except DiskFullError:
            self._disk.remove(temporary)
            raise
        finally:
            file.close()
        self._disk.rename(temporary, snapshot_name(self.number))
        self._disk.sync_directory(FOLDER)
        self.is_written = True
        older = [number for number in list_snapshots(self._disk) if number < self.number]
        for number in older:
            self._disk.remove(snapshot_name(number))
        if older:
            self._disk.sync_directory(FOLDER)
        self._states = ()

    def _carried_over(self) -> list[PartitionState]:
        """The contents of the previous snapshot for the damaged partitions, byte for byte."""
        before = load_newest(self._disk)
        sections = {section.partition: section for section in before.table.sections} if before else {}
        carried = []
        for damage, held in self._damaged:
            section = sections.get(damage.partition)
            index = section.index if section is not None else 0
            state = before.states.get(damage.partition, b"") if before else b""
            position = section.position if section is not None else 0
            carried.append(PartitionState(damage.partition, index, (state,), damage, held, position))
        return carried

    def _write(self, file: File) -> None:
        sections = [state.section() for state in self._states]
        # All numbers that a state refers to were taken earlier, so this one is greater.
        table = msgspec.msgpack.encode(
            Table(self._replay_from, self._numbers.take(), sections, list(self._gone))
        )
        header = _HEADER.pack(MAGIC, FORMAT, len(table), crc32c(table), 0)[:_HEADER_CRC_OFFSET]
        header += crc32c(header).to_bytes(4, "little")
        pending: list[Buffer] = []
        size = 0
        states = chain.from_iterable(state.state for state in self._states)
        for buffer in chain((header, table), states, (table, header)):
            pending.append(buffer)
            size += len(buffer)
            if size >= WRITE_BYTES:
                file.write_at(self.size, pending)
                self.size += size
                pending, size = [], 0
        file.write_at(self.size, pending)
        self.size += size

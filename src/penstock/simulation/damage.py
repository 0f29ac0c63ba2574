"""Chooses a bit to flip: one whose damage must be noticed, and whose owner is known, so that it can be checked.

Bytes at the very end of the journal are left alone: a bad entry with nothing synced after it looks the same after a crash
and after a bad sector, and no log can distinguish them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from random import Random
from typing import NamedTuple

from penstock.backend.node.node import Node
from penstock.model.records import CATALOGUE
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.inode import SECTOR_BYTES
from penstock.storage import copy, snapshot
from penstock.storage.entry import (
    HEADER_BYTES,
    OFFSET_MASK,
    POSITION_SHIFT,
    RECORD,
    Header,
    decode_header,
    position_of,
)
from penstock.storage.errors import StorageDamagedError
from penstock.storage.journal_file import journal_name, list_journal
from penstock.storage.scan import JournalScan


class Victim(NamedTuple):
    """A byte to damage."""

    file: str
    offset: int
    owner: int | None
    """The partition of the byte; None: it may belong to several, because the owner cannot be read."""


def pick_byte(
    disk: SimulatedDisk, seed: int, committed_position: int, living: Collection[int], random: Random
) -> Victim | None:
    """A byte of a queue's stored data, while the node runs; mostly of a message that is still waited for."""
    candidates: list[Victim] = []
    waited_for: list[Victim] = []
    for scan, offset, header in _proven(disk, seed, committed_position):
        if header.kind == RECORD and header.partition != CATALOGUE:
            victim = Victim(journal_name(scan.number), _inside(offset, header, random), header.partition)
            alive = scan.number << POSITION_SHIFT | offset in living
            (waited_for if alive else candidates).append(victim)
    waited_for += _of_segments(disk, random)
    candidates += _of_snapshots(disk, random)
    if waited_for and (not candidates or random.random() < 0.7):
        return random.choice(waited_for)
    return random.choice(candidates) if candidates else None


def pick_vital_byte(disk: SimulatedDisk, seed: int, random: Random) -> Victim | None:
    """A byte of the catalogue, or of a header in the journal, while the node is down: it may refuse to start."""
    candidates = []
    for scan, offset, header in _proven(disk, seed, OFFSET_MASK << POSITION_SHIFT):
        if header.partition == CATALOGUE and header.kind == RECORD:
            candidates.append(Victim(journal_name(scan.number), _inside(offset, header, random), None))
        else:
            at = offset + random.randrange(HEADER_BYTES)
            candidates.append(Victim(journal_name(scan.number), at, None))
    return random.choice(candidates) if candidates else None


def _inside(offset: int, header: Header, random: Random) -> int:
    return offset + HEADER_BYTES + random.randrange(max(1, header.head_size + header.payload_size))


def _proven(
    disk: SimulatedDisk, seed: int, committed_position: int
) -> Iterator[tuple[JournalScan, int, Header]]:
    """Entries of the journal behind which something synced says that they were synced too."""
    for number in list_journal(disk)[0]:
        scan = JournalScan(number, disk.contents(journal_name(number)), seed)
        entries = []
        offset = 0
        while (header := scan.header_at(offset)) is not None:
            if number << POSITION_SHIFT | offset >= committed_position:
                break
            entries.append((offset, header))
            offset += header.size
        proven = max((header.synced_through for _, header in entries), default=0)
        for offset, header in entries:
            if offset + header.size <= proven:
                yield scan, offset, header


def _of_segments(disk: SimulatedDisk, random: Random) -> list[Victim]:
    return [
        Victim(name, random.randrange(size), int(name.split("/")[1]))
        for name, size in disk.files().items()
        if name.startswith(f"{copy.FOLDER}/") and size
    ]


def _of_snapshots(disk: SimulatedDisk, random: Random) -> list[Victim]:
    """A byte of each queue's state in the newest snapshot."""
    numbers = snapshot.list_snapshots(disk)
    if not numbers:
        return []
    name = snapshot.snapshot_name(numbers[-1])
    try:
        newest = snapshot.load_newest(disk.without_faults())
    except StorageDamagedError:  # earlier damage: its parts cannot be distinguished
        return []
    if newest is None or newest.number != numbers[-1]:
        return []
    size = sum(section.size for section in newest.table.sections)
    offset = (newest.size - size) // 2
    victims = []
    for section in newest.table.sections:
        if section.partition != CATALOGUE and section.size:
            victims.append(Victim(name, offset + random.randrange(section.size), section.partition))
        offset += section.size
    return victims


# -- sectors -------------------------------------------------------------------------------------------------


class Stretch(NamedTuple):
    """Whole sectors of a file that contain an entry and were on disk before something after them was written."""

    file: str
    first: int
    """The number of the first sector."""
    sectors: int
    offset: int
    """Of the entry inside of the first sector."""
    owners: frozenset[int]
    """All partitions with data there."""
    position: int
    """Of the entry, as the node knows it."""
    partition: int
    """The entry's partition."""

    @property
    def end(self) -> int:
        """Behind the last sector."""
        return self.first + self.sectors


def stretches(disk: SimulatedDisk, seed: int, committed_position: int) -> list[Stretch]:
    """One for each entry of a queue, in the journal and in segments; none that holds something the node cannot do without."""
    found: list[Stretch] = []
    journal: dict[str, list[tuple[int, Header]]] = {}
    for scan, offset, header in _proven(disk, seed, committed_position):
        journal.setdefault(journal_name(scan.number), []).append((offset, header))
    for name, entries in {**journal, **_segment_entries(disk, seed)}.items():
        end = entries[-1][0] + entries[-1][1].size
        by_sector: dict[int, set[int]] = {}
        for offset, header in entries:
            owner = header.partition if header.kind == RECORD else CATALOGUE
            for sector in range(offset // SECTOR_BYTES, -(-(offset + header.size) // SECTOR_BYTES)):
                by_sector.setdefault(sector, set()).add(owner)
        for offset, header in entries:
            first, last = offset // SECTOR_BYTES, (offset + header.size - 1) // SECTOR_BYTES
            owners = frozenset().union(*(by_sector[sector] for sector in range(first, last + 1)))
            if CATALOGUE not in owners and (last + 1) * SECTOR_BYTES <= end:
                position = position_of(file_number(name), offset)
                found.append(
                    Stretch(
                        name,
                        first,
                        last + 1 - first,
                        offset % SECTOR_BYTES,
                        owners,
                        position,
                        header.partition,
                    )
                )
    return found


def _segment_entries(disk: SimulatedDisk, seed: int) -> dict[str, list[tuple[int, Header]]]:
    found: dict[str, list[tuple[int, Header]]] = {}
    for name in disk.files():
        if name.startswith(f"{copy.FOLDER}/"):
            data, offset = disk.contents(name), 0
            while (header := decode_header(data, offset, seed)) is not None:
                found.setdefault(name, []).append((offset, header))
                offset += header.size
    return found


def file_number(name: str) -> int:
    """The number of a journal file or a segment."""
    return int(name.rpartition("/")[2].partition(".")[0])


def living_positions(node: Node) -> set[int]:
    """The positions of messages that will still be delivered."""
    return {
        position
        for partition in node._parts.catalogue.partitions.values()
        for position, _, _ in partition.table.living_places(set(partition.table.files))
    }


def misplaced(places: Sequence[Stretch]) -> list[tuple[Stretch, Stretch]]:
    """(the written entry, the entry where it landed): two entries that begin at the same offset in their first sectors.

    Random ones hardly ever do, and only then the landed one looks like an entry. Of the same queue, if there are such.
    """
    by_offset: dict[int, list[Stretch]] = {}
    for place in places:
        by_offset.setdefault(place.offset, []).append(place)
    pairs = [
        (one, other)
        for some in by_offset.values()
        for one in some
        for other in some
        if (one.file, one.first) != (other.file, other.first)
        and one.sectors <= other.sectors
        and not (one.file == other.file and one.first < other.end and other.first < one.end)
    ]
    return [pair for pair in pairs if pair[0].owners & pair[1].owners] or pairs

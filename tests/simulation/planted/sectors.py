"""Bugs that only damaged sectors bring to light: written elsewhere, never written, or unreadable; and the fault that each needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from penstock.simulation.patching import Patch
from penstock.simulation.scenario import Scenario
from penstock.simulation.targeted_sectors import SectorHunt, draw_sector_hunt
from penstock.storage import recovery
from penstock.storage.disk import DiskFailedError, File
from penstock.storage.entry import decode_header
from penstock.storage.reader import Stored
from penstock.storage.recovery import JournalTail
from penstock.storage.scan import JournalScan, readable_pieces
from penstock.storage.store import Store


def hunts_sectors(hunt: SectorHunt) -> Callable[[Scenario], bool]:
    """Where sectors are damaged in this way on purpose, and bits are not."""
    return lambda scenario: (
        scenario.faults.misplaced_ms > 0
        and not scenario.faults.bit_flips_ms
        and draw_sector_hunt(scenario.duration_ms) == hunt
    )


def another_batch_will_do() -> Sequence[Patch]:
    """Consumers get the batch that lies where theirs should be, whichever it is."""

    def hand_out(self: Store, partition: int, position: int, end: int, *, block: bool) -> Stored:
        sent, batch = real(self, partition, position, end, block=block)
        if not sent.first < end <= sent.first + sent.count:
            sent = msgspec.structs.replace(sent, first=end - sent.count)
        return sent, batch

    real = Store.hand_out
    return [(Store, "hand_out", hand_out)]


def former_lives_end_the_journal() -> Sequence[Patch]:
    """A journal file that begins with an entry of its former life is taken for one that was never written to in this one."""

    def begins_formerly(scan: JournalScan) -> bool:
        header = decode_header(scan.data, 0, scan._seed)
        return header is not None and header.file_number != scan.number

    def is_proven(self: JournalTail, place: int, scan: JournalScan, offset: int) -> bool:
        return not (offset == 0 and begins_formerly(scan)) and real_proof(self, place, scan, offset)

    def holds_entries(self: JournalTail, number: int) -> bool:
        return not begins_formerly(self._load(number)) and real_look(self, number)

    real_proof, real_look = JournalTail._is_proven, JournalTail._holds_entries
    return [(JournalTail, "_is_proven", is_proven), (JournalTail, "_holds_entries", holds_entries)]


def unreadable_sectors_end_a_file() -> Sequence[Patch]:
    """A journal file is taken to end where its first sector is that cannot be read."""

    def read_whole(file: File) -> bytes:
        size = file.size()
        try:
            return file.read_at(0, size)
        except DiskFailedError:
            data = b""
            for offset, piece in readable_pieces(file, 0, size):
                if offset != len(data):
                    break
                data += piece
            return data

    return [(recovery, "read_whole", read_whole)]

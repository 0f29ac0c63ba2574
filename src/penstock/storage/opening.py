"""Opens a data directory: locks it, reads it, and prepares it for new entries.

A crash may interrupt every step, and the step can be repeated. A new directory is valid only once node.json is there.
Files are put aside under names that change nothing. The end of the old log is sealed last: sealing zeroes all bytes that a
crash left after the end and writes END there, so that no later start reads those bytes. New entries always begin in
another file.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model.limits import MEBIBYTE
from penstock.storage import copy, journal_file, snapshot
from penstock.storage.disk import Disk
from penstock.storage.entry import END, PADDING, checksum, encode_header, encode_table
from penstock.storage.errors import Damage, StorageDamagedError
from penstock.storage.identity import Identity, load_identity, save_identity
from penstock.storage.journal import TABLE_ROW_BYTES, TABLE_SHARE
from penstock.storage.journal_file import FileNumbers, JournalFile, journal_name, prepare, spare_name
from penstock.storage.ledger import Ledger
from penstock.storage.open_files import OpenFiles
from penstock.storage.options import StorageOptions
from penstock.storage.recovery import Cut, JournalTail
from penstock.storage.scan import readable_pieces
from penstock.storage.segments import Segments
from penstock.storage.snapshot import Snapshot, SnapshotJob, load_newest

FIRST_NUMBER = 1


@dataclass
class OpenedDirectory:
    """The parts from which a store is built."""

    identity: Identity
    snapshot: Snapshot
    tail: JournalTail
    ledger: Ledger
    damages: list[Damage]
    files: OpenFiles
    segments: Segments
    numbers: FileNumbers
    current: JournalFile
    live: list[JournalFile]
    spares: list[str] = field(default_factory=list)


def open_directory(disk: Disk, options: StorageOptions, identity: Identity) -> OpenedDirectory:
    """Does everything up to the first append; raises an error that explains what prevents it."""
    options.check()
    disk.lock()
    known = load_identity(disk)
    for folder in (journal_file.FOLDER, copy.FOLDER, snapshot.FOLDER):
        disk.make_folder(folder)
    # After a mere kill a name may be in the machine's memory only, and from now on it is relied on; and one that
    # was removed may come back with the next power cut, when its number is in use again.
    partitions = [f"{copy.FOLDER}/{name}" for name in disk.list(copy.FOLDER) if name.isdecimal()]
    for folder in ("", snapshot.FOLDER, journal_file.FOLDER, copy.FOLDER, *partitions):
        disk.sync_directory(folder)
    if known is None:
        known = _create(disk, identity)
    newest = load_newest(disk)
    if newest is None:
        raise StorageDamagedError(f"{snapshot.FOLDER}/ is empty: restore it from a copy")
    table = newest.table

    files = OpenFiles(disk, options.open_files_max)
    segments = Segments(disk, options, known.seed, files)
    on_disk, spares, unfinished = journal_file.list_journal(disk)
    held = {number for section in table.sections for number in section.held}
    numbers = FileNumbers(max(table.next_number, segments.highest_number + 1, *(n + 1 for n in on_disk), 1))

    indexes = {section.partition: section.index for section in table.sections}
    taken = {section.partition: section.position for section in table.sections}
    ledger = Ledger(indexes, newest.damages, table.gone, taken)
    tail_numbers = [number for number in on_disk if number >= table.replay_from]
    if table.replay_from < table.next_number and table.replay_from not in tail_numbers:
        ledger.hole(journal_name(table.replay_from), 0, "the journal file is missing")
    tail = JournalTail(disk, known.seed, tail_numbers, ledger)
    damages = ledger.finish()

    for name in unfinished:
        disk.remove(name)
    vacated = [number for number in on_disk if number < table.replay_from and number not in held]
    spares += _put_aside(disk, vacated + tail.unused)
    spares = _fitting(disk, spares, options)

    live = [JournalFile(file.number, disk.open(journal_name(file.number)), file.used) for file in tail.files]
    for file, scanned in zip(live, tail.files, strict=True):
        # After a mere kill the bytes may be in the machine's memory only, and from now on they count.
        if options.durability == "sync":
            _write_again(file, scanned.synced_through)
        file.file.sync()
    live += [
        JournalFile(number, disk.open(journal_name(number)))
        for number in on_disk
        if number in held - {f.number for f in live}
    ]

    cut = tail.cut
    if cut is not None and not cut.offset and not cut.extent:
        current = next(file for file in live if file.number == cut.number)
        live.remove(current)
    else:
        spare = spares.pop() if spares else None
        current = prepare(disk, numbers.take(), spare, options.journal_file_bytes, 0)
        if cut is not None:
            _seal(next(file for file in live if file.number == cut.number), cut, current.number, known.seed)
    for file in live:
        files.add(file.number, file.name, file.capacity)
    files.add(current.number, current.name, 0)
    return OpenedDirectory(
        known, newest, tail, ledger, damages, files, segments, numbers, current, live, spares
    )


def _create(disk: Disk, identity: Identity) -> Identity:
    """Makes a new directory; without node.json, and with nothing in the journal, it is one."""
    if disk.list(journal_file.FOLDER):
        raise StorageDamagedError("node.json is missing although there is a journal: restore it from a copy")
    for number in snapshot.list_snapshots(disk):
        disk.remove(snapshot.snapshot_name(number))
    first = SnapshotJob(disk, 1, FIRST_NUMBER, FileNumbers(FIRST_NUMBER), ())
    first.run()
    if first.error is not None:
        raise first.error
    save_identity(disk, identity)
    return identity


def _put_aside(disk: Disk, numbers: list[int]) -> list[str]:
    for number in numbers:
        disk.rename(journal_name(number), spare_name(number))
    if numbers:
        disk.sync_directory(journal_file.FOLDER)
    return [spare_name(number) for number in numbers]


def _fitting(disk: Disk, spares: list[str], options: StorageOptions) -> list[str]:
    """Removes spares of another size and those that are too many."""
    fitting: list[str] = []
    for name in spares:
        file = disk.open(name)
        size = file.size()
        file.close()
        if (
            size == options.journal_file_bytes
            and len(fitting) < options.spare_files_max + options.journal_files_ahead
        ):
            fitting.append(name)
        else:
            disk.remove(name)
    return fitting


def _write_again(file: JournalFile, start: int) -> None:
    """Writes the last flush of a file again. If its sync had failed, its bytes can be read but are not on disk, and the
    kernel would never write them again by itself. Unreadable sectors stay as they are: recovery has reported the damage.
    """
    for offset, data in readable_pieces(file.file, start, file.used):
        file.file.write_at(offset, [data])


def _seal(file: JournalFile, cut: Cut, following: int, seed: int) -> None:
    """Ends a file permanently where its log ends."""
    for start in range(cut.offset, cut.offset + cut.extent, MEBIBYTE):
        file.file.write_at(start, [bytes(min(MEBIBYTE, cut.offset + cut.extent - start))])
    if cut.extent:
        file.file.sync()
    table = b""
    if cut.table is not None and len(cut.table) * TABLE_ROW_BYTES <= file.capacity // TABLE_SHARE:
        table = encode_table(sorted(cut.table.items()))
    crc = checksum(b"", (table,))
    header = encode_header(seed, file.number, cut.offset, END, 0, following, 0, len(table), crc)
    file.file.write_at(cut.offset, [header, table, PADDING[-len(table) % 8]])
    file.file.sync()

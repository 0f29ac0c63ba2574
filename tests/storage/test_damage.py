"""Damage is told from a torn tail, its owner is found, the rest is served, and nothing of it is overwritten."""

from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from penstock.simulation.disk import PowerLoss, SimulatedDisk, SimulatedFile
from penstock.storage.disk import DiskFailedError
from penstock.storage.entry import END, OFFSET_MASK, decode_header
from penstock.storage.errors import Damage
from penstock.storage.journal_file import journal_name
from penstock.storage.scan import JournalScan
from tests.storage.damaging import HEADER, PAYLOAD, damages, fill, flip
from tests.storage.keeper import IDENTITY, Keeper


def test_damaged_contents_fence_their_partition_and_no_other() -> None:
    disk, keeper = fill()
    name, offset = flip(disk, keeper, 1, 2, PAYLOAD)
    keeper = Keeper(disk.crash())
    assert damages(keeper) == {1: Damage(1, name, offset, "the contents of an entry are damaged")}
    assert keeper.store.damages == keeper.store.recovery.damages
    assert keeper.partitions[1].index == 1  # what came before it is right, what came after would not be
    assert len(keeper.bodies(0)) == len(keeper.bodies(2)) == 4
    assert keeper.store.recovery.torn is None


def test_a_damaged_header_fences_whoever_misses_a_record() -> None:
    disk, keeper = fill()
    name, offset = flip(disk, keeper, 1, 2, HEADER)
    keeper = Keeper(disk.crash())
    found = damages(keeper)
    assert list(found) == [1]
    assert (found[1].file, found[1].offset) == (name, offset)
    assert "record 2 of the partition cannot be read" in found[1].reason
    assert len(keeper.bodies(0)) == len(keeper.bodies(2)) == 4


def test_who_cannot_be_shown_innocent_is_fenced_too() -> None:
    """Partition 9 has no record after the hole: its last one may have been in it."""
    disk, keeper = fill()
    keeper.put(9, b"early")
    keeper.flush()
    for partition in range(3):
        keeper.put(partition, b"later")
    keeper.flush()
    for partition in range(3):
        keeper.put(partition, b"latest")
    keeper.flush()
    flip(disk, keeper, 1, 5, HEADER)
    keeper = Keeper(disk.crash())
    found = damages(keeper)
    assert list(found) == [1, 9]
    assert "cannot be shown" in found[9].reason
    assert keeper.bodies(9) == {1: b"early"}


@pytest.mark.parametrize("ending", ["clean stop", "next file"])
def test_a_finished_file_knows_who_was_in_it(ending: str) -> None:
    """The same, but the file's table shows that partition 9 lost nothing."""
    disk, keeper = fill()
    keeper.put(9, b"early")
    keeper.put(1, b"in the hole")
    keeper.put(2, b"after it")
    keeper.flush()
    flip(disk, keeper, 1, 5, HEADER)
    if ending == "clean stop":
        keeper.store.close()
    else:
        while keeper.store.appended_position >> 32 == keeper.partitions[9].positions[1] >> 32:
            keeper.put(2, b"filling up " * 40)
        keeper.flush()
    found = damages(Keeper(disk.crash()))
    assert list(found) == [1]
    assert "record 5 of the partition cannot be read" in found[1].reason


def test_the_first_life_of_a_hole_and_all_later_ones_agree() -> None:
    disk, keeper = fill()
    keeper.put(9, b"early")
    for _ in range(2):
        for partition in range(3):
            keeper.put(partition, b"later")
        keeper.flush()
    flip(disk, keeper, 1, 5, HEADER)
    disk = disk.crash()
    keeper = Keeper(disk)
    first = damages(keeper)
    assert list(first) == [1, 9]
    for _ in range(3):
        keeper.put(0, b"life goes on")
        keeper.put(5, b"for new ones too")
        keeper.flush()
        keeper.store.close()
        disk = disk.reopen()
        keeper = Keeper(disk)
        assert damages(keeper) == first


def test_the_last_flush_is_taken_for_torn_where_nothing_proves_it_was_synced() -> None:
    disk, keeper = fill()
    name, offset = flip(disk, keeper, 2, 4, PAYLOAD)
    keeper = Keeper(disk.crash())
    assert not damages(keeper)
    torn = keeper.store.recovery.torn
    assert torn is not None
    assert (torn.file, torn.offset) == (name, offset)
    assert [len(keeper.bodies(partition)) for partition in range(3)] == [4, 4, 3]


def test_a_clean_stop_proves_the_last_flush() -> None:
    disk, keeper = fill()
    keeper.store.close()
    flip(disk, keeper, 2, 4, PAYLOAD)
    assert list(damages(Keeper(disk.crash()))) == [2]


def test_a_later_file_proves_a_flush_that_nothing_else_proves() -> None:
    """One flush fills a file and goes on in the next; nothing in the first says that it was ever synced."""
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk)
    keeper.work()
    for number in range(40):
        keeper.put(number % 3, b"%04d" % number * 150)
    keeper.flush()
    files = {position >> 32 for position in keeper.partitions[1].positions.values()}
    assert len(files) == 2
    flip(disk, keeper, 1, 3, PAYLOAD)
    keeper = Keeper(disk.crash())
    assert list(damages(keeper)) == [1]
    assert keeper.store.recovery.torn is None


def test_a_later_file_proves_what_was_sealed_before() -> None:
    disk, keeper = fill(rounds=1)
    last = keeper.put(0, b"the last entry of its file")
    keeper.flush()
    flip(disk, keeper, 0, last, HEADER)
    disk = disk.crash()
    keeper = Keeper(disk)  # torn: cut, sealed, and the next file begun
    assert keeper.store.recovery.torn is not None
    keeper.put(1, b"in the next file")
    keeper.flush()
    flip(disk, keeper, 0, 1, HEADER)
    found = damages(Keeper(disk.crash()))
    assert list(found) == [0]


def test_nothing_of_a_torn_tail_can_come_back() -> None:
    """Whatever happens while the tail is sealed: once END is there, no entry of the old tail is."""
    tails = 0
    for outcome in range(60):
        generator = random.Random(outcome)
        disk = SimulatedDisk(generator)
        keeper = Keeper(disk)
        keeper.work()
        keeper.put(0, b"acknowledged")
        keeper.flush()
        for _ in range(8):
            keeper.put(0, b"never acknowledged" * 40)
        flush = keeper.store.take_flush()
        assert flush is not None
        disk.power_off_after = disk.operations + 1
        with pytest.raises(PowerLoss):
            flush.run()
        disk = disk.crash()
        disk.power_off_after = generator.randrange(16)
        try:
            Keeper(disk)
        except PowerLoss:
            pass
        disk = disk.crash()
        number = keeper.store.appended_position >> 32
        scan = JournalScan(number, disk.contents(journal_name(number)), IDENTITY.seed)
        offset = 0
        while (header := scan.header_at(offset)) is not None and scan.is_whole(offset, header):
            offset += header.size
            if header.kind == END:
                tails += 1
                assert not scan.headers_after(offset - 8)
                break
    assert tails > 10


def test_bodies_that_look_like_entries_are_bodies() -> None:
    """Someone sends a piece of a journal as a message, and the message is torn."""
    for outcome in range(20):
        disk, keeper = fill(rounds=2)
        name = journal_name(keeper.store.appended_position >> 32)
        # Right in all but the checksum of the header, whose seed a sender cannot know.
        forged = bytearray(disk.contents(name)[: keeper.store.appended_position & OFFSET_MASK])
        offset = 0
        while (header := decode_header(forged, offset, IDENTITY.seed)) is not None:
            synced_everything = (2**31).to_bytes(4, "little")
            forged[offset + 8 : offset + 12] = synced_everything
            forged[offset + 36 : offset + 40] = crc32c(forged[offset : offset + 36]).to_bytes(4, "little")
            offset += header.size
        keeper.put(0, bytes(forged) * 8)
        flush = keeper.store.take_flush()
        assert flush is not None
        disk.random = random.Random(outcome)
        disk.power_off_after = disk.operations + 1
        with pytest.raises(PowerLoss):
            flush.run()
        assert not damages(Keeper(disk.crash()))


def test_sectors_that_cannot_be_read_are_a_hole(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, keeper = fill(rounds=12)
    name, offset = flip(disk, keeper, 1, 2, HEADER)
    disk = disk.crash()
    bad = range(offset // 4096 * 4096, offset // 4096 * 4096 + 4096)
    whole = SimulatedFile.read_at

    def read_at(file: SimulatedFile, start: int, size: int, *, block: bool = True) -> bytes:
        if file.name == name and start < bad.stop and start + size > bad.start:
            raise DiskFailedError("input/output error")
        return whole(file, start, size, block=block)

    monkeypatch.setattr(SimulatedFile, "read_at", read_at)
    keeper = Keeper(disk)
    assert damages(keeper)
    assert all(damage.file == name for damage in damages(keeper).values())


def test_a_sector_that_cannot_be_read_is_no_torn_tail_where_the_next_one_proves_it() -> None:
    """Both lie in the same 4 KiB, of which nothing more must be given up than the disk cannot read."""
    disk, keeper = fill(rounds=3)
    name = journal_name(keeper.store.appended_position >> 32)
    assert 512 < keeper.store.appended_position & OFFSET_MASK < 4096
    disk = disk.crash()
    disk.inode(name).unreadable.add(0)
    keeper = Keeper(disk)
    assert set(damages(keeper)) == {0, 1, 2}
    assert keeper.store.recovery.torn is None


def test_a_sector_that_cannot_be_read_in_the_last_flush_of_a_file_keeps_nobody_else_away() -> None:
    """What may not be on disk is written again at every start, as far as it can be read."""
    disk, keeper = fill()
    first = keeper.store.appended_position >> 32
    while keeper.store.appended_position >> 32 == first:
        keeper.put(1, b"filling up " * 100)
        keeper.flush()
        keeper.work()
    keeper.put(0, b"in the next file")
    keeper.flush()
    positions = keeper.partitions[1].positions.values()
    last = max(position for position in positions if position >> 32 == first)
    disk.kill()
    disk = disk.reopen()
    disk.inode(journal_name(first)).unreadable.add((last & OFFSET_MASK) // 512 + 1)
    keeper = Keeper(disk)
    assert set(damages(keeper)) == {1}
    assert b"in the next file" in keeper.bodies(0).values()


def test_a_missing_journal_file_is_noticed() -> None:
    disk, keeper = fill()
    first = keeper.store.appended_position >> 32
    while keeper.store.appended_position >> 32 < first + 4:
        keeper.put(0, b"filling up " * 40)
        keeper.flush()
        keeper.work()
    numbers = sorted({position >> 32 for position in keeper.partitions[0].positions.values()})
    disk.remove(journal_name(numbers[1]))
    disk.sync_directory("journal")
    found = damages(Keeper(disk.crash()))
    assert set(found) == {0, 1, 2}
    assert "the journal file is missing" in found[0].reason


def test_the_first_journal_file_after_a_snapshot_missing_is_noticed() -> None:
    disk, keeper = fill()
    keeper.full_checkpoint()
    keeper.work()
    keeper.put(0, b"after")
    keeper.flush()
    disk.remove(journal_name(keeper.store.appended_position >> 32))
    disk.sync_directory("journal")
    assert set(damages(Keeper(disk.crash()))) == {0, 1, 2}

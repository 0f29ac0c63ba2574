"""Reading batches back: the cache, read-ahead, reads that must not wait, and jobs that wait for them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from penstock.model.batch import Batch, encode
from penstock.model.records import Deleted, Sent, encode_record
from penstock.simulation.disk import SimulatedDisk, SimulatedFile
from penstock.storage import reader
from penstock.storage.disk import DiskFailedError, WouldBlockError
from penstock.storage.errors import DamagedEntryError
from penstock.storage.store import Store
from tests.storage.keeper import IDENTITY, OPTIONS, Keeper

READING = replace(OPTIONS, cache_bytes=64 * 1024, read_ahead_bytes=8 * 1024)


class Reads:
    """Counts reads of the disk."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        whole = SimulatedFile.read_at

        def read_at(file: SimulatedFile, offset: int, size: int, *, block: bool = True) -> bytes:
            self.sizes.append(size)
            return whole(file, offset, size, block=block)

        monkeypatch.setattr(SimulatedFile, "read_at", read_at)


def filled(count: int = 40, partitions: int = 2) -> tuple[SimulatedDisk, Keeper]:
    """A backlog that is not in the cache."""
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk, READING)
    keeper.work()
    for number in range(count):
        keeper.put(number % partitions, b"%04d" % number * 50)
        keeper.flush()
        keeper.work()
    disk = disk.crash()
    keeper.boot(disk, READING)
    return disk, keeper


def test_what_was_just_appended_is_read_from_memory_before_and_after_the_flush() -> None:
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk, replace(READING, cache_bytes=0))
    for number in range(5):
        keeper.put(1, b"body %d" % number)
    position = keeper.partitions[1].positions[1]
    sent, batch = keeper.store.read(1, position)
    assert (sent.first, bytes(batch.body(0))) == (1, b"body 0")
    keeper.flush()
    assert keeper.store.statistics().cached_bytes < 1_000  # now it may go, all but the newest
    assert bytes(keeper.store.read(1, position)[1].body(0)) == b"body 0"


def test_a_hit_gives_the_same_objects() -> None:
    _, keeper = filled()
    position = keeper.partitions[1].positions[2]
    sent, batch = keeper.store.read(1, position)
    again = keeper.store.read(1, position)
    assert again[0] is sent
    assert again[1] is batch


def test_draining_in_order_reads_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    _, keeper = filled(60)
    reads = Reads(monkeypatch)
    assert len(keeper.bodies(1)) == 30
    journal_bytes = 60 * 300
    assert len(reads.sizes) <= journal_bytes // READING.read_ahead_bytes + 3


def test_the_cache_keeps_to_its_bound_and_gives_up_the_oldest() -> None:
    disk, keeper = filled(60)
    keeper.boot(disk.crash(), replace(READING, cache_bytes=5_000))
    for _ in range(3):
        keeper.bodies(0)
        keeper.bodies(1)
        assert keeper.store.statistics().cached_bytes <= 5_000


def test_nothing_is_read_ahead_beyond_what_is_flushed() -> None:
    """A flush may be half written while its neighbour is read."""
    disk = SimulatedDisk(random.Random(1))
    store = Store.open(disk, READING, IDENTITY)
    batch = encode([b"body"])
    positions = []
    for index in (1, 2):
        positions.append(store.append(1, index, encode_record(Sent(index, 1, 0, 0, 0, 0, 0)), (batch.data,)))
        flush = store.take_flush()
        assert flush is not None
        flush.run()
        if index == 1:
            store.flushed(flush)
    disk.flip_bit("journal/0000000001.journal", (positions[1] & 0xFFFFFFFF) + 60)  # not finished yet
    assert store.read(1, positions[0])[0].first == 1
    with pytest.raises(ValueError, match="nothing was flushed"):
        store.read(1, positions[1])
    disk.flip_bit("journal/0000000001.journal", (positions[1] & 0xFFFFFFFF) + 60)  # now it is
    assert flush is not None
    store.flushed(flush)
    assert store.read(1, positions[1])[0].first == 2


def test_a_read_that_would_wait_says_so_and_a_job_brings_the_batch() -> None:
    disk, keeper = filled()
    disk.cold_reads = 1.0
    positions = list(keeper.partitions[1].positions.values())
    with pytest.raises(WouldBlockError):
        keeper.store.read(1, positions[0])
    keeper.run(keeper.store.read_job(positions[:3]))
    for position in positions[:3]:
        keeper.store.read(1, position)
    assert len(keeper.bodies(0)) == 20  # with block=True it waits


def test_a_job_asked_for_more_than_the_cache_holds_brings_the_first() -> None:
    disk, keeper = filled(60)
    disk = disk.crash()
    keeper.boot(disk, replace(READING, cache_bytes=3_000, read_ahead_bytes=512))
    disk.cold_reads = 1.0
    positions = list(keeper.partitions[1].positions.values())
    for position in positions:
        try:
            keeper.store.read(1, position)
        except WouldBlockError:
            keeper.run(keeper.store.read_job(positions[positions.index(position) :]))
            keeper.store.read(1, position)
    assert keeper.store.statistics().cached_bytes <= 3_000


def test_a_copy_takes_the_cached_batch_along(monkeypatch: pytest.MonkeyPatch) -> None:
    _, keeper = filled(4)
    keeper.bodies(1)
    keeper.flush()
    keeper.full_checkpoint()
    reads = Reads(monkeypatch)
    keeper.bodies(1)
    assert not reads.sizes


def test_damage_is_told_with_file_and_offset_and_only_for_what_is_damaged() -> None:
    disk, keeper = filled()
    positions = list(keeper.partitions[1].positions.values())
    position = positions[3]
    disk.flip_bit(f"journal/{position >> 32:010}.journal", (position & 0xFFFFFFFF) + 80)
    assert keeper.store.read(1, positions[2], block=True)
    for _ in range(2):
        with pytest.raises(DamagedEntryError, match=f"journal/{position >> 32:010}.journal at offset"):
            keeper.store.read(1, position, block=True)
    assert keeper.store.read(1, positions[4], block=True)
    keeper.run(keeper.store.read_job([position, positions[5]]))
    with pytest.raises(DamagedEntryError):
        keeper.store.read(1, position)


def test_a_position_where_no_batch_is_is_damage_too() -> None:
    _, keeper = filled()
    deleted = keeper.store.append(1, keeper.partitions[1].index + 1, encode_record(Deleted(0, [(1, 1)], 0)))
    flush = keeper.store.take_flush()
    assert flush is not None
    flush.run()
    keeper.store.flushed(flush)
    with pytest.raises(DamagedEntryError, match="holds no batch"):
        keeper.store.read(1, deleted, block=True)
    with pytest.raises(DamagedEntryError, match="header"):
        keeper.store.read(1, keeper.partitions[1].positions[1] + 8, block=True)
    with pytest.raises(DamagedEntryError, match="missing"):
        keeper.store.read(1, 999 << 32, block=True)


def test_a_sector_that_cannot_be_read_is_damage_of_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    _, keeper = filled()
    position = keeper.partitions[1].positions[3]
    whole = SimulatedFile.read_at
    bad = (position & 0xFFFFFFFF) + 100

    def read_at(file: SimulatedFile, offset: int, size: int, *, block: bool = True) -> bytes:
        if f"{position >> 32:010}" in file.name and offset <= bad < offset + size:
            raise DiskFailedError("input/output error")
        return whole(file, offset, size, block=block)

    monkeypatch.setattr(SimulatedFile, "read_at", read_at)
    with pytest.raises(DamagedEntryError, match="cannot be read"):
        keeper.store.read(1, position, block=True)
    job = keeper.store.copy_job(1, list(keeper.partitions[1].positions.values()))
    keeper.run(job)
    assert [damage.offset for damage in job.damages] == [position & 0xFFFFFFFF]
    assert len(job.moved) == len(keeper.partitions[1].positions) - 1


def test_few_files_are_kept_open() -> None:
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk, replace(READING, open_files_max=4))
    keeper.work()
    for partition in range(20):
        keeper.put(partition, b"body of %d" % partition)
    keeper.flush()
    keeper.full_checkpoint()
    keeper.work()
    for partition in range(20):
        assert keeper.bodies(partition) == {1: b"body of %d" % partition}
    assert len(keeper.store._files._handles) <= 4


def test_batches_that_share_what_a_socket_gave_are_weighed_with_all_of_it() -> None:
    """A few bytes kept of a large buffer keep the buffer, so the bound must count it."""
    store = Store.open(SimulatedDisk(random.Random(1)), replace(READING, cache_bytes=30_000), IDENTITY)
    batch = encode([b"body"]).data
    received = bytes(batch) * 2 + bytes(20_000)
    for index, start in enumerate((0, len(batch)), 1):
        sent = Sent(index, 1, 0, 0, 0, 0, 0)
        view = Batch(memoryview(received)[start : start + len(batch)])
        store.remember(store.append(1, index, encode_record(sent), (view.data,)), sent, view)
    assert 20_000 < store.statistics().cached_bytes < 22_000, "counted once for both"
    alone = encode([bytes(15_000)])
    sent = Sent(3, 1, 0, 0, 0, 0, 0)
    store.remember(store.append(1, 3, encode_record(sent), (alone.data,)), sent, alone)
    flush = store.take_flush()
    assert flush is not None
    flush.run()
    store.flushed(flush)
    assert 15_000 < store.statistics().cached_bytes < 17_000, "gone with the last of the two"


def test_an_entry_of_another_partition_is_damage() -> None:
    """A disk that writes to the wrong place leaves a whole entry there."""
    _, keeper = filled(4)
    ours, theirs = keeper.partitions[1].positions[1], keeper.partitions[0].positions[2]
    assert keeper.store.read(1, ours, block=True)
    with pytest.raises(DamagedEntryError, match="an entry of another partition is there"):
        keeper.store.read(1, theirs, block=True)
    with pytest.raises(DamagedEntryError, match="an entry of another partition is there"):
        keeper.store.hand_out(1, theirs, 2, block=True)


def test_who_jumps_about_reads_little(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, keeper = filled(40, partitions=1)
    keeper.boot(disk.crash(), replace(READING, read_ahead_bytes=2_000))
    monkeypatch.setattr(reader, "SEEK_BYTES", 1_000)
    reads = Reads(monkeypatch)
    positions = list(keeper.partitions[0].positions.values())
    for position in (positions[30], positions[5], positions[20]):
        keeper.store.read(0, position)
    assert max(reads.sizes) <= 1_000
    reads.sizes.clear()
    for position in positions[20:30]:
        keeper.store.read(0, position)
    assert max(reads.sizes) > 1_000, "behind the last read it reads ahead"

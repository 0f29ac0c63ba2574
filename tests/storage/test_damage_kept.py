"""Damage in snapshots and segments; what is kept of a damaged partition; and that no flipped bit goes unnoticed."""

from __future__ import annotations

import random

import pytest

from penstock.simulation.disk import SimulatedDisk
from penstock.storage.disk import DiskFailedError
from penstock.storage.entry import OFFSET_MASK
from penstock.storage.errors import Damage, DamagedEntryError, StorageDamagedError, StorageVersionError
from penstock.storage.journal_file import journal_name
from tests.storage.damaging import PAYLOAD, damages, fill, flip
from tests.storage.keeper import Keeper

# -- snapshots and segments ------------------------------------------------------------------------------------


def checkpointed() -> tuple[SimulatedDisk, Keeper, str]:
    disk, keeper = fill()
    keeper.full_checkpoint()
    keeper.work()
    (snapshot,) = disk.list("snapshots")
    return disk, keeper, f"snapshots/{snapshot}"


def test_a_damaged_section_costs_its_partition_alone() -> None:
    disk, keeper, name = checkpointed()
    disk.flip_bit(name, disk.contents(name).index(keeper.partitions[1].dump()) + 2)
    keeper = Keeper(disk.crash())
    assert list(damages(keeper)) == [1]
    assert 1 not in keeper.partitions
    assert len(keeper.bodies(0)) == len(keeper.bodies(2)) == 4


def test_either_table_of_a_snapshot_is_enough_and_both_bad_are_not() -> None:
    disk, _, name = checkpointed()
    size = len(disk.contents(name))
    for offset in (0, 9, 25, size - 1, size - 30):
        damaged = disk.copy(random.Random(1))
        damaged.flip_bit(name, offset)
        assert len(Keeper(damaged.crash()).bodies(0)) == 4
    disk.flip_bit(name, 30)
    disk.flip_bit(name, size - 30)
    with pytest.raises(StorageDamagedError, match=r"no snapshot can be read.*damaged in both"):
        Keeper(disk.crash())


def test_an_older_snapshot_takes_the_place_of_a_damaged_one() -> None:
    disk, keeper = fill()
    keeper.full_checkpoint()
    keeper.work()
    keeper.put(0, b"between")
    keeper.flush()
    checkpoint = keeper.store.begin_checkpoint()
    for partition, copy in keeper.partitions.items():
        keeper.vacate(checkpoint, partition)
        checkpoint.add(partition, copy.index, copy.dump())
    keeper.flush()
    job = checkpoint.snapshot_job()
    assert job is not None
    disk.fault = lambda what, name: DiskFailedError("stop here") if what == "remove" else None
    job.run()
    disk.fault = None
    assert len(disk.list("snapshots")) == 2
    name = f"snapshots/{disk.list('snapshots')[-1]}"
    disk.flip_bit(name, 1)
    disk.flip_bit(name, len(disk.contents(name)) - 1)
    assert len(Keeper(disk.crash()).bodies(0)) == 5


def test_damage_in_a_segment_shows_on_reading_and_on_copying() -> None:
    disk, keeper, _ = checkpointed()
    position = keeper.partitions[1].positions[2]
    name = f"segments/1/{position >> 32:010}.segment"
    disk.flip_bit(name, (position & OFFSET_MASK) + PAYLOAD)
    keeper = Keeper(disk.crash())
    with pytest.raises(DamagedEntryError, match="contents of the entry are damaged") as raised:
        keeper.store.read(1, position, block=True)
    assert (raised.value.file, raised.value.offset) == (name, position & OFFSET_MASK)
    job = keeper.store.copy_job(1, list(keeper.partitions[1].positions.values()))
    keeper.run(job)
    assert job.error is None
    assert [(damage.file, damage.offset) for damage in job.damages] == [(name, position & OFFSET_MASK)]
    assert len(job.moved) == 3
    assert position not in job.moved


def test_a_segment_that_is_missing_is_damage() -> None:
    disk, keeper, _ = checkpointed()
    position = keeper.partitions[1].positions[2]
    disk.remove(f"segments/1/{position >> 32:010}.segment")
    disk.sync_directory("segments/1")
    keeper = Keeper(disk.crash())
    assert not keeper.store.has_file(1, position >> 32)
    with pytest.raises(DamagedEntryError, match="the file is missing"):
        keeper.store.read(1, position, block=True)
    job = keeper.store.copy_job(1, list(keeper.partitions[1].positions.values()))
    keeper.run(job)
    assert {damage.reason for damage in job.damages} == {"the file is missing"}


# -- what is kept ----------------------------------------------------------------------------------------------


def test_a_damaged_partition_is_remembered_and_its_files_are_kept() -> None:
    disk, keeper = fill()
    name, _ = flip(disk, keeper, 1, 2, PAYLOAD)
    before = disk.contents(name)[: keeper.store.appended_position & OFFSET_MASK]
    disk = disk.crash()
    keeper = Keeper(disk)
    found = damages(keeper)
    for _ in range(3):
        for _ in range(40):
            keeper.put(0, b"work " * 100)
            keeper.flush()
            keeper.work()
        keeper.full_checkpoint()
        keeper.work()
        disk = disk.crash()
        keeper = Keeper(disk)
        assert damages(keeper) == found
        assert disk.contents(name).startswith(before)
    # When the partition is removed the file is free.
    keeper.store.drop_partition(1)
    keeper.partitions.pop(1, None)
    keeper.damaged.clear()
    keeper.full_checkpoint()
    keeper.work()
    assert name not in disk.files()
    assert not damages(Keeper(disk.crash()))


def test_a_damaged_partition_that_was_removed_holds_nothing_after_a_restart() -> None:
    """It was removed, but the crash came before the next snapshot could forget it."""
    disk, keeper = fill()
    name, _ = flip(disk, keeper, 1, 2, PAYLOAD)
    disk = disk.crash()
    keeper = Keeper(disk)
    keeper.full_checkpoint()
    keeper.work()
    keeper.store.drop_partition(1)
    disk = disk.crash()
    keeper = Keeper(disk)
    assert list(damages(keeper)) == [1]
    keeper.damaged.clear()
    keeper.partitions.pop(1, None)
    keeper.store.keep_partitions({0, 2})
    assert not keeper.store.damages
    keeper.put(0, b"something to checkpoint")
    keeper.flush()
    keeper.work()
    keeper.full_checkpoint()
    keeper.work()
    assert name not in disk.files()
    assert not damages(Keeper(disk.crash()))


def test_damage_found_while_running_is_remembered() -> None:
    disk, keeper, _ = checkpointed()
    keeper.put(1, b"kept in the journal")
    keeper.flush()
    journal = journal_name(keeper.store.appended_position >> 32)
    damage = Damage(1, "segments/1/x", 8, "the contents of the entry are damaged")
    keeper.store.fence(damage)
    keeper.damaged = {1}
    with pytest.raises(ValueError, match="follows"):
        keeper.store.append(1, keeper.partitions[1].index + 1, b"head")
    keeper.full_checkpoint()
    keeper.work()
    keeper.full_checkpoint()
    keeper.work()
    assert journal in disk.files()
    keeper = Keeper(disk.crash())
    assert keeper.store.recovery.damages == [damage]
    # What the last snapshot before the damage said of the partition is still there to be looked at.
    assert keeper.partitions[1].index == 4
    assert len(keeper.bodies(1)) == 4


def test_every_single_flipped_bit_is_noticed_or_harmless() -> None:
    """Flip anything anywhere: what is served is right, what is not is fenced or refused."""
    disk, keeper = fill()
    keeper.full_checkpoint()
    keeper.work()
    for number in range(3):
        for partition in range(3):
            keeper.put(partition, b"after %d of %d " % (number, partition) * 8)
        keeper.flush()
    keeper.store.close()
    expected = {partition: truth(keeper, partition) for partition in range(3)}
    generator = random.Random(4)
    names = [name for name, size in disk.files().items() if size and "spare" not in name]
    for _ in range(400):
        name = generator.choice(names)
        data = disk.contents(name)
        offset = generator.randrange(min(len(data), 2_500))
        damaged = disk.copy(random.Random(1))
        damaged.flip_bit(name, offset, generator.randrange(8))
        check_truthful(damaged.crash(), expected)


def truth(keeper: Keeper, partition: int) -> dict[int, bytes]:
    return {index: body for what, p, index, body in keeper.history if p == partition and what == "put"}


def check_truthful(disk: SimulatedDisk, expected: dict[int, dict[int, bytes]]) -> None:
    try:
        keeper = Keeper(disk)
    except (StorageDamagedError, StorageVersionError):
        return
    for partition, bodies in expected.items():
        if partition in keeper.damaged:
            continue
        assert set(keeper.partitions[partition].positions) == set(bodies)
        for index, position in keeper.partitions[partition].positions.items():
            try:
                _, batch = keeper.store.read(partition, position, block=True)
            except DamagedEntryError:
                continue
            assert bytes(batch.body(0)) == bodies[index]

"""Checkpoints: what they vacate, when they are due, and what may be removed when."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from penstock.simulation.disk import SimulatedDisk
from tests.storage.keeper import OPTIONS, Keeper, after_crash

BODY = b"c" * 1_000


def make() -> tuple[SimulatedDisk, Keeper]:
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk)
    keeper.work()
    return disk, keeper


def fill(keeper: Keeper, partition: int, count: int) -> None:
    for _ in range(count):
        keeper.put(partition, BODY)
        keeper.flush()
        keeper.work()


def test_what_lives_moves_to_segments_and_the_journal_is_free() -> None:
    disk, keeper = make()
    fill(keeper, 1, 30)
    assert keeper.store.segment_sizes(1) == (0, 0)
    keeper.full_checkpoint()
    keeper.work()
    files, size = keeper.store.segment_sizes(1)
    assert files >= 3  # one after the other as they fill
    assert size >= 30_000
    assert keeper.store.segment_numbers(1).keys() == {
        p >> 32 for p in keeper.partitions[1].positions.values()
    }
    assert all(not keeper.store.is_journal(p >> 32) for p in keeper.partitions[1].positions.values())
    assert len(keeper.bodies(1)) == 30
    statistics = keeper.store.statistics()
    assert (statistics.segment_files, statistics.segment_bytes) == (files, size)
    assert statistics.snapshot_bytes == sum(s for name, s in disk.files().items() if "snapshots/" in name)
    after_crash(keeper, disk.crash())


def test_a_checkpoint_is_due_by_bytes_or_by_four_snapshots() -> None:
    _, keeper = make()
    assert not keeper.store.checkpoint_due(0)
    fill(keeper, 1, 40)
    assert keeper.store.checkpoint_due(0)
    keeper.full_checkpoint()
    assert not keeper.store.checkpoint_due(0)
    # A snapshot that is large by itself makes the next one rarer.
    checkpoint = keeper.store.begin_checkpoint()
    keeper.vacate(checkpoint, 1)
    checkpoint.add(1, keeper.partitions[1].index, keeper.partitions[1].dump())
    checkpoint.add(2, 0, bytes(60_000))
    keeper.flush()
    job = checkpoint.snapshot_job()
    assert job is not None
    assert not keeper.store.checkpoint_due(0)
    keeper.run(job)
    keeper.store.finish_checkpoint(checkpoint)
    keeper.work()
    fill(keeper, 1, 40)
    assert not keeper.store.checkpoint_due(0)


def test_under_load_a_checkpoint_waits_until_the_old_files_can_be_read() -> None:
    """Something is always unflushed; a copy of it would find nothing on disk yet."""
    disk, keeper = make()
    fill(keeper, 1, 40)
    keeper.put(1, b"not flushed yet")
    last = keeper.partitions[1].positions[41]
    with pytest.raises(ValueError, match="not flushed yet"):
        keeper.store.copy_job(1, [last])
    assert not keeper.store.checkpoint_due(0)
    flush = keeper.store.take_flush()
    assert flush is not None
    keeper.put(1, b"nor is this, which is in the fresh file")
    assert not keeper.store.checkpoint_due(0)
    flush.run()
    keeper.store.flushed(flush)
    assert keeper.store.checkpoint_due(0)
    checkpoint = keeper.store.begin_checkpoint()
    assert checkpoint.is_journal(last >> 32)
    assert not checkpoint.is_journal(keeper.partitions[1].positions[42] >> 32)
    keeper.vacate(checkpoint, 1)
    assert not checkpoint.is_journal(keeper.partitions[1].positions[41] >> 32)
    checkpoint.add(1, keeper.partitions[1].index, keeper.partitions[1].dump())
    keeper.flush()
    job = checkpoint.snapshot_job()
    assert job is not None
    keeper.run(job)
    keeper.store.finish_checkpoint(checkpoint)
    keeper.work()
    after_crash(keeper, disk.crash())


def test_a_checkpoint_begun_by_hand_vacates_only_what_is_committed() -> None:
    _, keeper = make()
    fill(keeper, 1, 20)
    keeper.put(1, b"not flushed yet")
    checkpoint = keeper.store.begin_checkpoint()
    old = [p for p in keeper.partitions[1].positions.values() if checkpoint.is_journal(p >> 32)]
    assert 0 < len(old) < 21
    keeper.vacate(checkpoint, 1)
    assert len(keeper.bodies(1)) == 21


def test_the_snapshot_waits_for_what_it_refers_to() -> None:
    _, keeper = make()
    keeper.put(1, BODY)
    keeper.flush()
    checkpoint = keeper.store.begin_checkpoint()
    keeper.vacate(checkpoint, 1)
    keeper.put(1, b"not flushed yet")
    checkpoint.add(1, keeper.partitions[1].index, keeper.partitions[1].dump())
    assert checkpoint.is_added(1)
    assert checkpoint.snapshot_job() is None
    keeper.flush()
    assert checkpoint.snapshot_job() is not None
    with pytest.raises(ValueError, match="begun already"):
        checkpoint.snapshot_job()
    with pytest.raises(ValueError, match="under way"):
        keeper.store.begin_checkpoint()


def test_a_segment_is_removed_once_its_deletes_are_on_disk() -> None:
    disk, keeper = make()
    fill(keeper, 1, 5)
    keeper.full_checkpoint()
    keeper.work()
    for index in list(keeper.partitions[1].positions):
        keeper.delete(1, index)
    assert keeper.store.segment_sizes(1) == (0, 0)
    keeper.work()
    assert disk.list("segments/1")
    keeper.flush()
    keeper.work()
    assert not disk.list("segments/1")


def test_a_segment_that_was_copied_away_waits_for_the_snapshot() -> None:
    disk, keeper = make()
    fill(keeper, 1, 5)
    keeper.full_checkpoint()
    keeper.work()
    (old,) = keeper.store.segment_numbers(1)
    checkpoint = keeper.store.begin_checkpoint()
    keeper.vacate(checkpoint, 1, compact=True)
    keeper.flush()
    keeper.work()
    assert f"{old:010}.segment" in disk.list("segments/1")
    checkpoint.add(1, keeper.partitions[1].index, keeper.partitions[1].dump())
    keeper.flush()
    job = checkpoint.snapshot_job()
    assert job is not None
    keeper.run(job)
    keeper.work()
    assert f"{old:010}.segment" in disk.list("segments/1")
    keeper.store.finish_checkpoint(checkpoint)
    keeper.work()
    assert f"{old:010}.segment" not in disk.list("segments/1")
    after_crash(keeper, disk.crash())


def test_a_copy_after_the_state_was_added_waits_for_the_snapshot_after() -> None:
    disk, keeper = make()
    fill(keeper, 1, 5)
    keeper.full_checkpoint()
    keeper.work()
    (old,) = keeper.store.segment_numbers(1)
    checkpoint = keeper.store.begin_checkpoint()
    checkpoint.add(1, keeper.partitions[1].index, keeper.partitions[1].dump())
    keeper.vacate(checkpoint, 1, compact=True)
    keeper.flush()
    job = checkpoint.snapshot_job()
    assert job is not None
    keeper.run(job)
    keeper.store.finish_checkpoint(checkpoint)
    keeper.work()
    assert f"{old:010}.segment" in disk.list("segments/1")
    after_crash(keeper, disk.copy(random.Random(2)).crash())
    keeper.full_checkpoint()
    keeper.work()
    assert f"{old:010}.segment" not in disk.list("segments/1")
    after_crash(keeper, disk.crash())


def test_a_removed_partition_does_not_come_back() -> None:
    """Whether it is removed before, during or after a checkpoint, flushed or not."""
    for moment in range(4):
        disk, keeper = make()
        fill(keeper, 1, 3)
        fill(keeper, 2, 3)
        keeper.full_checkpoint()
        if moment == 0:
            remove(keeper, 1)
        checkpoint = keeper.store.begin_checkpoint()
        fill(keeper, 2, 1)
        if moment == 1:
            remove(keeper, 1)
        for partition, copy in keeper.partitions.items():
            keeper.vacate(checkpoint, partition)
            checkpoint.add(partition, copy.index, copy.dump())
        if moment == 2:
            remove(keeper, 1)
        keeper.flush()
        job = checkpoint.snapshot_job()
        assert job is not None
        keeper.run(job)
        keeper.store.finish_checkpoint(checkpoint)
        if moment == 3:
            remove(keeper, 1)
            keeper.full_checkpoint()
        keeper.work()
        assert not disk.list("segments/1")
        following = Keeper(disk.crash())
        assert not following.damaged
        assert list(following.partitions) == [2]
        assert len(following.bodies(2)) == 4


def remove(keeper: Keeper, partition: int) -> None:
    keeper.put(partition, b"the last record, which says that the partition is gone")
    del keeper.partitions[partition]
    keeper.store.drop_partition(partition)


def test_a_partition_removed_while_it_is_copied_leaves_nothing() -> None:
    disk, keeper = make()
    fill(keeper, 1, 3)
    job = keeper.store.copy_job(1, list(keeper.partitions[1].positions.values()))
    with pytest.raises(ValueError, match="being copied already"):
        keeper.store.copy_job(1, [])
    remove(keeper, 1)
    keeper.flush()
    keeper.run(job)
    keeper.work()
    assert not disk.list("segments")


def test_a_partition_that_comes_back_after_a_failed_copy_keeps_its_segments() -> None:
    """The copy of the removed partition failed; the copy of the new one must not be taken for it."""
    disk, keeper = make()
    fill(keeper, 1, 3)
    job = keeper.store.copy_job(1, list(keeper.partitions[1].positions.values()))
    remove(keeper, 1)
    disk.capacity = disk.used_bytes()
    keeper.run(job)
    assert job.error is not None
    disk.capacity = None
    keeper.work()
    fill(keeper, 1, 3)
    bodies = keeper.bodies(1)
    keeper.vacate(keeper.store.begin_checkpoint(), 1)
    assert keeper.store.segment_numbers(1)
    keeper.work()
    assert keeper.bodies(1) == bodies


def test_orphans_are_removed_after_a_restart() -> None:
    disk, keeper = make()
    fill(keeper, 1, 3)
    checkpoint = keeper.store.begin_checkpoint()
    keeper.vacate(checkpoint, 1)
    assert disk.list("segments/1")
    disk = disk.crash()
    following = after_crash(keeper, disk)
    following.work()
    assert not disk.list("segments/1")


def test_a_file_that_a_job_reads_is_not_used_again_until_it_is_done() -> None:
    disk, keeper = make()
    fill(keeper, 1, 40)
    old = list(keeper.partitions[1].positions.values())
    first = old[0] >> 32
    reading = keeper.store.read_job(old[:2])
    keeper.full_checkpoint()
    keeper.work()
    fill(keeper, 1, 60)
    assert f"{first:010}.journal" in disk.list("journal")
    keeper.run(reading)
    keeper.work()
    assert f"{first:010}.journal" not in disk.list("journal")
    keeper.full_checkpoint()
    keeper.work()
    after_crash(keeper, disk.crash())


def test_the_old_snapshot_is_gone_for_good_before_its_files_are_used() -> None:
    for seed in range(10):
        disk = SimulatedDisk(random.Random(seed))
        keeper = Keeper(disk)
        keeper.work()
        fill(keeper, 1, 3)
        keeper.full_checkpoint()
        assert len(disk.crash().list("snapshots")) == 1


def test_durability_os_syncs_what_a_snapshot_refers_to() -> None:
    """A power cut may take the tail of the journal, never what a snapshot says is there."""
    for seed in range(40):
        disk = SimulatedDisk(random.Random(seed))
        options = replace(OPTIONS, durability="os")
        keeper = Keeper(disk, options)
        keeper.work()
        fill(keeper, 1, 8)
        checkpoint = keeper.store.begin_checkpoint()
        keeper.vacate(checkpoint, 1)
        fill(keeper, 1, 2)
        checkpoint.add(1, keeper.partitions[1].index, keeper.partitions[1].dump())
        keeper.flush()
        job = checkpoint.snapshot_job()
        assert job is not None
        keeper.run(job)
        keeper.store.finish_checkpoint(checkpoint)
        keeper.work()
        keeper.committed = 10  # what is in the snapshot; the flushes alone promise nothing
        after_crash(keeper, disk.copy(random.Random(seed)).crash(), options)
        for index in (1, 2, 3, 4, 5, 6, 7, 8):
            keeper.delete(1, index)
        keeper.flush()
        keeper.work()
        fill(keeper, 1, 2)
        keeper.committed = 10
        after_crash(keeper, disk.crash(), options)

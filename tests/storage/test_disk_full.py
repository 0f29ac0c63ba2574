"""A full disk: sends are refused, the rest goes on, nothing is lost, and space that returns is found."""

from __future__ import annotations

import random

import pytest

from penstock.simulation.disk import SimulatedDisk
from penstock.storage.disk import DiskFullError
from penstock.storage.errors import JournalExhaustedError
from tests.storage.keeper import OPTIONS, Keeper, after_crash

BODY = b"b" * 1_000


def full() -> tuple[SimulatedDisk, Keeper]:
    """A disk on which the last room has just gone."""
    disk = SimulatedDisk(random.Random(1))
    keeper = Keeper(disk)
    keeper.work()
    disk.capacity = disk.used_bytes() + 6_000
    while keeper.store.accepts_sends:
        keeper.put(1, BODY, reserve=False)
        keeper.flush()
        keeper.work()
    return disk, keeper


def put_until_refused(keeper: Keeper, *, reserve: bool) -> int:
    for count in range(1_000):
        try:
            keeper.put(1, BODY, reserve=reserve)
        except (DiskFullError, JournalExhaustedError):
            return count
        keeper.flush()
        keeper.work()
    raise AssertionError("the disk never filled up")


def test_sends_are_refused_before_the_reserve_and_deletes_use_it() -> None:
    _, keeper = full()
    put_until_refused(keeper, reserve=False)
    with pytest.raises(DiskFullError, match="reserve"):
        keeper.put(1, BODY, reserve=False)
    alive = list(keeper.partitions[1].positions)
    for index in alive:
        keeper.delete(1, index)
        keeper.flush()
    assert keeper.bodies(1) == {}


def test_when_the_reserve_is_used_up_nothing_is_harmed() -> None:
    disk, keeper = full()
    assert put_until_refused(keeper, reserve=True) > 5
    before = (keeper.store.appended_position, keeper.store.committed_position)
    with pytest.raises(JournalExhaustedError):
        keeper.put(1, BODY)
    assert (keeper.store.appended_position, keeper.store.committed_position) == before
    disk = disk.crash()
    with pytest.raises(DiskFullError):
        Keeper(disk)
    disk.kill()
    disk = disk.reopen()
    disk.capacity = None
    following = after_crash(keeper, disk)
    assert len(following.bodies(1)) == len(keeper.partitions[1].positions)


def test_space_that_returns_is_found_by_itself() -> None:
    disk, keeper = full()
    put_until_refused(keeper, reserve=True)
    now = 5_000
    keeper.store.tick(now)
    keeper.work()
    assert keeper.store.next_wakeup_ms() == now + OPTIONS.retry_ms
    disk.capacity = None
    keeper.store.tick(now + OPTIONS.retry_ms - 1)
    keeper.work()
    assert keeper.store.next_wakeup_ms() is not None
    keeper.store.tick(now + OPTIONS.retry_ms)
    keeper.work()
    assert keeper.store.accepts_sends
    assert keeper.store.next_wakeup_ms() is None
    keeper.put(1, BODY, reserve=False)
    keeper.flush()
    keeper.check(keeper.history, keeper.committed)


def test_deleting_messages_makes_room_through_a_checkpoint() -> None:
    """Nobody touches the disk from outside: consumers empty the queue, a checkpoint gives the files back."""
    disk, keeper = full()
    for index in list(keeper.partitions[1].positions):
        keeper.delete(1, index)
    keeper.flush()
    assert keeper.store.checkpoint_due(10_000)
    keeper.full_checkpoint()
    keeper.work()
    assert keeper.store.accepts_sends
    keeper.put(1, BODY, reserve=False)
    keeper.flush()
    after_crash(keeper, disk.crash())


def test_a_checkpoint_without_room_is_given_up_and_loses_nothing() -> None:
    disk, keeper = full()
    put_until_refused(keeper, reserve=False)
    disk.capacity = disk.used_bytes()
    keeper.store.tick(1_000)
    checkpoint = keeper.store.begin_checkpoint()
    keeper.vacate(checkpoint, 1)
    assert not disk.list("segments/1")
    checkpoint.add(1, keeper.partitions[1].index, keeper.partitions[1].dump())
    keeper.flush()
    job = checkpoint.snapshot_job()
    assert job is not None
    keeper.run(job)
    assert isinstance(job.error, DiskFullError)
    with pytest.raises(ValueError, match="not on disk"):
        keeper.store.finish_checkpoint(checkpoint)
    keeper.store.abandon_checkpoint(checkpoint)
    assert not keeper.store.checkpoint_due(1_001)
    assert keeper.store.checkpoint_due(1_000_000)
    assert len(disk.list("snapshots")) == 1
    keeper.check(keeper.history, keeper.committed)
    after_crash(keeper, disk.crash())


def test_a_restart_on_a_full_disk_serves() -> None:
    disk, keeper = full()
    disk.capacity = disk.used_bytes()
    keeper = after_crash(keeper, disk.crash())
    keeper.work()
    assert not keeper.store.accepts_sends
    for index in list(keeper.partitions[1].positions)[:5]:
        keeper.delete(1, index)
    keeper.flush()


def test_new_journal_files_leave_room_for_a_checkpoint() -> None:
    disk = SimulatedDisk(random.Random(1))
    options = OPTIONS.__class__(**{**OPTIONS.__dict__, "free_bytes_min": 40_000})
    keeper = Keeper(disk, options)
    disk.capacity = disk.used_bytes() + 50_000
    keeper.work()
    assert not keeper.store.accepts_sends
    assert disk.free_bytes() >= 40_000

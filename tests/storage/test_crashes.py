"""Crashes at every point: what was committed is there, byte for byte; what was not is a prefix or nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from penstock.simulation.disk import PowerLoss, SimulatedDisk
from penstock.storage.disk import DiskFailedError
from penstock.storage.options import StorageOptions
from tests.storage.keeper import OPTIONS, Keeper, after_crash, body


def live_through(keeper: Keeper, generator: random.Random, steps: int) -> None:
    """Random work: puts, deletes, flushes, background jobs and checkpoints, in any order."""
    checkpoint: Iterator[None] | None = None
    for _ in range(steps):
        choice = generator.random()
        if choice < 0.55:
            keeper.put(generator.randrange(4), body(generator))
        elif choice < 0.75:
            partition = generator.choice(sorted(keeper.partitions) or [0])
            alive = keeper.partitions[partition].positions if keeper.partitions else {}
            if alive:
                keeper.delete(partition, generator.choice(list(alive)))
        elif choice < 0.9:
            keeper.flush()
        elif choice < 0.97:
            keeper.work()
        elif checkpoint is None and choice < 0.98:
            checkpoint = keeper.checkpoint_steps(compact=generator.random() < 0.4)
        if checkpoint is not None and generator.random() < 0.4 and next(checkpoint, checkpoint) is checkpoint:
            checkpoint = None
        if not keeper.store.accepts_sends or keeper.store.congested:
            keeper.work()


@pytest.mark.parametrize("durability", ["sync", "os"])
@pytest.mark.parametrize("seed", range(60))
def test_random_lives_end_in_crashes(seed: int, durability: str) -> None:
    generator = random.Random(seed)
    options = replace(OPTIONS, durability="sync" if durability == "sync" else "os")
    disk = SimulatedDisk(generator)
    keeper = Keeper(disk, options)
    for _ in range(6):
        disk.power_off_after = disk.operations + generator.randrange(1, 120)
        try:
            live_through(keeper, generator, generator.randrange(10, 200))
        except PowerLoss:
            pass
        if durability == "os" or generator.random() < 0.3:
            disk.kill()  # "os" promises nothing about a power cut
        else:
            disk.crash()
        disk = disk.reopen()
        if generator.random() < 0.3:
            disk = crash_while_opening(disk, generator, options, power=durability == "sync")
        keeper = after_crash(keeper, disk, options)


def crash_while_opening(
    disk: SimulatedDisk, generator: random.Random, options: StorageOptions, *, power: bool
) -> SimulatedDisk:
    disk.power_off_after = generator.randrange(12)
    try:
        Keeper(disk, options)
    except PowerLoss:
        pass
    if power:
        disk.crash()
    return disk.reopen()


def scenario(disk: SimulatedDisk, keeper: Keeper) -> None:
    """A short life that does everything once."""
    for number in range(12):
        keeper.put(number % 3, b"first %d " % number * 40)
        if number % 3 == 2:
            keeper.flush()
    keeper.work()
    keeper.full_checkpoint()
    keeper.work()
    for number in range(6):
        keeper.put(1, b"second %d " % number * 60)
    keeper.delete(0, 1)
    keeper.delete(0, 2)
    keeper.flush()
    keeper.full_checkpoint(compact=True)
    keeper.work()
    for index in list(keeper.partitions[0].positions):
        keeper.delete(0, index)
    keeper.flush()
    keeper.work()
    keeper.put(2, b"last")
    keeper.flush()
    keeper.store.close()


def operations_in_scenario() -> int:
    disk = SimulatedDisk(random.Random(0))
    scenario(disk, Keeper(disk))
    return disk.operations


@pytest.mark.parametrize("outcome", range(4))
def test_power_cut_after_every_operation(outcome: int) -> None:
    """Opening, appending, checkpoints with copies and compaction, removal, closing: each operation is the last."""
    total = operations_in_scenario()
    assert total > 80
    for operations in range(total + 1):
        disk = SimulatedDisk(random.Random(f"{outcome} {operations}"))
        disk.power_off_after = operations
        keeper: Keeper | None = None
        try:
            keeper = Keeper(disk)
            scenario(disk, keeper)
        except PowerLoss:
            pass
        survived = disk.crash()
        if keeper is None:
            assert not Keeper(survived).partitions
        else:
            after_crash(keeper, survived)


def test_power_cut_after_every_operation_of_a_recovery() -> None:
    """Sealing a torn tail may be interrupted anywhere, again and again."""
    first = SimulatedDisk(random.Random(5))
    keeper = Keeper(first)
    for number in range(30):
        keeper.put(number % 2, b"%d" % number * 200)
        if number % 10 == 9:
            keeper.flush()
    keeper.put(0, b"torn " * 300)
    flush = keeper.store.take_flush()
    assert flush is not None
    first.power_off_after = first.operations + 1  # the write, not the sync
    with pytest.raises(PowerLoss):
        flush.run()
    for outcome, operations, killed in product(range(30), range(12), (False, True)):
        disk = first.copy(random.Random(f"{outcome} {operations}"))
        if not killed:
            disk = disk.crash()  # else only the process ended, and the power goes while the next one starts
        disk.power_off_after = operations
        try:
            Keeper(disk)
        except PowerLoss:
            pass
        after_crash(keeper, disk.crash())


def test_power_cut_in_a_flush_over_several_files() -> None:
    """A file is on disk before the next is written, so what survives is a prefix over files as well."""
    lengths = set()
    for outcome in range(10):
        for operations in range(1, 6):
            disk = SimulatedDisk(random.Random(f"{outcome} {operations}"))
            keeper = Keeper(disk)
            keeper.work()
            for number in range(60):
                keeper.put(number % 2, b"%d" % number * 300)
            flush = keeper.store.take_flush()
            assert flush is not None
            disk.power_off_after = disk.operations + operations
            with pytest.raises(PowerLoss):
                flush.run()
            lengths.add(len(after_crash(keeper, disk.crash()).history))
    assert len(lengths) > 3


def test_what_survived_one_crash_survives_the_next() -> None:
    """A process is killed, its unsynced bytes are read back and served: from then on they are promised."""
    for seed in range(20):
        disk = SimulatedDisk(random.Random(seed))
        keeper = Keeper(disk)
        keeper.put(1, b"written but not synced")
        flush = keeper.store.take_flush()
        assert flush is not None
        disk.power_off_after = disk.operations + 1
        with pytest.raises(PowerLoss):
            flush.run()
        disk.kill()
        disk = disk.reopen()
        second = after_crash(keeper, disk)
        assert second.bodies(1) == {1: b"written but not synced"}
        third = after_crash(second, disk.crash())
        assert third.bodies(1) == {1: b"written but not synced"}


def test_what_a_failed_sync_left_in_memory_is_written_again() -> None:
    """The kernel takes the pages of a failed sync for clean: reads see them, and no later sync writes them."""
    for seed in range(20):
        disk = SimulatedDisk(random.Random(seed))
        keeper = Keeper(disk)
        keeper.put(1, b"its sync failed")
        flush = keeper.store.take_flush()
        assert flush is not None
        disk.fault = lambda operation, name: DiskFailedError("simulated") if operation == "sync" else None
        flush.run()
        assert flush.error is not None
        disk = disk.reopen()
        second = after_crash(keeper, disk)
        assert second.bodies(1) == {1: b"its sync failed"}
        third = after_crash(second, disk.crash())
        assert third.bodies(1) == {1: b"its sync failed"}


def test_a_removed_segment_does_not_come_back_under_a_number_in_use() -> None:
    """A removal that only the killed process knew of is undone by a power cut; its number must still be free."""
    for seed in range(20):
        disk = SimulatedDisk(random.Random(seed))
        keeper = Keeper(disk)
        keeper.work()
        index = keeper.put(1, b"moved to a segment")
        keeper.flush()
        keeper.full_checkpoint()
        keeper.delete(1, index)
        keeper.flush()
        keeper.work()
        assert not keeper.store.segment_numbers(1)
        disk = disk.reopen()
        second = after_crash(keeper, disk)
        second.work()
        disk = disk.crash()
        assert not disk.list("segments/1")
        after_crash(second, disk)

"""The log of a replica: cut and written on, taken in whole, read back; and what recovery makes of it after any crash."""

from __future__ import annotations

import random

import pytest

from penstock.simulation.disk import PowerLoss, SimulatedDisk
from penstock.storage.entry import BATCH, IMAGE, RECORD
from penstock.storage.identity import Identity
from penstock.storage.options import StorageOptions
from penstock.storage.replica_log import ReplicaLog
from penstock.storage.store import Store

OPTIONS = StorageOptions(
    journal_file_bytes=64 * 1024,
    entry_bytes_max=16 * 1024,
    free_bytes_min=0,
    checkpoint_journal_bytes=2**30,
)
IDENTITY = Identity("node", b"s" * 32)
Replayed = list[tuple[int, int, int, bytes]]


def open_store(disk: SimulatedDisk) -> tuple[Store, ReplicaLog, Replayed]:
    """(kind, partition, index, head) of what recovery says is to be replayed."""
    store = Store.open(disk, OPTIONS, IDENTITY)
    log = store.keep_replica_log()
    replayed: Replayed = []
    for entry in store.recovery.entries():
        replayed.append((entry.kind, entry.partition, entry.index, bytes(entry.head)))
        if entry.kind == RECORD:
            log.appended(entry.partition, entry.index, entry.position)
    return store, log, replayed


def flush(store: Store) -> None:
    for _ in range(20):
        work = store.take_flush()
        jobs = store.take_jobs()
        if work is not None:
            work.run()
            if work.error is not None:
                raise work.error
            store.flushed(work)
        for job in jobs:
            job.run()
            if job.error is not None:
                raise job.error
            store.job_done(job)
        if work is None and not jobs:
            return


def heads(replayed: Replayed, partition: int) -> list[bytes]:
    return [head for kind, owner, _, head in replayed if owner == partition and kind == RECORD]


def test_records_after_a_cut_take_the_place_of_those_before() -> None:
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    for index in range(1, 8):
        store.append(1, index, b"old %d" % index)
        store.append(2, index, b"other %d" % index)
    flush(store)
    log.cut(1, 4)
    for index in range(5, 7):
        store.append(1, index, b"new %d" % index)
    flush(store)
    store, log, replayed = open_store(disk.crash())
    assert not store.damages
    assert heads(replayed, 1) == [b"old 1", b"old 2", b"old 3", b"old 4", b"new 5", b"new 6"]
    assert len(heads(replayed, 2)) == 7
    store.append(1, 7, b"new 7")
    job = log.read_job(1, 4, 7)
    assert job is not None
    job.run()
    assert [entry.head for entry in job.entries] == [b"old 4", b"new 5", b"new 6"]  # 7 is not on disk yet


def test_a_cut_that_cannot_be_read_is_damage_and_not_the_old_records() -> None:
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    for index in range(1, 4):
        store.append(1, index, b"old %d" % index)
    flush(store)
    position = store.appended_position
    log.cut(1, 1)
    flush(store)
    store.append(1, 2, b"new 2")
    store.append(2, 1, b"other")
    flush(store)
    disk.crash()
    disk = disk.reopen()
    name = next(
        name for name in disk.files() if name.startswith("journal/") and b"new 2" in disk.contents(name)
    )
    disk.flip_bit(name, (position & 0xFFFFFFFF) + 3)
    store, _, replayed = open_store(disk)
    assert [damage.partition for damage in store.damages if damage.partition == 1] == [1]
    assert b"new 2" not in heads(replayed, 1)


def test_a_whole_state_counts_with_its_last_part_and_mends_damage() -> None:
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    for index in range(1, 4):
        store.append(1, index, b"old %d" % index, (b"p" * 100,))
    flush(store)
    store.append(2, 1, b"which shows that the others were on disk")
    flush(store)
    disk = disk.crash()
    name = next(
        name for name in disk.files() if name.startswith("journal/") and b"old 2" in disk.contents(name)
    )
    disk.flip_bit(name, disk.contents(name).index(b"old 2"))
    store, log, _ = open_store(disk)
    assert [damage.partition for damage in store.damages] == [1]
    log.append_image(1, 90, 0, 2, b"first")
    flush(store)
    disk = disk.crash()
    store, log, _ = open_store(disk)
    assert [damage.partition for damage in store.damages] == [1]  # half a state is none
    log.append_image(1, 90, 0, 2, b"first")
    log.append_image(1, 90, 1, 2, b"second")
    log.append_batch(1, 90, b"batch", b"body")
    store.append(1, 91, b"new 91")
    flush(store)
    store, _, replayed = open_store(disk.crash())
    assert not store.damages
    kinds = [kind for kind, _, _, _ in replayed]
    assert kinds[-4:] == [IMAGE, IMAGE, BATCH, RECORD]
    assert heads(replayed, 1) == [b"new 91"]


@pytest.mark.parametrize("seed", range(40))
def test_any_crash_leaves_a_prefix_of_what_was_done(seed: int) -> None:
    """A model of one partition: its log as a list, cut and replaced as the store is told to."""
    dice = random.Random(seed)
    disk = SimulatedDisk(random.Random(seed))
    store, log, _ = open_store(disk)
    states: list[list[bytes]] = [[]]
    flushed = base = 0
    disk.power_off_after = dice.randrange(20, 200)
    try:
        for step in range(200):
            now = list(states[-1])
            choice = dice.random()
            if choice < 0.7 or not now:
                now.append(b"%d at %d" % (len(now) + 1, step))
                store.append(1, len(now), now[-1])
            elif choice < 0.85:
                last = dice.randrange(base, len(now) + 1)  # never before the last whole state
                del now[last:]
                log.cut(1, last)
            else:
                now = [b"image %d" % step] * dice.randrange(1, 9)
                base = len(now)
                for part in range(3):
                    log.append_image(1, len(now), part, 3, b"%d" % part)
            states.append(now)
            if dice.random() < 0.3:
                flush(store)
                flushed = len(states) - 1
    except PowerLoss:
        pass
    store, log, replayed = open_store(disk.crash())
    assert not store.damages
    rebuilt: list[bytes] = []
    for kind, _, index, head in replayed:
        if kind == IMAGE:
            rebuilt = [b"image"] * index
        else:
            assert index == len(rebuilt) + 1
            rebuilt.append(head)
    found = [
        place
        for place, state in enumerate(states)
        if len(state) == len(rebuilt)
        and all(
            have == want or (have == b"image" and want.startswith(b"image"))
            for have, want in zip(rebuilt, state, strict=True)
        )
    ]
    assert any(place >= flushed for place in found), (rebuilt, states[flushed:])
    store.append(1, len(rebuilt) + 1, b"goes on")


def test_a_partition_that_is_back_goes_on_though_the_snapshot_says_that_it_is_gone() -> None:
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    store.append(2, 1, b"of a partition that stays")
    for index in range(1, 4):
        store.append(1, index, b"old %d" % index)
    flush(store)
    checkpoint = store.begin_checkpoint()
    store.drop_partition(1)
    checkpoint.add(2, 1, b"state of the other")
    flush(store)
    job = checkpoint.snapshot_job()
    assert job is not None
    job.run()
    store.finish_checkpoint(checkpoint)
    log.append_image(1, 5, 0, 1, b"the whole state")
    flush(store)
    store, _, replayed = open_store(disk.crash())
    assert (IMAGE, 1, 5) in [entry[:3] for entry in replayed]
    store.append(1, 6, b"new 6")  # record 6 follows record 5
    flush(store)
    _, _, replayed = open_store(disk.crash())
    assert heads(replayed, 1) == [b"new 6"]


def test_a_snapshot_does_not_go_by_a_state_that_a_crash_may_still_take() -> None:
    """A partition is made, removed and comes back during a checkpoint. Without its state its former life must not come back."""
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    store.append(2, 1, b"of a partition that stays")
    flush(store)
    checkpoint = store.begin_checkpoint()
    flush(store)
    for index in range(1, 4):
        store.append(1, index, b"old %d" % index)
    store.drop_partition(1)
    checkpoint.add(2, 1, b"state of the other")
    flush(store)
    log.append_image(1, 5, 0, 1, b"the whole state")
    job = checkpoint.snapshot_job()
    if job is not None:
        job.run()
        store.job_done(job)
        store.finish_checkpoint(checkpoint)
        _, _, replayed = open_store(disk.crash())
        raise AssertionError(f"with the snapshot a crash brings back {heads(replayed, 1)}")
    flush(store)
    assert checkpoint.snapshot_job() is not None


def _snapshot_between_parts(store: Store, log: ReplicaLog, *, rotate: bool) -> None:
    """A state in three parts with a snapshot of the old one behind the first, as versions before could write it."""
    for index in range(1, 4):
        store.append(1, index, b"old %d" % index)
    flush(store)
    if not rotate:
        checkpoint = store.begin_checkpoint()
    log.append_image(1, 9, 0, 3, b"first")
    flush(store)
    if rotate:  # the first part is in a file that is vacated
        checkpoint = store.begin_checkpoint()
    checkpoint.add(1, 3, b"old state")
    log.append_image(1, 9, 1, 3, b"second")
    log.append_image(1, 9, 2, 3, b"third")
    flush(store)
    job = checkpoint.snapshot_job()
    assert job is not None
    job.run()
    store.job_done(job)
    store.finish_checkpoint(checkpoint)
    flush(store)


def test_parts_of_a_state_from_before_a_snapshot_are_read_with_those_behind_it() -> None:
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    _snapshot_between_parts(store, log, rotate=False)
    store, _, replayed = open_store(disk.crash())
    assert [row[:3] for row in replayed] == [(IMAGE, 1, 9)] * 3
    assert store.recovery.indexes[1] == 9
    assert not store.damages


def test_a_state_whose_first_part_was_vacated_is_damage() -> None:
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    _snapshot_between_parts(store, log, rotate=True)
    store, _, _ = open_store(disk.crash())
    assert [damage.partition for damage in store.damages] == [1]


def test_a_record_of_another_number_is_not_sent_on() -> None:
    """A disk that wrote a whole entry to the wrong place."""
    disk = SimulatedDisk(random.Random(1))
    store, log, _ = open_store(disk)
    positions = [store.append(1, index, b"record %d" % index) for index in range(1, 6)]
    flush(store)
    size = positions[1] - positions[0]
    name = next(name for name in disk.files() if b"record 1" in disk.contents(name))
    wrong = disk.contents(name)[positions[3] & 0xFFFFFFFF :][:size]
    disk.open(name).write_at(positions[1] & 0xFFFFFFFF, [wrong])
    job = log.read_job(1, 1, 5)
    assert job is not None
    job.run()
    assert [entry.index for entry in job.entries] == [1]
    assert job.damaged is not None
    assert "record 4 is there instead of the one wanted" in str(job.damaged)

"""Damage that a run of the simulation meets by chance only: files that are gone, and entries that are not what they should be."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from crc32c import crc32c

from penstock.model.records import Deleted, encode_record
from penstock.simulation.disk import SimulatedDisk
from penstock.storage import snapshot
from penstock.storage.copy import segment_name
from penstock.storage.disk import DiskFailedError, DiskFullError
from penstock.storage.entry import OFFSET_MASK
from penstock.storage.entry_read import EntryReadJob, ReadEntry, RebuildJob
from penstock.storage.errors import DamagedEntryError, JournalFailedError, StorageDamagedError
from penstock.storage.journal_file import journal_name, prepare
from penstock.storage.segments import RemoveJob
from penstock.storage.store import Store
from tests.storage.damaging import damages, fill
from tests.storage.keeper import IDENTITY, OPTIONS, Keeper


def _with_segments() -> tuple[SimulatedDisk, Keeper]:
    """Everything of three partitions lies in segments."""
    disk, keeper = fill()
    keeper.full_checkpoint()
    keeper.work()
    return disk, keeper


def _segment(keeper: Keeper, partition: int) -> str:
    number = min(position >> 32 for position in keeper.partitions[partition].positions.values())
    return segment_name(partition, number)


# -- files that are gone -------------------------------------------------------------------------------------


def test_a_copy_goes_to_a_new_segment_where_the_last_one_is_gone() -> None:
    disk, keeper = _with_segments()
    disk.lose(_segment(keeper, 1))
    kept = keeper.put(1, b"something new")
    keeper.flush()
    keeper.full_checkpoint()
    sent, batch = keeper.store.read(1, keeper.partitions[1].positions[kept], block=True)
    assert (sent.first, bytes(batch.body(0))) == (kept, b"something new")


def test_a_segment_that_is_gone_already_is_removed() -> None:
    disk, keeper = _with_segments()
    name = _segment(keeper, 1)
    disk.lose(name)
    job = RemoveJob(disk, [name], [])
    job.run()
    assert job.error is None


def test_batches_of_a_file_that_is_gone_are_left_to_the_read_that_says_so() -> None:
    disk, keeper = _with_segments()
    keeper = Keeper(disk.crash())
    positions = list(keeper.partitions[1].positions.values())
    keeper.store._files.retire(positions[0] >> 32)
    job = keeper.store.read_job(positions)
    keeper.run(job)
    assert job.error is None
    with pytest.raises(DamagedEntryError):
        keeper.store.read(1, positions[0], block=True)


# -- entries that are read one by one ------------------------------------------------------------------------


def _read_entries(
    keeper: Keeper, partition: int, positions: Sequence[int], first: int | None
) -> EntryReadJob:
    job = EntryReadJob(keeper.store._files, IDENTITY.seed, partition, positions, 2**20, first)
    job.run()
    keeper.store.job_done(job)
    assert job.error is None
    return job


def test_an_entry_of_another_partition_is_not_read_as_one_of_this() -> None:
    _, keeper = fill()
    position = keeper.partitions[2].positions[1]
    job = _read_entries(keeper, 1, [position], None)
    assert job.damaged is not None
    assert job.damaged.reason == "another entry is there"


def test_entries_of_a_file_that_is_gone_are_damage() -> None:
    _, keeper = fill()
    position = keeper.partitions[1].positions[1]
    keeper.store._files.retire(position >> 32)
    job = _read_entries(keeper, 1, [position], None)
    assert job.damaged is not None
    assert job.damaged.reason == "the file is missing"


def test_an_entry_that_cannot_be_read_is_damage() -> None:
    disk, keeper = fill()
    position = keeper.partitions[1].positions[2]
    name = journal_name(position >> 32)
    disk.inode(name).unreadable.update(range(len(disk.contents(name)) // 512))
    job = _read_entries(keeper, 1, [position], None)
    assert job.damaged is not None
    assert job.damaged.reason == "it cannot be read"


def _rebuild(
    keeper: Keeper,
    disk: SimulatedDisk,
    base: int,
    positions: Sequence[int],
    build: Callable[[bytes | None, Sequence[ReadEntry]], str],
    number: int = 1,
    partition: int = 1,
) -> str | None:
    job = RebuildJob(disk, number, base, keeper.store._files, IDENTITY.seed, partition, positions, build)
    job.run()
    keeper.store.job_done(job)
    assert job.error is None
    return job.built


def _count(state: bytes | None, entries: Sequence[ReadEntry]) -> str:
    return f"{'a' if state is not None else 'no'} state and {len(entries)} records"


def _refuse(state: bytes | None, entries: Sequence[ReadEntry]) -> str:
    raise ValueError("it does not fit")


def test_a_state_is_rebuilt_only_from_what_is_all_there() -> None:
    disk, keeper = fill()
    positions = list(keeper.partitions[1].positions.values())
    assert _rebuild(keeper, disk, 0, positions, _count) == "no state and 4 records"
    assert _rebuild(keeper, disk, 0, positions[1:], _count) is None  # it does not begin with the first record
    assert _rebuild(keeper, disk, 0, positions, _refuse) is None
    assert _rebuild(keeper, disk, 3, positions[3:], _count) is None  # the snapshot has nothing of it
    assert _rebuild(keeper, disk, 3, positions[3:], _count, number=7) is None  # there is no such snapshot


def test_a_state_is_rebuilt_from_the_snapshot_that_stands_before_its_records() -> None:
    disk, keeper = _with_segments()
    number = snapshot.list_snapshots(disk)[-1]
    assert _rebuild(keeper, disk, 4, [], _count, number) == "a state and 0 records"
    assert _rebuild(keeper, disk, 3, [], _count, number) is None  # it stands elsewhere
    assert _rebuild(keeper, disk, 4, [], _count, number, partition=9) is None  # it is not in it


# -- entries that are whole and make no sense ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"\xc1", "make no sense"),
        (encode_record(Deleted(0, [(1, 1)], 0)), "the entry holds no batch"),
    ],
)
def test_an_entry_that_holds_no_batch_is_damage_however_it_is_read(head: bytes, reason: str) -> None:
    keeper = Keeper(SimulatedDisk(random.Random(1)))
    keeper.work()
    position = keeper.store.append(1, 1, head, (b"payload",))
    keeper.flush()
    with pytest.raises(DamagedEntryError, match=reason):
        keeper.store.read(1, position, block=True)
    job = keeper.store.range_read_job(1, [(position, 7)])
    keeper.run(job)
    assert job.damaged is not None
    assert reason in job.damaged.reason


def test_a_place_behind_the_end_of_a_file_is_damage() -> None:
    _, keeper = fill()
    position = keeper.partitions[1].positions[1] | OFFSET_MASK >> 4
    reading = keeper.store.read_job([position])
    keeper.run(reading)
    assert reading.error is None
    assert keeper.store.cached(1, position) is None
    job = keeper.store.range_read_job(1, [(position, 7)])
    keeper.run(job)
    assert job.damaged is not None
    assert job.damaged.reason == "the file ends before the entry"
    nothing = keeper.store.range_read_job(1, [])
    keeper.run(nothing)
    assert (nothing.entries, nothing.damaged) == ([], None)


def test_a_copy_does_not_take_an_entry_of_another_partition() -> None:
    _, keeper = fill()
    job = keeper.store.copy_job(1, [keeper.partitions[2].positions[1]])
    keeper.run(job)
    assert [damage.reason for damage in job.damages] == ["another entry is there"]
    assert not job.moved


def test_a_table_of_a_snapshot_that_is_whole_and_makes_no_sense_is_damage() -> None:
    """As another program would have written it."""
    disk, _ = _with_segments()
    name = snapshot.snapshot_name(snapshot.list_snapshots(disk)[-1])
    table = b"\xc1"
    header = bytearray(snapshot._HEADER.pack(snapshot.MAGIC, 1, len(table), crc32c(table), 0))
    header[-4:] = crc32c(bytes(header[:-4])).to_bytes(4, "little")
    inode = disk.inode(name)
    inode.damage(0, bytes(header) + table)
    inode.damage(len(inode.content) - len(header) - 1, table + bytes(header))
    with pytest.raises(StorageDamagedError, match="no snapshot can be read"):
        Store.open(disk.reopen(), OPTIONS, IDENTITY)


# -- the journal ---------------------------------------------------------------------------------------------


def test_a_journal_that_failed_takes_nothing_and_goes_on_to_no_other_file() -> None:
    disk, keeper = fill()
    keeper.put(1, bytes(7_500))
    keeper.flush()
    disk.fault = lambda operation, name: DiskFailedError("simulated") if operation == "sync" else None
    keeper.put(1, b"not written")
    flush = keeper.store.take_flush()
    assert flush is not None
    flush.run()
    with pytest.raises(JournalFailedError):
        keeper.store.flushed(flush)
    for size in (10, 7_500):  # the second one does not fit into the file
        with pytest.raises(JournalFailedError):
            keeper.put(1, bytes(size))


def test_a_clean_stop_that_cannot_be_synced_is_no_clean_stop() -> None:
    disk, keeper = fill()
    keeper.put(1, b"the last one")
    keeper.flush()
    disk.fault = lambda operation, name: DiskFailedError("simulated") if operation == "sync" else None
    with pytest.raises(JournalFailedError, match="cannot be synced"):
        keeper.store.close()
    disk.fault = None
    again = Keeper(disk.crash())
    assert not damages(again)


def test_a_journal_file_without_room_leaves_nothing_behind() -> None:
    disk, _ = fill()
    before = disk.files()
    disk.fault = lambda operation, name: DiskFullError("simulated") if operation == "write" else None
    with pytest.raises(DiskFullError):
        prepare(disk, 77, None, 2**16, 0)
    assert disk.files() == before


def test_a_copy_that_finds_no_room_for_its_first_file_leaves_nothing_behind() -> None:
    disk, keeper = fill()
    before = disk.files()
    disk.fault = lambda operation, name: DiskFullError("simulated") if operation == "create" else None
    job = keeper.store.copy_job(1, list(keeper.partitions[1].positions.values()))
    job.run()
    keeper.store.job_done(job)
    disk.fault = None
    assert isinstance(job.error, DiskFullError)
    assert disk.files() == before
    assert len(keeper.bodies(1)) == 4


def test_a_new_directory_without_room_is_not_made() -> None:
    disk = SimulatedDisk(random.Random(1))
    disk.fault = lambda operation, name: DiskFullError("simulated") if operation == "write" else None
    with pytest.raises(DiskFullError):
        Store.open(disk, OPTIONS, IDENTITY)
    disk.fault = None
    assert not Keeper(disk.crash()).partitions


def test_an_old_checkpoint_does_not_end_the_one_that_is_under_way() -> None:
    _, keeper = fill()
    old = keeper.store.begin_checkpoint()
    keeper.store.abandon_checkpoint(old)
    present = keeper.store.begin_checkpoint()
    keeper.store.abandon_checkpoint(old)
    assert keeper.store._checkpointer._under_way is present


def test_the_last_journal_file_missing_is_noticed() -> None:
    """The file before it ends with the number of the one that follows."""
    disk, keeper = fill()
    first = keeper.store.appended_position >> 32
    while keeper.store.appended_position >> 32 == first:
        keeper.put(0, b"filling up " * 40)
        keeper.flush()
        keeper.work()
    for number in range(first + 1, first + 10):
        disk.lose(journal_name(number))
    found = damages(Keeper(disk.crash()))
    assert set(found) == {0, 1, 2}
    assert "the journal file is missing" in found[0].reason


def test_bytes_that_change_while_a_node_starts_stop_it() -> None:
    """The disk gives other bytes when the records are replayed than when they were looked through."""
    disk, _ = fill()
    disk = disk.crash()
    store = Store.open(disk, OPTIONS, IDENTITY)
    entries = store.recovery.entries()
    name = journal_name(min(store._journal.live))
    disk.inode(name).damage(0, bytes(len(disk.contents(name))))
    with pytest.raises(StorageDamagedError, match="other bytes than a moment ago"):
        list(entries)


def test_a_state_of_a_snapshot_that_cannot_be_read_costs_its_partition_alone() -> None:
    disk, _ = _with_segments()
    disk = disk.crash()
    reads = 0

    def fails(operation: str, name: str) -> Exception | None:
        nonlocal reads
        reads += operation == "read" and name.startswith(snapshot.FOLDER)
        return DiskFailedError("simulated") if reads == 4 and operation == "read" else None

    disk.fault = fails
    newest = snapshot.load_newest(disk)
    assert newest is not None
    assert [damage.partition for damage in newest.unreadable] == [1]

"""The journal: appending, flushing, going on to the next file, using files again."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest

from penstock.simulation.disk import SimulatedDisk
from penstock.storage.disk import DiskFailedError
from penstock.storage.entry import END, HEADER_BYTES, decode_header, decode_table
from penstock.storage.errors import JournalBusyError, JournalFailedError, StorageFailedError
from penstock.storage.store import Store
from tests.storage.keeper import IDENTITY, OPTIONS, Keeper


def make() -> tuple[SimulatedDisk, Keeper]:
    disk = SimulatedDisk(random.Random(1))
    return disk, Keeper(disk)


def fail(*operations: str) -> Exception:
    return DiskFailedError("simulated: " + ", ".join(operations))


def test_append_says_where_and_flush_says_how_far() -> None:
    _, keeper = make()
    store = keeper.store
    start = store.appended_position
    first = store.append(1, 1, b"head", (b"pay", bytearray(b"load"), memoryview(b"!!")))
    second = store.append(1, 2, b"head")
    assert start == first < second < store.appended_position
    assert first % 8 == second % 8 == 0
    assert store.committed_position == start
    assert store.unflushed_bytes == store.appended_position - start
    flush = store.take_flush()
    assert flush is not None
    flush.run()
    assert store.flushed(flush) == store.committed_position == store.appended_position
    assert store.unflushed_bytes == 0
    assert store.take_flush() is None


def test_one_flush_at_a_time_and_the_next_takes_the_rest() -> None:
    _, keeper = make()
    store = keeper.store
    store.append(1, 1, b"a")
    flush = store.take_flush()
    assert flush is not None
    after_first = store.appended_position
    store.append(1, 2, b"b")
    assert store.take_flush() is None
    flush.run()
    assert store.flushed(flush) == after_first < store.appended_position
    following = store.take_flush()
    assert following is not None
    with pytest.raises(ValueError, match="not the flush"):
        store.flushed(flush)
    following.run()
    assert store.flushed(following) == store.appended_position


def test_wide_views_are_counted_in_bytes() -> None:
    disk, keeper = make()
    wide = memoryview(bytes(range(64))).cast("Q")
    keeper.store.append(1, 1, b"head", (wide,))
    keeper.store.append(1, 2, b"tail")
    keeper.flush()
    entries = replayed(disk)
    assert entries == [(1, b"head", bytes(range(64))), (2, b"tail", b"")]


def replayed(disk: SimulatedDisk) -> list[tuple[int, bytes, bytes]]:
    store = Store.open(disk.crash(), OPTIONS, IDENTITY)
    return [(entry.index, entry.head, bytes(entry.payload)) for entry in store.recovery.entries()]


def test_an_index_out_of_turn_is_refused_and_changes_nothing() -> None:
    _, keeper = make()
    keeper.put(1, b"one")
    position = keeper.store.appended_position
    for index in (0, 1, 3):
        with pytest.raises(ValueError, match="follows 1"):
            keeper.store.append(1, index, b"head")
    assert keeper.store.appended_position == position


def test_files_follow_each_other_and_name_each_other() -> None:
    disk, keeper = make()
    numbers = []
    for number in range(40):
        keeper.put(number % 2, b"x" * 1_500)
        numbers.append(keeper.store.appended_position >> 32)
        keeper.flush()
        keeper.work()
    files = sorted(set(numbers))
    assert len(files) >= 4
    for number, following in itertools.pairwise(files):
        data = disk.contents(f"journal/{number:010}.journal")
        offset, kinds = 0, []
        while (header := decode_header(data, offset, IDENTITY.seed)) is not None:
            kinds.append(header.kind)
            last, at = header, offset
            offset += header.size
        assert kinds.count(END) == 1
        assert kinds[-1] == END
        assert last.index == following
        rows = decode_table(data[at + HEADER_BYTES : at + HEADER_BYTES + last.payload_size])
        assert [partition for partition, _ in rows] == [0, 1]


def test_vacated_files_are_used_again_and_those_too_many_removed() -> None:
    disk, keeper = make()
    most = 0
    for _ in range(6):
        for number in range(60):
            index = keeper.put(number % 2, b"y" * 1_200)
            keeper.delete(number % 2, index)
            keeper.flush()
            keeper.work()
        keeper.full_checkpoint()
        keeper.work()
        most = max(most, len(disk.list("journal")))
    statistics = keeper.store.statistics()
    assert statistics.journal_files == len(disk.list("journal"))
    assert statistics.journal_bytes == sum(size for name, size in disk.files().items() if "journal/" in name)
    assert len(disk.list("journal")) <= 1 + OPTIONS.journal_files_ahead + OPTIONS.spare_files_max
    assert most <= 12
    assert keeper.store.appended_position >> 32 > 20  # many more numbers than files


def test_sends_wait_for_the_next_file_and_other_records_use_the_reserve() -> None:
    _, keeper = make()
    jobs = keeper.store.take_jobs()
    while not keeper.store.congested:
        keeper.put(1, b"z" * 1_000, reserve=False)
    with pytest.raises(JournalBusyError):
        put_many(keeper, 20)
    assert keeper.store.congested
    position = keeper.store.appended_position
    keeper.flush()
    for job in jobs:
        keeper.run(job)
    keeper.work()
    keeper.put(1, b"z" * 1_000, reserve=False)
    assert keeper.store.appended_position >> 32 > position >> 32
    assert not keeper.store.congested


def put_many(keeper: Keeper, count: int) -> None:
    for _ in range(count):
        keeper.put(1, b"z" * 1_000, reserve=False)


@pytest.mark.parametrize("operation", ["write", "sync"])
def test_a_failed_flush_stops_everything(operation: str) -> None:
    disk, keeper = make()
    keeper.put(1, b"kept")
    keeper.flush()
    keeper.put(1, b"lost")
    flush = keeper.store.take_flush()
    assert flush is not None
    disk.fault = lambda what, name: fail(what) if what == operation and ".journal" in name else None
    flush.run()
    disk.fault = None
    with pytest.raises(JournalFailedError, match="simulated"):
        keeper.store.flushed(flush)
    with pytest.raises(JournalFailedError):
        keeper.store.append(1, 3, b"head")
    with pytest.raises(JournalFailedError):
        keeper.store.take_flush()
    assert Keeper(disk.crash()).bodies(1)[1] == b"kept"


def test_a_job_that_meets_a_failed_disk_stops_the_node() -> None:
    disk, keeper = make()
    disk.fault = lambda what, name: fail(what) if what == "sync_directory" else None
    job = keeper.store.take_jobs()[0]
    job.run()
    with pytest.raises(StorageFailedError, match="simulated"):
        keeper.store.job_done(job)


def test_a_clean_stop_is_marked_and_nothing_is_torn() -> None:
    disk, keeper = make()
    keeper.put(1, b"unflushed at the end")
    keeper.store.close()
    with pytest.raises(JournalFailedError, match="closed"):
        keeper.store.append(1, 2, b"head")
    following = Keeper(disk.crash())
    assert following.bodies(1) == {1: b"unflushed at the end"}
    assert following.store.recovery.torn is None


def test_restarts_do_not_pile_up_files() -> None:
    disk, keeper = make()
    for _ in range(30):
        keeper.work()
        keeper.store.close()
        disk = disk.reopen()
        keeper = Keeper(disk)
    assert len(disk.list("journal")) <= 8


def test_restarts_with_a_little_work_make_a_checkpoint_due() -> None:
    disk, keeper = make()
    for number in range(30):
        keeper.put(1, b"%d" % number)
        keeper.flush()
        keeper.work()
        if keeper.store.checkpoint_due(0):
            break
        keeper.store.close()
        disk = disk.reopen()
        keeper = Keeper(disk)
    assert keeper.store.checkpoint_due(0)
    keeper.full_checkpoint()
    assert not keeper.store.checkpoint_due(0)
    keeper.work()
    assert len(disk.list("journal")) <= 1 + OPTIONS.journal_files_ahead + OPTIONS.spare_files_max


def test_another_size_of_journal_file_after_a_restart() -> None:
    disk, keeper = make()
    keeper.put(1, b"before")
    keeper.flush()
    keeper.work()
    keeper.store.close()
    disk = disk.reopen()
    larger = replace(OPTIONS, journal_file_bytes=32 * 1024)
    keeper = Keeper(disk, larger)
    keeper.put(1, b"after")
    keeper.flush()
    keeper.work()
    keeper.full_checkpoint()
    keeper.work()
    assert keeper.bodies(1) == {1: b"before", 2: b"after"}
    assert {size for name, size in disk.files().items() if "journal/" in name} == {32 * 1024}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"journal_file_bytes": 4096}, "too small"),
        ({"journal_file_bytes": 16 * 1024 + 8}, "multiple of 4096"),
        ({"journal_files_ahead": 1}, "at least 2"),
        ({"segment_bytes": 2**31}, "smaller than"),
        ({"durability": "never"}, "'sync' or 'os'"),
        ({"cache_bytes": -1}, "negative"),
        ({"retry_ms": 0}, "at least 1"),
    ],
)
def test_options_that_cannot_work_say_why(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Store.open(SimulatedDisk(random.Random(1)), replace(OPTIONS, **change), IDENTITY)  # type: ignore[arg-type]  # as the caller names them

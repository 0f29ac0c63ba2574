"""The real disk: the same store on the file system of this machine."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from penstock.runtime.disk.disk import BUFFERS_PER_CALL, SPARE_FILES, RealDisk
from penstock.storage.checkpoint import Checkpoint
from penstock.storage.disk import DirectoryBusyError, DiskFailedError, DiskFullError, WouldBlockError
from penstock.storage.flush import Flush
from penstock.storage.job import Job
from tests.storage.keeper import OPTIONS, Keeper

OWNER = """
import sys
from penstock.runtime.disk.disk import RealDisk
disk = RealDisk(sys.argv[1])
disk.lock()
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_store_lives_through_checkpoints_and_restarts(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path / "data")
    keeper = Keeper(disk)
    for life in range(3):
        for number in range(60):
            keeper.put(number % 3, b"%d %d " % (life, number) * 50)
            if number % 5 == 0:
                keeper.flush()
                keeper.work()
        keeper.flush()
        keeper.work()
        keeper.full_checkpoint(compact=life == 1)
        keeper.work()
        for partition in range(3):
            keeper.delete(partition, next(iter(keeper.partitions[partition].positions)))
        keeper.put(1, b"after the checkpoint")
        history, committed = keeper.history, len(keeper.history)
        keeper.store.close()
        disk.close()
        disk = RealDisk(tmp_path / "data")
        keeper.boot(disk)
        keeper.check(history, committed)
    keeper.work()
    names = sorted(os.listdir(tmp_path / "data"))
    assert names == ["journal", "lock", "node.json", "segments", "snapshots"]
    assert (tmp_path / "data" / "node.json").stat().st_mode & 0o077 == 0


def test_a_second_process_is_refused_and_a_dead_ones_lock_is_free(tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "locked\n"
        with pytest.raises(DirectoryBusyError, match=f"in use by another process .process {owner.pid}"):
            Keeper(RealDisk(tmp_path))
    finally:
        owner.kill()
        owner.communicate()
    Keeper(RealDisk(tmp_path)).put(1, b"mine now")


def test_many_buffers_and_short_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = RealDisk(tmp_path)
    file = disk.open("file", create=True)
    buffers = [b"%05d" % number for number in range(3 * BUFFERS_PER_CALL + 7)]
    file.write_at(3, buffers)
    assert file.read_at(3, 10**6) == b"".join(buffers)

    def short(descriptor: int, part: list[bytes], offset: int) -> int:
        return os.pwrite(descriptor, b"".join(part)[:777], offset)

    monkeypatch.setattr(os, "pwritev", short)
    file.write_at(11, [bytearray(b"x" * 600), memoryview(b"y" * 600)])
    assert file.read_at(11, 1200) == b"x" * 600 + b"y" * 600
    file.close()
    file.close()


def test_reads_at_the_end_and_allocation(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    file = disk.open("file", create=True)
    file.write_at(0, [b"old bytes"])
    file.allocate(3 * 2**20 + 4096)
    assert file.size() == 3 * 2**20 + 4096
    assert file.read_at(file.size() - 5, 100) == bytes(5)
    assert file.read_at(file.size() + 5, 100, block=False) == b""
    assert not any(file.read_at(0, file.size(), block=False))
    file.truncate(10)
    assert file.size() == 10


@pytest.mark.parametrize(
    ("code", "expected"),
    [(errno.ENOSPC, DiskFullError), (errno.EDQUOT, DiskFullError), (errno.EIO, DiskFailedError)],
)
def test_errors_are_told_in_the_words_of_storage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, expected: type[Exception]
) -> None:
    file = RealDisk(tmp_path).open("file", create=True)

    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    for name in ("pwritev", "fdatasync", "posix_fallocate", "ftruncate"):
        monkeypatch.setattr(os, name, refuse)
    with pytest.raises(expected, match="writing file"):
        file.write_at(0, [b"x"])
    with pytest.raises(expected, match="syncing file"):
        file.sync()
    with pytest.raises(expected, match="allocating 1 bytes for file"):
        file.allocate(1)
    with pytest.raises(expected, match="truncating file"):
        file.truncate(1)


def test_a_read_that_would_wait_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = RealDisk(tmp_path).open("file", create=True)
    file.write_at(0, [b"bytes"])

    def cold(*_: object) -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "preadv", cold)
    with pytest.raises(WouldBlockError):
        file.read_at(0, 5, block=False)
    assert file.read_at(0, 5) == b"bytes"
    monkeypatch.setattr(os, "preadv", lambda *_: 2)  # the rest is not in memory
    with pytest.raises(WouldBlockError):
        file.read_at(0, 5, block=False)

    def unsupported(*_: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "preadv", unsupported)
    assert file.read_at(0, 5, block=False) == b"bytes"


def test_folders_names_and_removal(tmp_path: Path) -> None:
    disk = RealDisk(tmp_path)
    assert disk.list("none") == []
    disk.make_folder("a/b")
    disk.make_folder("a/b")
    disk.open("a/b/file", create=True).close()
    with pytest.raises(FileNotFoundError):
        disk.open("a/b/other")
    with pytest.raises(DiskFailedError):
        disk.remove("a/b")
    disk.rename("a/b/file", "a/b/renamed")
    disk.sync_directory("a/b")
    assert disk.list("a/b") == ["renamed"]
    disk.remove("a/b/renamed")
    disk.remove("a/b")
    with pytest.raises(FileNotFoundError):
        disk.remove("a/b")
    assert disk.list("a") == []
    assert disk.free_bytes() > 0


def test_durability_os_writes_without_syncing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keeper = Keeper(RealDisk(tmp_path), replace(OPTIONS, durability="os"))
    keeper.work()
    syncs: list[int] = []
    monkeypatch.setattr(os, "fdatasync", syncs.append)
    keeper.put(1, b"body")
    keeper.flush()
    assert not syncs
    assert keeper.committed == 1


def test_flushes_and_jobs_in_threads_of_their_own(tmp_path: Path) -> None:
    """As the runtime does it: the owner appends and reads while two helpers write, copy, read and recycle."""
    disk = RealDisk(tmp_path)
    keeper = Keeper(disk)
    store = keeper.store
    with ThreadPoolExecutor(1) as flusher, ThreadPoolExecutor(1) as worker:
        flush: Future[Flush] | None = None
        jobs: deque[Future[Job]] = deque()
        copies: dict[Job, dict[int, int]] = {}
        checkpoints = 0
        checkpoint: Checkpoint | None = None
        for number in range(4_000):
            partition = number % 3
            keeper.put(partition, b"%d " % number * 20)
            alive = keeper.partitions[partition].positions
            if number % 3 == 0 and len(alive) > 40:
                keeper.delete(partition, next(iter(alive)))
            if number % 50 == 0:
                keeper.bodies(partition)
            if flush is not None and (flush.done() or store.unflushed_bytes > 4_000):
                store.flushed(flush.result())
                flush = None
            if flush is None and (taken := store.take_flush()) is not None:
                flush = flusher.submit(ran, taken)
            while jobs and (jobs[0].done() or store.congested):
                job = jobs.popleft().result()
                store.job_done(job)
                assert job.error is None
                moved = getattr(job, "moved", {})
                for index, position in copies.pop(job, {}).items():
                    if index in keeper.partitions[job.partition].positions:  # type: ignore[attr-defined]  # this keeper has them
                        keeper.partitions[job.partition].positions[index] = moved[position]  # type: ignore[attr-defined]  # this keeper has them
                if checkpoint is not None and job is checkpoint.job:
                    store.finish_checkpoint(checkpoint)
                    checkpoint, checkpoints = None, checkpoints + 1
            if checkpoint is None and store.checkpoint_due(0):
                checkpoint = store.begin_checkpoint()
                for other, copy in keeper.partitions.items():
                    old = {i: p for i, p in copy.positions.items() if checkpoint.is_journal(p >> 32)}
                    copying = store.copy_job(other, list(old.values()))
                    copies[copying] = old
                    jobs.append(worker.submit(ran, copying))
            elif checkpoint is not None and not copies and checkpoint.job is None:
                if not checkpoint.is_added(0):
                    for other, copy in keeper.partitions.items():
                        checkpoint.add(other, copy.index, copy.dump())
                if (writing := checkpoint.snapshot_job()) is not None:
                    jobs.append(worker.submit(ran, writing))
            jobs.extend(worker.submit(ran, job) for job in store.take_jobs())
        if flush is not None:
            store.flushed(flush.result())
        for future in jobs:
            store.job_done(future.result())
    assert checkpoints > 0
    store.close()
    disk.close()
    following = Keeper(RealDisk(tmp_path))
    following.check(keeper.history, len(keeper.history))


Work = TypeVar("Work", bound=Job)


def ran(job: Work) -> Work:
    job.run()
    return job


@pytest.fixture
def no_more_files() -> Iterator[Callable[[], None]]:
    """Uses up all files that this process may open, when it is called."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []

    def use_up() -> None:
        while True:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                return

    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 1_024), hard))
    yield use_up
    for descriptor in taken:
        os.close(descriptor)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_that_use_up_all_files_leave_some_to_the_disk(
    tmp_path: Path, no_more_files: Callable[[], None]
) -> None:
    disk = RealDisk(tmp_path)
    disk.lock()
    no_more_files()
    files = [disk.open(f"file-{number}", create=True) for number in range(SPARE_FILES - 1)]
    disk.sync_directory("")
    assert "file-0" in disk.list("")
    last = disk.open("last", create=True)
    with pytest.raises(DiskFailedError, match="Too many open files"):
        disk.open("one-too-many", create=True)
    for file in (*files, last):
        file.close()
    disk.open("file-0").close()  # takes the others back
    no_more_files()
    again = [disk.open(f"again-{number}", create=True) for number in range(SPARE_FILES - 1)]
    for file in again:
        file.close()
    disk.close()

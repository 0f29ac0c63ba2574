"""The store in a SQLite file keeps the contract, and its promises to other processes and after a crash."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import sys
from pathlib import Path

import pytest

from penstock.metadata.store.interface import ABSENT, StoreUnavailableError, WatchLostError
from penstock.metadata.store.sqlite import SqliteStore, open_sqlite_store
from tests.metadata.clock import Clock
from tests.metadata.store_contract import StoreContract, increment
from tests.runtime.harness import async_test

ROOT = Path(__file__).parents[2]


class SqliteStores:
    def __init__(self, file: Path) -> None:
        self._clock = Clock()
        self._file = file

    async def open(self) -> SqliteStore:
        return await open_sqlite_store(self._file, self._clock)

    async def pass_time(self, seconds: float) -> None:
        self._clock.now += seconds

    async def close(self) -> None:
        pass


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def stores(self, tmp_path: Path) -> SqliteStores:
        return SqliteStores(tmp_path / "metadata.sqlite")


async def writer(file: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.metadata.sqlite_writer",
        str(file),
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )


@async_test
async def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "metadata.sqlite"
    store = await open_sqlite_store(file)
    version = await store.put("a", b"x")
    await store.close()
    again = await open_sqlite_store(file)
    assert await again.get("a") == ("a", b"x", version)
    assert await again.put("a", b"y") > version
    await again.close()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@async_test
async def test_two_processes_count_up_and_a_third_party_watches(tmp_path: Path) -> None:
    file = tmp_path / "metadata.sqlite"
    store = await open_sqlite_store(file)
    processes = [await writer(file, "count", "40") for _ in range(2)]
    watch = store.watch("counter", ABSENT)
    await increment(store, 20)
    values = [int((await anext(watch)).value or b"0") for _ in range(100)]
    assert values == list(range(1, 101))
    for process in processes:
        assert await process.wait() == 0
    await watch.aclose()
    await store.close()


@async_test
async def test_a_writer_that_is_killed_loses_nothing_it_was_told_is_there(tmp_path: Path) -> None:
    file = tmp_path / "metadata.sqlite"
    process = await writer(file, "forever", "1000000")
    assert process.stdout is not None
    told = -1
    while told < 30:
        told = int(await process.stdout.readline())
    process.kill()
    for line in (await process.stdout.read()).split(b"\n")[:-1]:
        told = int(line)
    await process.wait()
    store = await open_sqlite_store(file)
    listing = await store.list("key/")
    numbers = sorted(int(entry.value) for entry in listing.entries)
    assert numbers == list(range(len(numbers)))
    assert len(numbers) in (told + 1, told + 2)  # one may have been written and not told
    assert await store.put("after", b"") > listing.version
    await store.close()


@async_test
async def test_a_watch_too_far_behind_is_told_so(tmp_path: Path) -> None:
    store = await open_sqlite_store(tmp_path / "metadata.sqlite", kept=3)
    for _ in range(5):
        await store.put("a", b"")
    with pytest.raises(WatchLostError):
        await anext(store.watch("", ABSENT))
    assert (await anext(store.watch("", 2))).version == 3
    await store.close()


@async_test
async def test_files_that_are_none_of_ours_are_refused_with_a_reason(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreUnavailableError, match="is damaged"):
        await open_sqlite_store(damaged)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE cats (name TEXT)")
    connection.close()
    with pytest.raises(StoreUnavailableError, match="not a metadata store of Penstock"):
        await open_sqlite_store(foreign)
    newer = tmp_path / "newer.sqlite"
    await (await open_sqlite_store(newer)).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreUnavailableError, match="written by a newer Penstock"):
        await open_sqlite_store(newer)
    with pytest.raises(StoreUnavailableError, match="cannot use the metadata store"):
        await open_sqlite_store(tmp_path / "no" / "such" / "folder.sqlite")


@async_test
async def test_damage_in_the_middle_is_found_when_the_file_is_opened(tmp_path: Path) -> None:
    file = tmp_path / "metadata.sqlite"
    store = await open_sqlite_store(file)
    for number in range(50):
        await store.put(f"key/{number}", bytes(500))
    await store.close()
    content = bytearray(file.read_bytes())
    content[4096:-4096] = b"\xff" * (len(content) - 8192)
    file.write_bytes(content)
    with pytest.raises(StoreUnavailableError, match="is damaged"):
        await open_sqlite_store(file)

"""The mirror: the cache becomes and stays what the store is."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store.interface import Entry, Listing, StoreUnavailableError, VersionConflictError
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from penstock.metadata.store.sqlite import open_sqlite_store
from tests.runtime.harness import async_test, until


@async_test
async def test_it_loads_follows_and_writes_through(tmp_path: Path) -> None:
    store, other = [await open_sqlite_store(tmp_path / "metadata.sqlite") for _ in range(2)]
    await other.put("before", b"1")
    mirror = MetadataMirror(store)
    mirror.start()
    await mirror.ready.wait()
    cache = mirror.cache
    assert cache.get("before") is not None
    version = await mirror.put("own", b"x")
    assert cache.get("own") == ("own", b"x", version)
    await mirror.delete("own", version)
    assert cache.get("own") is None
    heard = asyncio.Event()
    cache.listen("other", lambda change: heard.set())
    await other.put("other", b"2")
    await heard.wait()
    assert cache.get("other") is not None
    await mirror.close()
    await store.close()
    await other.close()


@async_test
async def test_after_a_conflict_the_cache_shows_what_is_there() -> None:
    contents = MemoryContents()
    other = MemoryStore(contents)
    mirror = MetadataMirror(MemoryStore(contents))  # not started: it hears of nothing by itself
    version = await mirror.put("a", b"mine")
    theirs = await other.put("a", b"theirs")
    with pytest.raises(VersionConflictError):
        await mirror.put("a", b"mine again", version)
    assert mirror.cache.get("a") == ("a", b"theirs", theirs)
    await other.delete("a")
    with pytest.raises(VersionConflictError):
        await mirror.delete("a", theirs)
    assert mirror.cache.get("a") is None


class FailingStore(MemoryStore):
    """Does not answer lists for a while."""

    failures = 3

    async def list(self, prefix: str) -> Listing:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailableError("no route to the store")
        return await super().list(prefix)


@async_test
async def test_it_tries_again_and_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    mirror = MetadataMirror(FailingStore(), pause=pause)
    mirror.start()
    await mirror.ready.wait()
    assert pauses == [0.1, 0.2, 0.4]
    assert [record.message for record in caplog.records] == [
        "the metadata store does not answer; the cached metadata stays in use: no route to the store",
        "the metadata store is available again",
    ]
    await mirror.close()


@async_test
async def test_a_mirror_that_fell_behind_loads_anew() -> None:
    contents = MemoryContents(kept=3)
    other = MemoryStore(contents)
    gone = await other.put("gone", b"")
    mirror = MetadataMirror(MemoryStore(contents))
    mirror.start()
    await mirror.ready.wait()
    # Nothing here waits, so the watch does not get to read before its changes are forgotten.
    contents.delete("gone", gone)
    for number in range(10):
        contents.put(f"new/{number}", b"", None, None)
    await until(lambda: len(mirror.cache.list("new/")) == 10)
    assert mirror.cache.get("gone") is None
    await mirror.close()


class BrokenStore(MemoryStore):
    """Has a defect that shows once."""

    broken = True

    async def list(self, prefix: str) -> Listing:
        if self.broken:
            self.broken = False
            raise RuntimeError("a defect")
        return await super().list(prefix)


@async_test
async def test_a_defect_does_not_leave_the_cache_as_it_is_for_ever(caplog: pytest.LogCaptureFixture) -> None:
    async def pause(seconds: float) -> None:
        pass

    store = BrokenStore()
    await store.put("a", b"1")
    mirror = MetadataMirror(store, pause=pause)
    mirror.start()
    await mirror.ready.wait()
    assert mirror.cache.get("a") is not None
    assert "reloading it" in caplog.text
    await mirror.close()


class AwayStore(MemoryStore):
    """Has gone, but others remember what it had."""

    away = True

    async def list(self, prefix: str) -> Listing:
        self._check()
        return await super().list(prefix)

    async def get(self, key: str) -> Entry | None:
        self._check()
        return await super().get(key)

    async def list_known(self, prefix: str) -> Listing:
        return await super().list(prefix)

    def _check(self) -> None:
        if self.away:
            raise StoreUnavailableError("no route to the store")


@async_test
async def test_it_begins_with_what_others_remember_and_hears_what_came_after() -> None:
    contents = MemoryContents()
    other = MemoryStore(contents)
    await other.put("known", b"1")
    store = AwayStore(contents)
    tried = asyncio.Event()

    async def pause(seconds: float) -> None:
        await tried.wait()

    mirror = MetadataMirror(store, pause=pause)
    mirror.start()
    await mirror.ready.wait()
    assert mirror.cache.get("known") is not None
    await other.put("later", b"2")
    await other.delete("known")
    assert mirror.cache.get("known") is not None, "nobody can tell it"
    store.away = False
    tried.set()
    await until(lambda: mirror.cache.get("later") is not None)
    await until(lambda: mirror.cache.get("known") is None)
    await mirror.close()

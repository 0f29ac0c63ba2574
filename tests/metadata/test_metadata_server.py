"""Metadata servers: what their caches answer, what goes to the store, who is asked for what, and who is let in."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.metadata.organisation.server_entry import OrganisationName
from penstock.metadata.remote.connection import connect
from penstock.metadata.remote.failures import NotDoneError
from penstock.metadata.remote.store import RemoteStore, open_remote_store
from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    Entry,
    StoreRefusedError,
    StoreUnavailableError,
    VersionConflictError,
    WatchLostError,
)
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from penstock.wire.strangers import STRANGERS_AT_ONCE
from tests.metadata.metadata_servers import SECRET, Servers
from tests.metadata.store_contract import take
from tests.runtime.harness import async_test, until

ORGANISATIONS: list[OrganisationName] = ["replicated", "sharded-direct", "sharded-forwarding"]


class CountedStore(MemoryStore):
    """Counts reads, holds changes back from watches, and is away at will."""

    def __init__(self, contents: MemoryContents) -> None:
        super().__init__(contents)
        self.reads = 0
        self.away = False
        self.deaf = False

    async def get(self, key: str) -> Entry | None:
        if self.away:
            raise StoreUnavailableError("the store is away, try again")
        self.reads += 1
        return await super().get(key)

    async def watch(self, prefix: str, after: int):  # type: ignore[no-untyped-def]  # as the store that it stands before
        async for change in super().watch(prefix, after):
            while self.deaf:  # noqa: ASYNC110  # it is asked again until it is so
                await asyncio.sleep(0)
            yield change


class CountedServers:
    """Servers over one store in memory, and the stores of each."""

    def __init__(self, organisation: OrganisationName, copies: int) -> None:
        self.contents = MemoryContents()
        self.stores: list[CountedStore] = []
        self.servers = Servers(self._open, organisation, copies)

    async def _open(self) -> CountedStore:
        self.stores.append(CountedStore(self.contents))
        return self.stores[-1]

    @property
    def reads(self) -> int:
        return sum(store.reads for store in self.stores)

    def counted(self, name: str) -> int:
        return sum(getattr(server.service.counts, name) for server in self.servers.servers)


@asynccontextmanager
async def servers(
    organisation: OrganisationName = "replicated", count: int = 3, copies: int = 2, **settings: int
) -> AsyncIterator[CountedServers]:
    made = CountedServers(organisation, copies)
    try:
        await made.servers.start(count, lease_seconds=10_000, **settings)
        yield made
    finally:
        await made.servers.close()


@pytest.mark.parametrize("organisation", ORGANISATIONS)
@async_test
async def test_what_is_known_is_answered_without_the_store(organisation: OrganisationName) -> None:
    async with servers(organisation) as made:
        store = await made.servers.open()
        written = {f"queues/{number}": await store.put(f"queues/{number}", b"x") for number in range(50)}
        before = made.reads
        for key, version in written.items():
            assert await store.look_up(key) == (key, b"x", version)
        assert made.reads == before
        for key, version in written.items():
            assert await store.get(key) == (key, b"x", version)
        assert made.reads == before + 50


@pytest.mark.parametrize("organisation", ORGANISATIONS)
@async_test
async def test_what_was_written_through_one_is_found_through_every_other(
    organisation: OrganisationName,
) -> None:
    async with servers(organisation) as made:
        handles = [await made.servers.open_to(number) for number in range(3)]
        for store in made.stores:
            store.deaf = True  # no cache hears of it
        for number, writer in enumerate(handles * 4):
            version = await writer.put(f"new/{number}", b"x", ABSENT)
            for reader in handles:
                assert await reader.look_up(f"new/{number}") == (f"new/{number}", b"x", version)
                assert await reader.get(f"new/{number}") == (f"new/{number}", b"x", version)
        for store in made.stores:
            store.deaf = False


@async_test
async def test_a_stale_cache_never_wins_over_a_version() -> None:
    async with servers() as made:
        one, other = await made.servers.open_to(0), await made.servers.open_to(1)
        first = await one.put("a", b"1", ABSENT)
        assert await other.look_up("a") == ("a", b"1", first)
        made.stores[1].deaf = True
        second = await one.put("a", b"2", first)
        assert await other.look_up("a") == ("a", b"1", first), "nobody has told it yet"
        with pytest.raises(VersionConflictError):
            await other.put("a", b"3", first)
        assert await other.look_up("a") == ("a", b"2", second), "a conflict says that the cache is behind"
        await one.delete("a", second)
        with pytest.raises(VersionConflictError):
            await other.delete("a", second)
        assert await other.look_up("a") is None
        made.stores[1].deaf = False


@async_test
async def test_known_entries_are_read_while_the_store_is_away_and_writes_say_so() -> None:
    async with servers(count=2) as made:
        store = await made.servers.open()
        version = await store.put("a", b"1")
        await until(lambda: all(one.follower.cache.get("a") is not None for one in made.servers.servers))
        for one in made.stores:
            one.away = True
        assert await store.look_up("a") == ("a", b"1", version)
        assert [entry.key for entry in (await store.list_known("a")).entries] == ["a"]
        for refused in (store.look_up("b"), store.get("a")):
            with pytest.raises(StoreUnavailableError, match="try again"):
                await refused


@async_test
async def test_front_ends_with_the_map_go_straight_to_the_right_server() -> None:
    async with servers("sharded-direct", copies=1) as made:
        store = await made.servers.open()
        for number in range(60):
            await store.put(f"k/{number}", b"")
            await store.look_up(f"k/{number}")
        assert made.counted("strayed") == made.counted("forwarded") == 0
        caches = [one.follower.cache for one in made.servers.servers]
        kept = [sum(cache.get(f"k/{number}") is not None for number in range(60)) for cache in caches]
        assert min(kept) > 5
        assert sum(kept) == 60


@async_test
async def test_any_server_passes_on_what_is_anothers() -> None:
    async with servers("sharded-forwarding", copies=1) as made:
        store = await made.servers.open_to(0)
        for number in range(60):
            await store.put(f"k/{number}", b"")
        before = made.reads
        for number in range(60):
            assert await store.look_up(f"k/{number}") is not None
        assert made.reads == before, "whoever it was passed on to has it"
        served = made.servers.servers[0].service.counts
        assert 40 < served.forwarded < 120
        assert made.counted("strayed") == 0


@async_test
async def test_shards_of_a_server_that_leaves_are_answered_by_others() -> None:
    async with servers("sharded-forwarding", copies=1) as made:
        store = await made.servers.open_to(0)
        written = {f"k/{number}": await store.put(f"k/{number}", b"x") for number in range(40)}
        await made.servers.servers[2].close()
        for key, version in written.items():
            assert await store.look_up(key) == (key, b"x", version)
            assert await store.get(key) == (key, b"x", version)
        for key, version in written.items():
            assert await store.put(key, b"y", version) > version
        await until(lambda: len(made.servers.servers[0].follower.organisation.servers) == 2)
        assert sorted(store.servers.organisation.servers) == ["m0", "m1"]


@async_test
async def test_a_cache_keeps_to_its_room_and_what_it_lost_is_still_found() -> None:
    async with servers(count=1, cache_bytes=100_000) as made:
        store = await made.servers.open()
        value = bytes(1000)
        for number in range(300):
            await store.put(f"k/{number}", value)
        cache = made.servers.servers[0].follower.cache
        assert cache.bytes <= 100_000
        assert 50 < len(cache) < 100
        for number in range(300):
            assert await store.look_up(f"k/{number}") is not None
        assert len((await store.list_known("k/")).entries) == 300


@async_test
async def test_a_listing_of_many_megabytes_comes_whole() -> None:
    async with servers(count=1) as made:
        store = await made.servers.open()
        value = bytes(200_000)
        for number in range(30):
            made.contents.put(f"k/{number:02}", value, None, None)
        for listing in (await store.list("k/"), await store.list_known("k/")):
            assert [(entry.key, len(entry.value)) for entry in listing.entries] == [
                (f"k/{number:02}", 200_000) for number in range(30)
            ]


@async_test
async def test_a_watch_goes_on_at_another_server_without_a_gap_or_a_repetition() -> None:
    async with servers() as made:
        reader = await made.servers.open_to(1)
        writer = MemoryStore(made.contents)
        watch = reader.watch("k/", (await reader.list("")).version)
        told: list[Change] = []
        for number in range(90):
            await writer.put(f"k/{number}", b"")
            if number in (20, 50):
                told += await take(watch, number - 5 - len(told))
                await made.servers.servers[1 if number == 20 else 0].close()
        told += await take(watch, 90 - len(told))
        assert [change.key for change in told] == [f"k/{number}" for number in range(90)]
        await watch.aclose()


@async_test
async def test_a_watch_from_before_the_servers_time_is_told_by_the_store() -> None:
    made = CountedServers("replicated", 1)
    writer = MemoryStore(made.contents)
    for number in range(20):
        await writer.put(f"k/{number}", b"")
    try:
        await made.servers.start(1, lease_seconds=10_000)
        store = await made.servers.open()
        watch = store.watch("k/", 5)
        assert [change.version for change in await take(watch, 15)] == list(range(6, 21))
        last = await writer.put("k/new", b"")
        assert (await anext(watch)).version == last
        await watch.aclose()
        made.contents._changes.popleft()
        with pytest.raises(WatchLostError):
            await anext(store.watch("k/", ABSENT))
    finally:
        await made.servers.close()


@async_test
async def test_a_slow_watch_holds_up_nobody() -> None:
    async with servers(count=1, change_log_bytes=1 << 30) as made:
        store = await made.servers.open()
        version = (await store.list("")).version
        slow, quick = store.watch("k/", version), store.watch("k/", version)
        value = bytes(100_000)
        await store.put("k/first", value)
        assert (await anext(slow)).key == (await anext(quick)).key == "k/first"
        for number in range(200):
            await store.put(f"k/{number}", value)
            assert (await anext(quick)).key == f"k/{number}"
        assert [change.key for change in await take(slow, 200)] == [f"k/{number}" for number in range(200)]
        await slow.aclose()
        await quick.aclose()


# -- who is let in ---------------------------------------------------------------------------------------------


@async_test
async def test_strangers_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with servers(count=1) as made:
        # At once: the test would not wait for as long as this is tried otherwise.
        with pytest.raises(StoreRefusedError, match="cluster's secret"):
            await open_remote_store(made.servers.url(options="timeout=600"), b"not the secret of this one")
        assert "does not know the cluster's secret" in caplog.text
        host, port = made.servers.addresses[0].split(":")
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 64, b"\xff" * 64):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(said)
            await reader.read()  # the challenge, and then the end
            writer.close()
        assert await (await made.servers.open()).get("a") is None


@async_test
async def test_strangers_who_say_nothing_keep_nobody_out() -> None:
    async with servers(count=1) as made:
        host, port = made.servers.addresses[0].split(":")
        silent = [await asyncio.open_connection(host, int(port)) for _ in range(STRANGERS_AT_ONCE)]
        held = await connect(host, int(port), SECRET, "test")
        reader, _ = silent[0]
        with contextlib.suppress(ConnectionResetError):
            await reader.read()  # the challenge, and then the end: it has waited longest
        held.close()
        for _, writer in silent:
            writer.close()


@async_test
async def test_no_more_are_let_in_than_there_is_room_for() -> None:
    async with servers(count=1, max_connections=3) as made:
        host, port = made.servers.addresses[0].split(":")
        held = [await connect(host, int(port), SECRET, "test") for _ in range(3)]
        with pytest.raises(NotDoneError):
            await connect(host, int(port), SECRET, "test")
        held[0].close()
        await until(lambda: made.servers.servers[0].describe().connections == 2)
        held.append(await connect(host, int(port), SECRET, "test"))
        for connection in held:
            connection.close()


@async_test
async def test_something_that_is_no_metadata_server_is_called_so() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(StoreUnavailableError, match="no metadata server"):
        await open_remote_store(f"penstock-metadata://127.0.0.1:{port}?timeout=0.5", SECRET)
    server.close()


@async_test
async def test_a_server_describes_itself() -> None:
    async with servers("sharded-direct", count=2) as made:
        store: RemoteStore = await made.servers.open()
        await store.put("a", b"1")
        await store.look_up("a")
        described = await store.describe_servers()
        assert sorted(described) == sorted(made.servers.addresses)
        assert {one.server for one in described.values() if one is not None} == {"m0", "m1"}
        assert sum(one.writes for one in described.values() if one is not None) == 1
        assert all(one is not None and one.following for one in described.values())


@async_test
async def test_a_server_that_is_cut_off_from_the_store_is_left_for_one_that_is_not() -> None:
    async with servers(count=2) as made:
        store, writer = await made.servers.open_to(0), MemoryStore(made.contents)
        first = await writer.put("a", b"1")
        await until(lambda: all(one.follower.cache.version_of("a") == first for one in made.servers.servers))
        made.stores[0].deaf = True
        made.servers.servers[0].follower.following = False  # as after a watch that failed
        second = await writer.put("a", b"2", first)
        await until(lambda: made.servers.servers[1].follower.cache.version_of("a") == second)
        assert await store.look_up("a") == ("a", b"1", first), "known, and said to be behind"
        assert await store.look_up("a") == ("a", b"2", second), "so that the other is asked next"
        made.stores[0].deaf = False


class SlowStore(MemoryStore):
    """Writes when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.told = asyncio.Event(), asyncio.Event()

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        if key == "slow":
            self.asked.set()
            await self.told.wait()
        return await super().put(key, value, version, lease)


@async_test
async def test_a_server_that_stops_answers_what_it_has_begun() -> None:
    slow = SlowStore()

    async def open_slow() -> MemoryStore:
        return slow

    servers = Servers(open_slow, "replicated")
    await servers.start(1)
    patient, hasty = await servers.open(), await servers.open(options="timeout=0.3")
    writing = asyncio.ensure_future(patient.put("slow", b"", ABSENT))
    await slow.asked.wait()
    stopping = asyncio.ensure_future(servers.servers[0].close())

    async def write_until_refused() -> None:
        while True:
            await hasty.put("another", b"")

    with pytest.raises(StoreUnavailableError, match="try again"):
        await write_until_refused()
    slow.told.set()
    assert await writing > ABSENT
    await stopping
    await servers.close()


@async_test
async def test_a_value_that_no_frame_holds_is_refused_before_it_is_sent() -> None:
    async with servers(count=1) as made:
        store = await made.servers.open()
        with pytest.raises(StoreUnavailableError, match="larger than metadata servers take"):
            await store.put("a", bytes(5 << 20))
        assert await store.get("a") is None

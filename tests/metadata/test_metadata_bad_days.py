"""Metadata servers as processes over a real etcd, while servers and etcd are killed, paused and gone."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.metadata.election import Election
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.organisation.server_entry import OrganisationName
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import (
    ABSENT,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)
from tests.etcd_servers import EtcdServers
from tests.metadata.metadata_processes import MetadataProcesses
from tests.metadata.store_contract import increment, told
from tests.runtime.harness import async_test

ORGANISATIONS: list[OrganisationName] = ["replicated", "sharded-direct", "sharded-forwarding"]
THREE, TWO = ("m1", "m2", "m3"), ("m1", "m2")


def _running(
    directory: Path, etcd_url: str, organisation: str, names: tuple[str, ...]
) -> Iterator[MetadataProcesses]:
    servers = MetadataProcesses(directory, etcd_url, "--organisation", organisation, "--copies", "2")
    try:
        asyncio.run(servers.start(*names))
        yield servers
    finally:
        servers.end()


@pytest.fixture(scope="module", params=ORGANISATIONS)
def _three_servers(
    request: pytest.FixtureRequest, etcd: EtcdServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MetadataProcesses]:
    """Started once: on a busy machine that takes longer than the tests."""
    yield from _running(tmp_path_factory.mktemp("metadata"), etcd.url(), request.param, THREE)


@pytest.fixture
def servers(_three_servers: MetadataProcesses) -> MetadataProcesses:
    """Three servers over one etcd, all of which run again before the next test whatever this one did to them."""
    asyncio.run(_three_servers.heal())
    return _three_servers


@pytest.fixture(scope="module", params=ORGANISATIONS)
def _two_servers(
    request: pytest.FixtureRequest, _three_members: EtcdServers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MetadataProcesses]:
    url = _three_members.url(f"bad-days-{request.param}", options="timeout=1")
    yield from _running(tmp_path_factory.mktemp("metadata-trio"), url, request.param, TWO)


@pytest.fixture
def servers_of_trio(_two_servers: MetadataProcesses, etcd_trio: EtcdServers) -> MetadataProcesses:
    """Two servers over an etcd of three members."""
    return _two_servers


class Writer:
    """Makes entries one after the other, each with a new key until one is acknowledged."""

    def __init__(self, store: MetadataStore, prefix: str) -> None:
        self._store = store
        self._prefix = prefix
        self._number = 0
        self.acknowledged: dict[str, int] = {}
        self.failed: list[str] = []

    async def write(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            self._number += 1
            key = f"{self._prefix}/{self._number:05}"
            try:
                self.acknowledged[key] = await self._store.put(key, b"x", ABSENT)
            except StoreUnavailableError as error:
                self.failed.append(str(error))


@async_test
async def test_servers_are_killed_until_one_is_left(servers: MetadataProcesses) -> None:
    async with servers.used():
        store = await servers.open()
        writer = Writer(store, "killed")
        watch = store.watch("killed/", (await store.list("")).version)
        hearing = asyncio.ensure_future(told(watch, "killed/last"))
        for killed in ("m1", "m2"):
            await writer.write(20)
            writing = asyncio.ensure_future(writer.write(20))
            servers.signal(killed, signal.SIGKILL)
            await writing
            for key, version in writer.acknowledged.items():
                assert await store.look_up(key) == (key, b"x", version)
        assert len(writer.failed) <= 4, "only what was under way when a server died"
        assert all("check whether it was made, and try again" in said for said in writer.failed)
        await store.put("killed/last", b"")
        versions = {change.key: change.version for change in await hearing}
        assert writer.acknowledged.items() <= versions.items()
        assert list(versions.values()) == sorted(set(versions.values()))
        await watch.aclose()


@async_test
async def test_a_paused_server_is_left_for_another(servers: MetadataProcesses) -> None:
    async with servers.used():
        store = await servers.open_to("m2")
        versions = {f"paused/{number}": await store.put(f"paused/{number}", b"x") for number in range(20)}
        watch = store.watch("paused/", max(versions.values()))
        hearing = asyncio.ensure_future(anext(watch))
        await store.get("paused/0")
        servers.signal("m2", signal.SIGSTOP)
        began = time.monotonic()
        for key, version in versions.items():
            assert await store.look_up(key) == (key, b"x", version)
        assert time.monotonic() - began < 10
        # What is on condition of a version is certain, whoever was asked first.
        second = await store.put("paused/0", b"y", versions["paused/0"])
        assert await hearing == ("paused/0", b"y", second)
        servers.signal("m2", signal.SIGCONT)
        resumed = await servers.open("m2")
        assert await resumed.get("paused/0") == ("paused/0", b"y", second)
        await watch.aclose()


@async_test
async def test_counting_through_all_servers_loses_no_count_while_one_dies(servers: MetadataProcesses) -> None:
    async with servers.used():
        handles = [await servers.open_to(name) for name in THREE]
        await asyncio.gather(*(increment(handle, 5) for handle in handles))
        servers.signal("m2", signal.SIGKILL)

        async def count(store: MetadataStore) -> int:
            done = 0
            for _ in range(5):
                try:
                    await increment(store, 1)
                    done += 1
                except StoreUnavailableError:
                    continue  # perhaps done
            return done

        counted = 15 + sum(await asyncio.gather(*(count(handle) for handle in handles)))
        entry = await handles[0].get("counter")
        assert entry is not None
        assert counted <= int(entry.value) <= 30


@async_test
async def test_what_was_made_through_one_server_is_found_through_every_other(
    servers: MetadataProcesses,
) -> None:
    async with servers.used():
        handles = [await servers.open_to(name) for name in THREE]
        for number, writer in enumerate(handles * 4):
            key = f"cluster/queues/{number}"
            version = await writer.put(key, b"queue", ABSENT)
            found = await asyncio.gather(*(reader.look_up(key) for reader in handles))
            assert found == [(key, b"queue", version)] * 3
            gone = await handles[(number + 1) % 3].delete(key, version)
            again = await handles[(number + 2) % 3].put(key, b"again", ABSENT)
            assert again > gone > version
            fresh = await asyncio.gather(*(reader.get(key) for reader in handles))
            assert fresh == [(key, b"again", again)] * 3


@async_test
async def test_leases_and_elections_pass_through(servers: MetadataProcesses) -> None:
    async with servers.used():
        one, other = await servers.open_to("m1"), await servers.open_to("m2")
        first = await Election(one, "manager", "one", 60).campaign()
        campaign = asyncio.ensure_future(Election(other, "manager", "other", 60).campaign())
        servers.signal("m1", signal.SIGKILL)
        assert await first.renew(), "the lease is etcd's, and lives on"
        await first.resign()
        second = await campaign
        assert second.epoch > first.epoch
        await second.resign()


@async_test
async def test_a_server_that_stops_takes_itself_off_the_map(servers: MetadataProcesses) -> None:
    async with servers.used():
        store = await servers.open("m1")
        watch = store.watch("cluster/metadata/", (await store.list("")).version)
        assert servers.stop("m3") == 0
        change = await anext(watch)
        assert (change.key, change.value) == ("cluster/metadata/m3", None)
        await watch.aclose()


@async_test
async def test_etcd_loses_its_leader(servers_of_trio: MetadataProcesses, etcd_trio: EtcdServers) -> None:
    servers, etcd = servers_of_trio, etcd_trio
    async with servers.used():
        store = await servers.open()
        writer = Writer(store, "led")
        await writer.write(10)
        watch = store.watch("led/", min(writer.acknowledged.values()) - 1)
        (await etcd.leader()).signal(signal.SIGKILL)
        found = await asyncio.gather(*(store.look_up(key) for key in writer.acknowledged))
        assert all(entry is not None for entry in found)
        await writer.write(10)
        changes = await told(watch, max(writer.acknowledged))
        assert writer.acknowledged.items() <= {change.key: change.version for change in changes}.items()
        await watch.aclose()


@async_test
async def test_etcd_is_gone_for_some_seconds(
    servers_of_trio: MetadataProcesses, etcd_trio: EtcdServers
) -> None:
    servers, etcd = servers_of_trio, etcd_trio
    async with servers.used():
        store = await servers.open(options="timeout=5")
        known = {f"k/{number}": await store.put(f"k/{number}", b"x") for number in range(10)}
        for key in known:
            await store.look_up(key)
        mirror = MetadataMirror(store)
        mirror.start()
        await mirror.ready.wait()
        for member in etcd.members:
            member.signal(signal.SIGKILL)
        refused = (
            store.put("new", b"", ABSENT),
            store.put("k/1", b"y", known["k/1"]),
            store.delete("k/1"),
            store.get("k/1"),
            store.look_up("unknown"),
            store.list("k/"),
            store.grant(5),
        )
        for outcome in await asyncio.gather(*refused, return_exceptions=True):
            assert isinstance(outcome, StoreUnavailableError), outcome
            assert "try again" in str(outcome), outcome
        for key, version in known.items():
            assert await store.look_up(key) == (key, b"x", version)
            assert mirror.cache.get(key) == (key, b"x", version)
        await etcd.heal()
        straight = await open_etcd_store(servers.etcd_url.replace("timeout=1", "timeout=20"))
        entry = await straight.get("k/0")
        assert entry is not None
        heard = asyncio.Event()
        mirror.cache.listen("k/0", lambda change: heard.set())
        second = await straight.put("k/0", b"z", entry.version)
        await heard.wait()
        assert mirror.cache.get("k/0") == ("k/0", b"z", second)
        with pytest.raises(VersionConflictError):
            await store.put("k/0", b"stale", known["k/0"])
        assert await store.look_up("k/0") == ("k/0", b"z", second)
        await mirror.close()
        await straight.close()

"""A store over an etcd of three members while they are killed, paused and gone: nothing told twice, nothing lost."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncGenerator

import pytest

from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store import etcd_watch
from penstock.metadata.store.etcd import EtcdStore, open_etcd_store
from penstock.metadata.store.interface import ABSENT, Change, StoreUnavailableError
from tests.etcd_servers import EtcdServers
from tests.metadata.store_contract import take, told
from tests.runtime.harness import async_test


@pytest.fixture
def soon_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that hears nothing asks its member sooner how it is."""
    monkeypatch.setattr(etcd_watch, "CHECK_SECONDS", 0.2)


class Writer:
    """Makes entries, one after the other, each with a new key until one is acknowledged."""

    def __init__(self, store: EtcdStore) -> None:
        self._store = store
        self._number = 0
        self.acknowledged: dict[str, int] = {}
        self.tried: set[str] = set()

    async def write(self, count: int) -> None:
        wanted = len(self.acknowledged) + count
        while len(self.acknowledged) < wanted:
            self._number += 1
            key = f"{self._number:05}"
            self.tried.add(key)
            try:
                self.acknowledged[key] = await self._store.put(key, b"", ABSENT)
            except StoreUnavailableError:
                continue


def assert_nothing_lost(changes: list[Change], writer: Writer) -> None:
    versions = [change.version for change in changes]
    assert versions == sorted(set(versions))
    heard = {change.key: change.version for change in changes}
    assert writer.acknowledged.items() <= heard.items()
    assert set(heard) <= writer.tried


@async_test
async def test_the_leader_is_killed_under_writes_and_watches(etcd_trio: EtcdServers) -> None:
    leader = await etcd_trio.leader()
    follower = next(one for one in etcd_trio.members if one is not leader)
    namespace = "leader-killed"
    stores = [
        await open_etcd_store(etcd_trio.url(namespace, first, "timeout=2")) for first in (leader, follower)
    ]
    writer = Writer(stores[0])
    before = (await stores[0].list("")).version
    watches = [store.watch("", before) for store in stores]
    await writer.write(20)
    hearing = [asyncio.ensure_future(take(watch, 20)) for watch in watches]
    first = [await one for one in hearing]
    writing = asyncio.ensure_future(writer.write(60))
    leader.signal(signal.SIGKILL)
    await writing
    last = max(writer.acknowledged)
    for watch, begun in zip(watches, first, strict=True):
        assert_nothing_lost(begun + await told(watch, last), writer)
        await watch.aclose()
    for store in stores:
        await store.close()


@async_test
async def test_a_paused_member_is_left_for_another(etcd_trio: EtcdServers, soon_checked: None) -> None:
    paused = next(one for one in etcd_trio.members if one is not etcd_trio.members[0])
    store = await open_etcd_store(etcd_trio.url("paused", paused, "timeout=9"))
    other = await open_etcd_store(etcd_trio.url("paused", etcd_trio.members[0], "timeout=10"))
    version = await store.put("a", b"1")
    watch = store.watch("", version - 1)
    assert (await anext(watch)).version == version
    waiting = asyncio.ensure_future(anext(watch))
    paused.signal(signal.SIGSTOP)
    entry = await store.get("a")
    assert entry is not None
    writer = Writer(other)
    await writer.write(1)
    assert await waiting == _only(writer)
    await store.put("b", b"", ABSENT)  # which fails when the member that does not answer is asked first
    await watch.aclose()
    await store.close()
    await other.close()


def _only(writer: Writer) -> tuple[str, bytes, int]:
    ((key, version),) = writer.acknowledged.items()
    return key, b"", version


@async_test
async def test_etcd_is_gone_for_a_while_and_back(etcd_trio: EtcdServers) -> None:
    patient = await open_etcd_store(etcd_trio.url("gone", options="timeout=20"))
    hasty = await open_etcd_store(etcd_trio.url("gone", options="timeout=0.5"))
    version = await patient.put("a", b"1")
    watch, hasty_watch = patient.watch("", version), hasty.watch("", version)
    waiting, hasty_waiting = asyncio.ensure_future(anext(watch)), asyncio.ensure_future(anext(hasty_watch))
    for member in etcd_trio.members:
        member.signal(signal.SIGKILL)
    began = time.monotonic()
    for refused in (
        hasty.get("a"),
        hasty.put("b", b"", ABSENT),
        hasty.put("a", b"", version),
        hasty.grant(5),
    ):
        with pytest.raises(StoreUnavailableError, match="try again"):
            await refused
    with pytest.raises(StoreUnavailableError, match="try again"):
        await hasty_waiting
    assert time.monotonic() - began < 20
    reading = asyncio.ensure_future(patient.get("a"))
    await etcd_trio.heal()
    entry = await reading
    assert entry == ("a", b"1", version)
    second = await patient.put("a", b"2", version)
    assert await waiting == ("a", b"2", second)
    await watch.aclose()
    await patient.close()
    await hasty.close()


@async_test
async def test_without_a_majority_nothing_is_answered_and_watches_say_so(
    etcd_trio: EtcdServers, soon_checked: None
) -> None:
    left, *others = etcd_trio.members
    store = await open_etcd_store(etcd_trio.url("minority", left, "timeout=0.5"))
    version = await store.put("a", b"1")
    watch = store.watch("", version)
    waiting = asyncio.ensure_future(anext(watch))
    for member in others:
        member.signal(signal.SIGKILL)
    with pytest.raises(StoreUnavailableError):
        await waiting
    with pytest.raises(StoreUnavailableError):
        await store.get("a")
    for member in others:
        member.start()
    await etcd_trio.cluster.ready()
    patient = await open_etcd_store(etcd_trio.url("minority", left, "timeout=20"))
    assert await patient.get("a") == ("a", b"1", version)
    await patient.close()
    await store.close()


@async_test
async def test_a_mirror_goes_on_with_what_it_knows_and_catches_up(etcd_trio: EtcdServers) -> None:
    store = await open_etcd_store(etcd_trio.url("mirror", options="timeout=0.5"))
    version = await store.put("a", b"1")
    mirror = MetadataMirror(store)
    mirror.start()
    await mirror.ready.wait()
    for member in etcd_trio.members:
        member.signal(signal.SIGKILL)
    with pytest.raises(StoreUnavailableError):
        await mirror.put("b", b"")
    assert mirror.cache.get("a") == ("a", b"1", version)
    await etcd_trio.heal()
    patient = await open_etcd_store(etcd_trio.url("mirror", options="timeout=20"))
    second = await patient.put("a", b"2", version)
    await patient.close()
    heard = asyncio.Event()
    mirror.cache.listen("a", lambda change: heard.set())
    if mirror.cache.version("a") != second:
        await heard.wait()
    assert mirror.cache.get("a") == ("a", b"2", second)
    await mirror.close()
    await store.close()


@async_test
async def test_closing_does_not_wait_for_a_member_that_is_paused(etcd_trio: EtcdServers) -> None:
    member = etcd_trio.members[0]
    store = await open_etcd_store(f"etcd://{member.member.address}/closing?timeout=60")
    watch = store.watch("", (await store.list("")).version)
    waiting = asyncio.ensure_future(_ended(watch))
    await store.get("a")
    member.signal(signal.SIGSTOP)
    began = time.monotonic()
    await store.close()
    assert await waiting
    assert time.monotonic() - began < 30, "it waited for an answer"


async def _ended(watch: AsyncGenerator[Change, None]) -> bool:
    return await anext(watch, None) is None

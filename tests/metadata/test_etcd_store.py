"""The store in etcd keeps the contract, with a real etcd and real time."""

from __future__ import annotations

import asyncio
import time

import pytest

from penstock.metadata.election import Election
from penstock.metadata.store import etcd as etcd_store
from penstock.metadata.store.etcd import EtcdStore, open_etcd_store
from penstock.metadata.store.interface import (
    ABSENT,
    LeaseEndedError,
    StoreUnavailableError,
    VersionConflictError,
    WatchLostError,
)
from tests.etcd_servers import EtcdServers
from tests.metadata.store_contract import StoreContract, Stores, take
from tests.runtime.harness import async_test

SHORTEST_LEASE_SECONDS = 1


class EtcdStores:
    def __init__(self, url: str) -> None:
        self._url = url

    async def open(self) -> EtcdStore:
        return await open_etcd_store(self._url)

    async def pass_time(self, seconds: float) -> None:
        raise AssertionError("etcd has a clock of its own")

    async def close(self) -> None:
        pass


class TestEtcdStore(StoreContract):
    """The tests of the contract that need a clock to be turned are replaced by such that wait for what they test."""

    @pytest.fixture
    def stores(self, etcd: EtcdServers) -> EtcdStores:
        return EtcdStores(etcd.url())

    @async_test
    async def test_entries_go_when_their_lease_ends(self, stores: Stores) -> None:
        one, other = await stores.open(), await stores.open()
        began = time.monotonic()
        lease = await one.grant(SHORTEST_LEASE_SECONDS)
        await one.put("leased", b"x", lease=lease)
        freed = await one.put("freed", b"x", lease=lease)
        await one.put("freed", b"y", freed)
        watch = other.watch("", (await other.list("")).version)
        change = await anext(watch)
        assert (change.key, change.value) == ("leased", None)
        assert time.monotonic() - began >= SHORTEST_LEASE_SECONDS
        assert await other.get("leased") is None
        assert await other.get("freed") is not None
        assert not await one.renew(lease)
        with pytest.raises(LeaseEndedError):
            await one.put("late", b"x", lease=lease)
        with pytest.raises(LeaseEndedError):
            await one.put("late", b"x", ABSENT, lease)
        assert await one.get("late") is None
        await watch.aclose()
        await one.close()
        await other.close()

    @async_test
    async def test_a_leader_that_does_not_renew_is_followed_by_another(self, stores: Stores) -> None:
        one, other = await stores.open(), await stores.open()
        first = await Election(one, "manager", "one", SHORTEST_LEASE_SECONDS).campaign()
        second = await Election(other, "manager", "other", SHORTEST_LEASE_SECONDS).campaign()
        assert second.epoch > first.epoch
        assert not first.holds
        assert not await first.renew()
        await one.close()
        await other.close()


@async_test
async def test_a_lease_that_is_renewed_begins_anew(etcd: EtcdServers) -> None:
    store = await open_etcd_store(etcd.url())
    lease = await store.grant(60)

    async def left() -> int:
        return int((await etcd.ask("/v3/lease/timetolive", {"ID": lease}))["TTL"])

    while (before := await left()) > 58:  # noqa: ASYNC110  # nobody tells of a second that has passed
        await asyncio.sleep(0.05)
    after = before
    while after <= before:
        assert await store.renew(lease)
        after = await left()
    await store.close()


@async_test
async def test_a_list_of_many_pages_is_as_of_one_version(
    etcd: EtcdServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_store, "ENTRIES_AT_ONCE", 3)
    store = await open_etcd_store(etcd.url())
    versions = [await store.put(f"{number:03}", b"") for number in range(20)]
    writing = asyncio.gather(*(store.put(f"{number:03}", b"new") for number in range(10, 40)))
    listing = await store.list("")
    await writing
    assert [entry.key for entry in listing.entries] == sorted(entry.key for entry in listing.entries)
    assert all(entry.version <= listing.version for entry in listing.entries)
    watch = store.watch("", versions[-1])
    later = await take(watch, 30)
    assert {entry.key: entry.value for entry in listing.entries} == {
        **{f"{number:03}": b"" for number in range(20)},
        **{change.key: b"new" for change in later if change.version <= listing.version},
    }
    await watch.aclose()
    await store.close()


@async_test
async def test_changes_of_one_version_are_all_told_and_namespaces_are_apart(etcd: EtcdServers) -> None:
    one, other = await open_etcd_store(etcd.url("left")), await open_etcd_store(etcd.url("left-over"))
    lease = await one.grant(60)
    for number in range(5):
        await one.put(f"{number}", b"", lease=lease)
    await other.put("elsewhere", b"")
    watch = one.watch("", (await one.list("")).version)
    await one.revoke(lease)
    changes = await take(watch, 5)
    assert [change.key for change in changes] == ["0", "1", "2", "3", "4"]
    assert len({change.version for change in changes}) == 1
    assert (await one.list("")).entries == ()
    assert [entry.key for entry in (await other.list("")).entries] == ["elsewhere"]
    await watch.aclose()
    await one.close()
    await other.close()


@async_test
async def test_a_large_value_comes_back_and_one_too_large_is_refused(etcd: EtcdServers) -> None:
    store = await open_etcd_store(etcd.url())
    value = bytes(range(256)) * 4096
    first = await store.put("large", value)
    watch = store.watch("", first - 1)
    assert (await anext(watch)).value == value
    assert (await store.list("")).entries[0].value == value
    with pytest.raises(StoreUnavailableError, match="max-request-bytes"):
        await store.put("larger", value * 2)
    await watch.aclose()
    await store.close()


@async_test
async def test_a_watch_that_falls_behind_a_compaction_is_lost_and_one_that_does_not_goes_on(
    etcd_of_its_own: EtcdServers,
) -> None:
    etcd = etcd_of_its_own
    store = await open_etcd_store(etcd.url("ours"))
    first = await store.put("a", b"1")
    behind, abreast = store.watch("", first - 1), store.watch("", first - 1)
    assert (await anext(behind)).version == (await anext(abreast)).version == first
    # Their streams break; each goes on when it is asked for more.
    await _restart(etcd)
    second = await store.put("a", b"2")
    assert (await anext(abreast)).version == second
    third = await store.put("a", b"3")
    await etcd.ask("/v3/kv/compaction", {"revision": third})
    with pytest.raises(WatchLostError, match="no longer kept"):
        await anext(behind)
    assert (await anext(abreast)).version == third
    fourth = await store.put("a", b"4", third)
    assert (await anext(abreast)).version == fourth
    with pytest.raises(WatchLostError):
        await anext(store.watch("", ABSENT))
    with pytest.raises(VersionConflictError):
        await store.put("a", b"5", third)
    await abreast.aclose()
    await store.close()


async def _restart(etcd: EtcdServers) -> None:
    etcd.cluster.stop()
    await etcd.heal()

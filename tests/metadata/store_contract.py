"""What every metadata store promises. A store joins with a fixture `stores` that opens handles on one store.

Versions are opaque and only rise; leases are counted in whole seconds, so that a store that knows no shorter ones
can join.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Protocol

import pytest

from penstock.metadata.election import Election
from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    LeaseEndedError,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)
from tests.runtime.harness import async_test


async def told(watch: AsyncIterator[Change], last: str) -> list[Change]:
    """What a watch tells up to a key."""
    changes = []
    async for change in watch:
        changes.append(change)
        if change.key == last:
            break
    return changes


class Stores(Protocol):
    """Handles on one and the same store, and its time."""

    async def open(self) -> MetadataStore: ...

    async def pass_time(self, seconds: float) -> None: ...

    async def close(self) -> None: ...


async def take(changes: AsyncIterator[Change], count: int) -> list[Change]:
    return [await anext(changes) for _ in range(count)]


async def increment(store: MetadataStore, times: int) -> None:
    """Counts up by compare-and-set, in the face of others who do the same."""
    for _ in range(times):
        while True:
            entry = await store.get("counter")
            value, version = (int(entry.value), entry.version) if entry is not None else (0, ABSENT)
            try:
                await store.put("counter", b"%d" % (value + 1), version)
                break
            except VersionConflictError:
                continue


async def with_two(stores: Stores, work: Callable[[MetadataStore, MetadataStore], Awaitable[None]]) -> None:
    one, other = await stores.open(), await stores.open()
    try:
        await work(one, other)
    finally:
        await one.close()
        await other.close()
        await stores.close()


class StoreContract:
    """Inherited by the tests of each store."""

    @async_test
    async def test_what_one_puts_the_other_gets(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            assert await other.get("a/1") is None
            version = await one.put("a/1", b"x")
            entry = await other.get("a/1")
            assert entry == ("a/1", b"x", version)
            assert version > ABSENT

        await with_two(stores, work)

    @async_test
    async def test_lists_are_by_key_and_prefix_and_as_of_one_version(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            before = len((await other.list("")).entries)  # a store may have entries of its own
            for key in ("b/2", "a/1", "b/1", "b", "c", "b/é", "b%"):
                await one.put(key, key.encode())
            listing = await other.list("b/")
            assert [entry.key for entry in listing.entries] == ["b/1", "b/2", "b/é"]
            assert len((await other.list("")).entries) == before + 7
            assert await other.put("d", b"") > listing.version

        await with_two(stores, work)

    @async_test
    async def test_conditional_writes_see_conflicts_and_change_nothing(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            first = await one.put("a", b"1", ABSENT)
            with pytest.raises(VersionConflictError):
                await other.put("a", b"2", ABSENT)
            second = await other.put("a", b"2", first)
            assert second > first
            with pytest.raises(VersionConflictError):
                await one.delete("a", first)
            assert (await one.list("")).version == second
            gone = await one.delete("a", second)
            assert gone > second
            assert await one.delete("a") == ABSENT
            with pytest.raises(VersionConflictError):
                await one.delete("a", second)
            assert await other.put("a", b"3", ABSENT) > gone

        await with_two(stores, work)

    @async_test
    async def test_a_watch_after_a_listing_misses_nothing_and_keeps_the_order(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            await one.put("a/0", b"before")
            listing = await one.list("a/")
            first = await other.put("a/1", b"x")
            await other.put("b/1", b"elsewhere")
            watch = one.watch("a/", listing.version)
            second = await one.put("a/1", b"y")
            third = await other.delete("a/1")
            assert await take(watch, 3) == [
                ("a/1", b"x", first),
                ("a/1", b"y", second),
                ("a/1", None, third),
            ]
            waiting = asyncio.ensure_future(anext(watch))
            fourth = await other.put("a/2", b"z")
            assert await waiting == ("a/2", b"z", fourth)
            await watch.aclose()

        await with_two(stores, work)

    @async_test
    async def test_a_watch_tells_many_changes_in_the_order_of_their_versions(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            watch = one.watch("", (await one.list("")).version)
            writers = [
                asyncio.gather(*(store.put(f"{name}/{n}", b"") for n in range(150)))
                for name, store in (("one", one), ("other", other))
            ]
            changes = await take(watch, 300)
            await asyncio.gather(*writers)
            versions = [change.version for change in changes]
            assert versions == sorted(versions)
            assert len({change.key for change in changes}) == 300
            await watch.aclose()

        await with_two(stores, work)

    @async_test
    async def test_counting_up_loses_no_count(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            await asyncio.gather(*(increment(store, 10) for store in (one, other, one, other)))
            entry = await one.get("counter")
            assert entry is not None
            assert entry.value == b"40"

        await with_two(stores, work)

    @async_test
    async def test_entries_go_when_their_lease_ends(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            lease = await one.grant(5)
            await one.put("leased", b"x", lease=lease)
            freed = await one.put("freed", b"x", lease=lease)
            await one.put("freed", b"y", freed)
            watch = other.watch("", (await other.list("")).version)
            await stores.pass_time(3)
            assert await one.renew(lease)
            await stores.pass_time(3)
            assert await other.get("leased") is not None
            await stores.pass_time(3)
            assert await other.get("leased") is None
            change = await anext(watch)
            assert (change.key, change.value) == ("leased", None)
            assert await other.get("freed") is not None
            assert not await one.renew(lease)
            with pytest.raises(LeaseEndedError):
                await one.put("late", b"x", lease=lease)
            assert await one.get("late") is None
            await watch.aclose()

        await with_two(stores, work)

    @async_test
    async def test_a_revoked_lease_takes_its_entries_along(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            lease = await one.grant(60)
            await other.put("leased", b"x", lease=lease)
            await one.revoke(lease)
            assert await other.get("leased") is None
            await one.revoke(lease)

        await with_two(stores, work)

    @async_test
    async def test_one_of_two_candidates_leads_until_it_resigns(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            first = await Election(one, "manager", "one", 60).campaign()
            campaign = asyncio.create_task(Election(other, "manager", "other", 60).campaign())
            seen: AsyncGenerator[str | None, None] = Election(one, "manager", "", 60).observe()
            assert await anext(seen) == "one"
            assert await first.renew()
            await first.resign()
            assert not first.holds
            second = await campaign
            assert second.epoch > first.epoch
            assert [await anext(seen), await anext(seen)] == [None, "other"]
            assert not await first.renew()
            await seen.aclose()

        await with_two(stores, work)

    @async_test
    async def test_a_leader_that_does_not_renew_is_followed_by_another(self, stores: Stores) -> None:
        async def work(one: MetadataStore, other: MetadataStore) -> None:
            first = await Election(one, "manager", "one", 5).campaign()
            campaign = asyncio.create_task(Election(other, "manager", "other", 5).campaign())
            await stores.pass_time(6)
            assert (await campaign).epoch > first.epoch
            assert not await first.renew()

        await with_two(stores, work)

    @async_test
    async def test_closing_ends_watches_and_refuses_what_follows(self, stores: Stores) -> None:
        one = await stores.open()
        await one.put("a", b"")
        watch = one.watch("a", ABSENT)
        await anext(watch)
        waiting = asyncio.create_task(_next_or_none(watch))
        await one.get("a")
        await one.close()
        assert await waiting is None
        with pytest.raises(StoreUnavailableError, match="closed"):
            await one.get("a")
        await stores.close()


async def _next_or_none(watch: AsyncGenerator[Change, None]) -> Change | None:
    return await anext(watch, None)

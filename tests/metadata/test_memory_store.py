"""The store in memory keeps the contract."""

import pytest

from penstock.metadata.store.interface import ABSENT, WatchLostError
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from tests.metadata.clock import Clock
from tests.metadata.store_contract import StoreContract
from tests.runtime.harness import async_test


class MemoryStores:
    def __init__(self) -> None:
        self._clock = Clock()
        self._contents = MemoryContents(self._clock)

    async def open(self) -> MemoryStore:
        return MemoryStore(self._contents)

    async def pass_time(self, seconds: float) -> None:
        self._clock.now += seconds
        self._contents.expire()

    async def close(self) -> None:
        pass


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def stores(self) -> MemoryStores:
        return MemoryStores()


@async_test
async def test_a_watch_too_far_behind_is_told_so() -> None:
    store = MemoryStore(MemoryContents(kept=3))
    for _ in range(5):
        await store.put("a", b"")
    with pytest.raises(WatchLostError):
        await anext(store.watch("", ABSENT))
    assert (await anext(store.watch("", 2))).version == 3
    await store.close()

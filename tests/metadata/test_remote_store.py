"""The store over metadata servers keeps the contract of every store, in each organisation."""

from __future__ import annotations

import pytest

from penstock.metadata.organisation.server_entry import OrganisationName
from penstock.metadata.store.etcd import open_etcd_store
from penstock.metadata.store.interface import MetadataStore
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from tests.etcd_servers import EtcdServers
from tests.metadata import test_etcd_store
from tests.metadata.clock import Clock
from tests.metadata.metadata_servers import Servers
from tests.metadata.store_contract import StoreContract

ORGANISATIONS: list[OrganisationName] = ["replicated", "sharded-direct", "sharded-forwarding"]


class RemoteStores:
    """Three servers over one store in memory; every handle begins with another of them."""

    def __init__(self, organisation: OrganisationName) -> None:
        self._clock = Clock()
        self._contents = MemoryContents(self._clock)
        self._servers = Servers(self._open_memory, organisation)
        self._opened = 0

    async def _open_memory(self) -> MemoryStore:
        return MemoryStore(self._contents)

    async def open(self) -> MetadataStore:
        if not self._servers.servers:
            await self._servers.start(3, lease_seconds=10_000)
        self._opened += 1
        return await self._servers.open(self._opened % 3)

    async def pass_time(self, seconds: float) -> None:
        self._clock.now += seconds
        self._contents.expire()

    async def close(self) -> None:
        await self._servers.close()


class TestRemoteStore(StoreContract):
    @pytest.fixture(params=ORGANISATIONS)
    def stores(self, request: pytest.FixtureRequest) -> RemoteStores:
        return RemoteStores(request.param)


class RemoteEtcdStores:
    """Two servers over one etcd."""

    def __init__(self, organisation: OrganisationName, url: str) -> None:
        self._servers = Servers(lambda: open_etcd_store(url), organisation, copies=1)
        self._opened = 0

    async def open(self) -> MetadataStore:
        if not self._servers.servers:
            await self._servers.start(2)
        self._opened += 1
        return await self._servers.open(self._opened % 2)

    async def pass_time(self, seconds: float) -> None:
        raise AssertionError("etcd has a clock of its own")

    async def close(self) -> None:
        await self._servers.close()


class TestRemoteStoreOverEtcd(test_etcd_store.TestEtcdStore):
    @pytest.fixture(params=ORGANISATIONS)
    def stores(self, request: pytest.FixtureRequest, etcd: EtcdServers) -> RemoteEtcdStores:
        return RemoteEtcdStores(request.param, etcd.url())

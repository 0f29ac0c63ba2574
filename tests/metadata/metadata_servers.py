"""Metadata servers for tests, in the process of the test, over any store."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from penstock.config.address import Address
from penstock.metadata.organisation.server_entry import OrganisationName
from penstock.metadata.remote.store import RemoteStore, open_remote_store
from penstock.metadata.server.server import MetadataServer, ServerSettings
from penstock.metadata.store.interface import MetadataStore
from penstock.runtime.processes.listening import bind
from tests.runtime.harness import until

SECRET = b"a secret that all tests know"
OpenStore = Callable[[], Awaitable[MetadataStore]]


class Servers:
    """Some servers that know each other."""

    def __init__(self, open_store: OpenStore, organisation: OrganisationName, copies: int = 2) -> None:
        self.servers: list[MetadataServer] = []
        self.addresses: list[str] = []
        self._open_store = open_store
        self._organisation = organisation
        self._copies = copies
        self._stores: list[MetadataStore] = []
        self._handles: list[RemoteStore] = []

    async def start(self, count: int, **settings: int) -> None:
        for _ in range(count):
            store = await self._open_store()
            server = MetadataServer(
                store,
                ServerSettings(
                    name=f"m{len(self.servers)}",
                    secret=SECRET,
                    organisation=self._organisation,
                    copies=self._copies,
                    **settings,
                ),
            )
            self.addresses.append(await server.start(bind(Address("127.0.0.1", 0), "--listen")))
            self.servers.append(server)
            self._stores.append(store)
        for server in self.servers:
            await server.follower.ready.wait()
            assert server.registration is not None
            await server.registration.registered.wait()
        await until(
            lambda: all(len(one.follower.organisation.servers) == len(self.servers) for one in self.servers)
        )

    def url(self, first: int = 0, options: str = "") -> str:
        addresses = self.addresses[first:] + self.addresses[:first]
        return f"penstock-metadata://{','.join(addresses)}{options and '?' + options}"

    async def open(self, first: int = 0, options: str = "") -> RemoteStore:
        handle = await open_remote_store(self.url(first, options), SECRET)
        self._handles.append(handle)
        await handle.mapped.wait()
        return handle

    async def open_to(self, number: int) -> RemoteStore:
        """A handle that asks this server first for what belongs to no key."""
        while True:
            handle = await self.open(number)
            if handle.servers.addresses(None)[0] == self.addresses[number]:
                return handle

    async def close(self) -> None:
        await asyncio.gather(*(handle.close() for handle in self._handles))
        for server in self.servers:
            await server.close()
        for store in self._stores:
            await store.close()

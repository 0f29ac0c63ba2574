"""What a metadata server does with each request: from its cache, with its store, or through another server with the shard."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

from penstock.metadata.remote.connection import Reply
from penstock.metadata.remote.connections import Connections
from penstock.metadata.remote.failures import PerhapsDoneError, ServerFailure, StoreFailedError, write_once
from penstock.metadata.server.follower import Follower
from penstock.metadata.server.read_through import ReadThrough
from penstock.metadata.store.interface import (
    ABSENT,
    Entry,
    Listing,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)
from penstock.wire.metadata_messages import Delete, Found, Get, Put, Written

FORWARD_SECONDS = 3.0
"""How long another server may take before this one answers itself."""


class Counts:
    """Counters since the start."""

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0
        self.writes = 0
        self.forwarded = 0
        self.strayed = 0


class Value(NamedTuple):
    """The version of an entry, and its value."""

    version: int
    value: bytes
    behind: bool = False
    """From a cache that receives no changes from the store."""


class MetadataService:
    """The requests of one server; the connection handles the wire format."""

    def __init__(self, name: str, store: MetadataStore, follower: Follower, peers: Connections) -> None:
        self.counts = Counts()
        self._name = name
        self._store = store
        self._follower = follower
        self._cache = follower.cache
        self._reads = ReadThrough(store, follower.cache)
        self._peers = peers

    async def close(self) -> None:
        """Ends the reads that are under way."""
        await self._reads.close()

    # -- reading ---------------------------------------------------------------------------------------------

    def known(self, request: Get) -> Value | None:
        """The cached entry, if that is sufficient."""
        if request.fresh:
            return None
        entry = self._cache.get(request.key)
        if entry is None:
            return None
        self.counts.hits += 1
        return Value(entry.version, entry.value, not self._follower.following)

    async def get(self, request: Get) -> Value:
        """An entry that the cache does not have, or that must be as it is now."""
        for address in self._onward(request):
            try:
                reply = await self._pass_on(address, Get(request.key, request.fresh, True))
            except ServerFailure:
                continue  # the next one that has the shard, and in the end this one by itself
            if isinstance(reply.answer, Found):
                return Value(reply.answer.version, reply.body, reply.answer.behind)
        self.counts.misses += 1
        entry: Entry | None = await self._reads.get(request.key)
        return Value(entry.version, entry.value) if entry is not None else Value(ABSENT, b"")

    async def list(self, prefix: str, fresh: bool) -> Listing:
        """All entries under a prefix."""
        known = None if fresh else self._cache.list(prefix)
        if known is not None:
            self.counts.hits += 1
            return known
        self.counts.misses += 1
        return await self._store.list(prefix)

    # -- writing ---------------------------------------------------------------------------------------------

    async def put(self, request: Put, value: bytes) -> int:
        """Writes to the store and, once it is there, to the cache of a server that keeps the key."""
        onward = Put(request.key, request.version, request.lease, True)

        async def here() -> int:
            ticket = self._cache.begin(request.key)
            try:
                version = await self._store.put(request.key, value, request.version, request.lease)
            except VersionConflictError:
                await self._refresh(request.key)
                raise
            finally:
                self._cache.abandon(ticket)
            self._cache.finish(ticket, value, version)
            return version

        return await self._write(request, onward, value, here)

    async def delete(self, request: Delete) -> int:
        """Deletes from the store and, once it is gone there, from the cache of a server that keeps the key."""
        onward = Delete(request.key, request.version, True)

        async def here() -> int:
            ticket = self._cache.begin(request.key)
            try:
                version = await self._store.delete(request.key, request.version)
            except VersionConflictError:
                await self._refresh(request.key)
                raise
            finally:
                self._cache.abandon(ticket)
            self._cache.finish(ticket, None, version)
            return version

        return await self._write(request, onward, b"", here)

    async def _refresh(self, key: str) -> None:
        """Reads the present entry after a conflict, so that the client sees it when it looks again."""
        with suppress(StoreUnavailableError):
            await self._reads.get(key)

    async def _write(
        self,
        request: Put | Delete,
        onward: Put | Delete,
        value: bytes,
        here: Callable[[], Awaitable[int]],
    ) -> int:
        self.counts.writes += 1
        addresses = self._onward(request)
        if not addresses:
            return await here()

        async def there() -> int:
            for address in addresses:
                try:
                    reply = await self._pass_on(address, onward, value)
                except (PerhapsDoneError, StoreFailedError):
                    raise
                except ServerFailure:
                    continue
                if isinstance(reply.answer, Written):
                    return reply.answer.version
                raise PerhapsDoneError("another metadata server answered a write with something else")
            return await here()

        try:
            return await write_once(request.version, there, here)
        except StoreFailedError as error:
            raise StoreUnavailableError(str(error)) from error

    # -- leases ----------------------------------------------------------------------------------------------

    async def grant(self, seconds: float) -> int:
        """Leases are the store's own."""
        return await self._store.grant(seconds)

    async def renew(self, lease: int) -> bool:
        """Whether it lives."""
        return await self._store.renew(lease)

    async def revoke(self, lease: int) -> None:
        """Ends it; the watch removes its entries from the cache."""
        await self._store.revoke(lease)

    # -- other servers ---------------------------------------------------------------------------------------

    def _onward(self, request: Get | Put | Delete) -> Sequence[str]:
        """The addresses of those that keep the key, if it is theirs to answer."""
        organisation = self._follower.organisation
        if not request.forwarded:
            servers = organisation.forward_to(self._name, request.key)
            if servers:
                return self._peers.trusted_first(organisation.servers[one].address for one in servers)
        if organisation.sharded and not organisation.keeps(self._name, request.key):
            self.counts.strayed += 1
        return []

    async def _pass_on(self, address: str, request: Get | Put | Delete, value: bytes = b"") -> Reply:
        self.counts.forwarded += 1
        return await self._peers.ask(address, request, value, FORWARD_SECONDS)

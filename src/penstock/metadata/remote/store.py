"""The store over metadata servers, for front ends and tools, which need not know where the metadata is stored.

It keeps the contract of every store: `get` and `list` return the store's present entries. `look_up` is answered from the
cache of a server, and so is `list_known` if a server has everything: fast, available while the store is unavailable, and
sometimes slightly old. A key that no cache has is read from the store, so earlier writes are always found.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncGenerator
from typing import TypeVar

import msgspec

from penstock.metadata.organisation.organisation import agreed
from penstock.metadata.organisation.server_entry import SERVERS, ServerEntry, decode_server
from penstock.metadata.organisation.server_search import MAP_PAUSE_SECONDS
from penstock.metadata.remote.connection import Dial, Reply, dial_plainly
from penstock.metadata.remote.failures import write_once
from penstock.metadata.remote.servers import Servers
from penstock.metadata.remote.settings import RemoteSettings, parse_metadata_url
from penstock.metadata.remote.watch import RemoteWatch
from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    Entry,
    Listing,
    StoreUnavailableError,
    WatchLostError,
)
from penstock.wire.metadata_messages import (
    Delete,
    Describe,
    Description,
    Found,
    Get,
    Grant,
    Granted,
    List,
    Listed,
    Ping,
    Put,
    Renew,
    Renewed,
    Request,
    Revoke,
    Written,
    decode_entries,
)

VALUE_BYTES = 3 << 20
"""More than etcd takes, less than a server's frames."""
Answered = TypeVar("Answered")

_logger = logging.getLogger(__name__)


class RemoteStore:
    """One handle, on the event loop that made it; made by `open_remote_store`."""

    def __init__(self, settings: RemoteSettings, dial: Dial = dial_plainly) -> None:
        self.servers = Servers(settings, os.urandom(8).hex(), dial)
        self.mapped = asyncio.Event()
        """Set once it is known which servers there are, beside those that were named."""
        self._map = asyncio.create_task(self._follow_map(), name="metadata servers are looked for")

    # -- reading ---------------------------------------------------------------------------------------------

    async def get(self, key: str) -> Entry | None:
        return await self._get(key, fresh=True)

    async def look_up(self, key: str) -> Entry | None:
        """The entry as the cache of a server has it, or the store where none does."""
        return await self._get(key, fresh=False)

    async def list(self, prefix: str) -> Listing:
        return await self._list(prefix, fresh=True)

    async def list_known(self, prefix: str) -> Listing:
        """All entries under a prefix as the cache of a server has them, if one has them all; else as `list`."""
        return await self._list(prefix, fresh=False)

    def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        return RemoteWatch(self.servers, prefix, after).changes()

    # -- writing ---------------------------------------------------------------------------------------------

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        if len(value) > VALUE_BYTES:
            raise StoreUnavailableError(f"a value of {len(value)} bytes is larger than metadata servers take")
        return await self._write(key, version, Put(key, version, lease), value)

    async def delete(self, key: str, version: int | None = None) -> int:
        return await self._write(key, version, Delete(key, version), b"")

    async def grant(self, seconds: float) -> int:
        # A surplus lease that is not renewed ends by itself, so this may be repeated.
        return _of(Granted, await self.servers.ask(None, Grant(seconds))).lease

    async def renew(self, lease: int) -> bool:
        return _of(Renewed, await self.servers.ask(None, Renew(lease))).alive

    async def revoke(self, lease: int) -> None:
        await self.servers.ask(None, Revoke(lease))

    async def describe_servers(self) -> dict[str, Description | None]:
        """Every server that is known by its address, as it describes itself; None: it does not answer."""
        addresses = self.servers.addresses(None)
        said = await asyncio.gather(*(self.servers.ask_one(one, Describe()) for one in addresses))
        return {
            one: reply.answer if reply is not None and isinstance(reply.answer, Description) else None
            for one, reply in zip(addresses, said, strict=True)
        }

    async def close(self) -> None:
        self.servers.connections.close()
        self._map.cancel()
        await asyncio.gather(self._map, return_exceptions=True)

    # -- inside ----------------------------------------------------------------------------------------------

    async def _get(self, key: str, fresh: bool) -> Entry | None:
        reply = await self.servers.ask(key, Get(key, fresh))
        version = _of(Found, reply).version
        return Entry(key, reply.body, version) if version != ABSENT else None

    async def _list(self, prefix: str, fresh: bool) -> Listing:
        reply = await self.servers.ask(None, List(prefix, fresh))
        version = _of(Listed, reply).version
        entries = [Entry(*raw) for body in (*reply.earlier, reply.body) for raw in decode_entries(body)]
        return Listing(tuple(entries), version)

    async def _write(self, key: str, version: int | None, request: Request, body: bytes) -> int:
        seconds = self.servers.timeout_seconds

        async def attempt(seconds: float) -> int:
            return _of(Written, await self.servers.write(key, request, body, seconds)).version

        if version is None or version == ABSENT:
            return await write_once(version, lambda: attempt(seconds), lambda: attempt(seconds))
        return await write_once(version, lambda: attempt(seconds / 2), lambda: attempt(seconds / 2))

    async def _follow_map(self) -> None:
        """Follows the list of servers; while that is not possible the last known ones are asked."""
        while True:
            try:
                listing = await self._list(SERVERS, fresh=True)
                entries: dict[str, ServerEntry] = {}
                for entry in listing.entries:
                    self._note(entries, Change(*entry))
                self.mapped.set()
                watch = self.watch(SERVERS, listing.version)
                try:
                    async for change in watch:
                        self._note(entries, change)
                finally:
                    await watch.aclose()
                return
            except WatchLostError:
                continue
            except StoreUnavailableError:
                try:
                    await self.servers.pause(MAP_PAUSE_SECONDS)
                except StoreUnavailableError:
                    return
            except Exception:
                _logger.exception(
                    "could not follow the list of metadata servers: this is a defect of Penstock; please "
                    "report it"
                )
                await asyncio.sleep(MAP_PAUSE_SECONDS)

    def _note(self, entries: dict[str, ServerEntry], change: Change) -> None:
        name = change.key.removeprefix(SERVERS)
        entries.pop(name, None)
        if change.value is not None:
            try:
                entries[name] = decode_server(change.value)
            except msgspec.MsgspecError as error:
                _logger.error(
                    "ignored the entry %(entry)s, which does not describe a metadata server: %(error)s",
                    {"entry": change.key, "error": error},
                )
        self.servers.organisation = agreed(entries)


def _of(kind: type[Answered], reply: Reply) -> Answered:
    if not isinstance(reply.answer, kind):
        raise StoreUnavailableError(f"a metadata server answered with {type(reply.answer).__name__}")
    return reply.answer


async def open_remote_store(
    where: str | RemoteSettings, secret: bytes | None = None, dial: Dial = dial_plainly
) -> RemoteStore:
    """Opens the store of a URL (`parse_metadata_url`); raises `StoreUnavailableError` if no server answers.

    A server whose store is unavailable answers too: its copies can be read. A server that refuses this process is not
    asked again: `StoreRefusedError`.
    """
    store = RemoteStore(parse_metadata_url(where, secret) if isinstance(where, str) else where, dial)
    try:
        await store.servers.ask(None, Ping(), first=True)
    except BaseException:
        await store.close()
        raise
    return store

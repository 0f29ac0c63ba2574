"""A metadata server as a whole: its store, its cache, its listening socket, its registration.

It also starts while the store is unavailable, and answers as soon as it has entries.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from penstock.metadata.organisation.server_entry import REPLICATED, OrganisationName, ServerEntry
from penstock.metadata.remote.connection import Dial, dial_plainly
from penstock.metadata.remote.connections import Connections
from penstock.metadata.server.change_log import ChangeLog
from penstock.metadata.server.connection import ClientConnection
from penstock.metadata.server.entry_cache import EntryCache
from penstock.metadata.server.follower import Follower
from penstock.metadata.server.registration import LEASE_SECONDS, Registration
from penstock.metadata.server.service import MetadataService
from penstock.metadata.server.watching import BEAT_SECONDS, Watching
from penstock.metadata.store.interface import MetadataStore
from penstock.model.limits import MEBIBYTE
from penstock.wire.metadata_messages import Description, Welcome
from penstock.wire.strangers import Strangers

STOP_SECONDS = 3.0
"""How long a stop waits for requests that are under way."""
REFUSALS_SAID_EVERY_SECONDS = 60.0

_logger = logging.getLogger(__name__)


class Listener(Protocol):
    """A listening socket."""

    def close(self) -> None:
        """Accepts no more connections."""
        ...


class Listen(Protocol):
    """Accepts connections on a bound socket, with TLS or without."""

    async def __call__(self, make: Callable[[], asyncio.Protocol], listener: socket.socket) -> Listener: ...


async def listen_plainly(make: Callable[[], asyncio.Protocol], listener: socket.socket) -> Listener:
    """Without TLS."""
    return await asyncio.get_running_loop().create_server(make, sock=listener)


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The options of a metadata server."""

    name: str
    secret: bytes = field(repr=False)
    organisation: OrganisationName = REPLICATED
    copies: int = 2
    cache_bytes: int = 64 * MEBIBYTE
    change_log_bytes: int = 8 * MEBIBYTE
    max_connections: int = 4096
    lease_seconds: float = LEASE_SECONDS
    beat_seconds: float = BEAT_SECONDS


class MetadataServer:
    """The caller owns the store and closes it after the server."""

    def __init__(
        self,
        store: MetadataStore,
        settings: ServerSettings,
        dial: Dial = dial_plainly,
        listen: Listen = listen_plainly,
    ) -> None:
        self.secret = settings.secret
        self.welcome = Welcome(settings.name, settings.organisation, settings.copies)
        self.follower = Follower(
            store,
            settings.name,
            settings.organisation,
            settings.copies,
            EntryCache(settings.cache_bytes),
            ChangeLog(settings.change_log_bytes),
        )
        self._settings = settings
        self._store = store
        self._peers = Connections(settings.secret, f"metadata server {settings.name}", dial=dial)
        self._listen = listen
        self.service = MetadataService(settings.name, store, self.follower, self._peers)
        self.watching = Watching(store, self.follower, settings.beat_seconds)
        self.registration: Registration | None = None
        self._server: Listener | None = None
        self._connections: set[ClientConnection] = set()
        self._strangers: Strangers[ClientConnection] = Strangers()
        self._full = False
        self._refusals = 0
        self._silent_until = 0.0

    async def start(self, listener: socket.socket, advertised: str | None = None) -> str:
        """Listens on a bound socket, follows the store and registers; returns the address."""
        self._server = await self._listen(lambda: ClientConnection(self), listener)
        place = listener.getsockname()
        address = f"[{place[0]}]:{place[1]}" if ":" in place[0] else f"{place[0]}:{place[1]}"
        self.follower.start()
        entry = ServerEntry(
            name=self._settings.name,
            address=advertised or address,
            organisation=self._settings.organisation,
            copies=self._settings.copies,
            incarnation=os.urandom(8).hex(),
        )
        self.registration = Registration(self._store, entry, self._settings.lease_seconds)
        self.registration.start()
        return address

    async def close(self) -> None:
        """Takes itself off the map, answers what is under way, then ends all connections."""
        if self._server is not None:
            self._server.close()
        if self.registration is not None:
            await self.registration.close()
        await asyncio.gather(*(one.drain(STOP_SECONDS) for one in list(self._connections)))
        for connection in list(self._connections):
            connection.close()
        self._peers.close()
        await self.service.close()
        await self.follower.close()

    # -- what connections need -------------------------------------------------------------------------------

    def admit(self, connection: ClientConnection) -> bool:
        """Whether there is room for one more."""
        full = len(self._connections) >= self._settings.max_connections
        if full and not self._full:
            _logger.warning(
                "%(connections)d connections are open, %(strangers)d of them not authenticated: no more "
                "are accepted until some end",
                {"connections": len(self._connections), "strangers": len(self._strangers)},
            )
        self._full = full
        if not full:
            self._connections.add(connection)
            oldest = self._strangers.enter(connection)
            if oldest is not None:
                self.refused("a connection that was not authenticated, to make room for a new one")
                oldest.close()
        return not full

    def proven(self, connection: ClientConnection) -> None:
        """It knows the secret."""
        self._strangers.leave(connection)

    def refused(self, why: str) -> None:
        """A connection was refused; logged only now and then, so that repeated attempts cannot fill the log."""
        self._refusals += 1
        now = asyncio.get_running_loop().time()
        if now >= self._silent_until:
            _logger.warning(
                "refused %(reason)s (%(refusals)d so far)", {"reason": why, "refusals": self._refusals}
            )
            self._silent_until = now + REFUSALS_SAID_EVERY_SECONDS

    def gone(self, connection: ClientConnection) -> None:
        """It has ended."""
        self._connections.discard(connection)
        self._strangers.leave(connection)

    def describe(self) -> Description:
        """The server as its operator sees it."""
        follower, counts = self.follower, self.service.counts
        return Description(
            server=self._settings.name,
            organisation=self._settings.organisation,
            copies=self._settings.copies,
            servers=sorted(follower.organisation.servers),
            following=follower.following,
            version=follower.changes.heard,
            connections=len(self._connections),
            watches=sum(connection.watches for connection in self._connections),
            cached_entries=len(follower.cache),
            cached_bytes=follower.cache.bytes,
            hits=counts.hits,
            misses=counts.misses,
            writes=counts.writes,
            forwarded=counts.forwarded,
            strayed=counts.strayed,
        )

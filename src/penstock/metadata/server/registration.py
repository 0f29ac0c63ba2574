"""A metadata server's entry in the store: it exists while the server is alive, and is created again whenever it was lost."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from penstock.metadata.organisation.server_entry import ServerEntry, decode_server, encode_server, server_key
from penstock.metadata.store.interface import (
    ABSENT,
    LeaseEndedError,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)

LEASE_SECONDS = 10.0
RENEWALS_PER_LEASE = 3

_logger = logging.getLogger(__name__)


class NameTakenError(Exception):
    """Another server has taken the name; it was started later, so it keeps it."""


class Registration:
    """Keeps one entry alive."""

    def __init__(
        self,
        store: MetadataStore,
        entry: ServerEntry,
        lease_seconds: float = LEASE_SECONDS,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.registered = asyncio.Event()
        self._store = store
        self._entry = entry
        self._lease_seconds = lease_seconds
        self._pause = pause
        self._lease: int | None = None
        self._was_there = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Registers as soon as the store can be reached, and stays registered."""
        self._task = asyncio.create_task(self._run(), name="metadata server is registered")

    async def close(self) -> None:
        """Removes the entry, so that this server is not asked any more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if self._lease is not None:
            try:
                async with asyncio.timeout(1):
                    await self._store.revoke(self._lease)
            except (StoreUnavailableError, TimeoutError):
                pass  # it ends by itself

    async def _run(self) -> None:
        while True:
            try:
                if self._lease is None:
                    await self._register()
                elif not await self._store.renew(self._lease):
                    _logger.warning(
                        "the registration of metadata server %(server)s had expired; registering again",
                        {"server": self._entry.name},
                    )
                    self._lease = None
                    continue
            except NameTakenError:
                _logger.error(
                    "another metadata server has the name %(server)s: give each a different name. This "
                    "server runs without a registration",
                    {"server": self._entry.name},
                )
                return
            except (StoreUnavailableError, LeaseEndedError, VersionConflictError) as error:
                what = "is not registered yet" if self._lease is None else "could not renew its registration"
                _logger.info(
                    "metadata server %(server)s %(what)s: %(error)s",
                    {"server": self._entry.name, "what": what, "error": error},
                )
                if isinstance(error, LeaseEndedError | VersionConflictError):
                    self._lease = None
            await self._pause(self._lease_seconds / RENEWALS_PER_LEASE)

    async def _register(self) -> None:
        key, entry = server_key(self._entry.name), self._entry
        found = await self._store.get(key)
        if found is not None and self._was_there and _incarnation(found.value) != entry.incarnation:
            raise NameTakenError
        lease = await self._store.grant(self._lease_seconds)
        # The entry of an earlier life is replaced, because its lease may continue for some seconds.
        version = found.version if found is not None else ABSENT
        await self._store.put(key, encode_server(entry), version, lease)
        self._lease = lease
        self._was_there = True
        self.registered.set()


def _incarnation(stored: bytes) -> str | None:
    try:
        return decode_server(stored).incarnation
    except msgspec.MsgspecError:
        return None

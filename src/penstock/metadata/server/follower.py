"""Receives every change of the store for the parts of the server: the cache, the log of changes, the map of servers.

While the store cannot be reached everything stays as it is; one line in the log reports that, and one the end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import msgspec

from penstock.metadata.organisation.organisation import Organisation
from penstock.metadata.organisation.server_entry import (
    SERVERS,
    OrganisationName,
    ServerEntry,
    decode_server,
)
from penstock.metadata.server.change_log import ChangeLog
from penstock.metadata.server.entry_cache import EntryCache
from penstock.metadata.store.interface import (
    Change,
    Listing,
    MetadataStore,
    StoreUnavailableError,
    WatchLostError,
)
from penstock.wire.backoff import STORE_FOLLOWING

_logger = logging.getLogger(__name__)


class Broadcast:
    """Tells all that wait on the event loop that there may be news."""

    def __init__(self) -> None:
        self._listening: set[asyncio.Event] = set()

    def __len__(self) -> int:
        return len(self._listening)

    @contextmanager
    def subscribed(self) -> Iterator[asyncio.Event]:
        """An event that is set whenever there may be news; clear it before you look for them."""
        event = asyncio.Event()
        self._listening.add(event)
        try:
            yield event
        finally:
            self._listening.discard(event)

    def notify(self) -> None:
        """There may be news."""
        for event in self._listening:
            event.set()


class Follower:
    """One server's view of the store."""

    def __init__(
        self,
        store: MetadataStore,
        name: str,
        organisation: OrganisationName,
        copies: int,
        cache: EntryCache,
        changes: ChangeLog,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.cache = cache
        self.changes = changes
        self.organisation = Organisation(organisation, copies, {})
        self.ready = asyncio.Event()
        """Set when it has begun to receive changes."""
        self.following = False
        """Whether it receives changes as they happen, as far as it knows."""
        self.broadcast = Broadcast()
        """Rings for those who watch through this server: at every change, and when `following` ends."""
        self._name = name
        self._copies = copies
        self._store = store
        self._pause = pause
        self._loaded = False
        self._servers: dict[str, ServerEntry] = {}
        self._task: asyncio.Task[None] | None = None
        cache.keeps = lambda key: self.organisation.keeps(name, key)

    def start(self) -> None:
        """Begins to load and to follow."""
        self._task = asyncio.create_task(self._run(), name="metadata server follows its store")

    async def close(self) -> None:
        """Stops following."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.following = False
        self.broadcast.notify()

    async def _run(self) -> None:
        pauses = STORE_FOLLOWING.begin()
        failing = False
        while True:
            try:
                if not self._loaded:
                    await self._load()
                else:
                    await self._store.get("")  # the watch alone would not tell whether the store is back
                if failing:
                    _logger.warning("the metadata store is available again")
                pauses.reset()
                failing, self.following = False, True
                self.ready.set()
                await self._follow()
                return
            except WatchLostError as error:
                _logger.info("reloading the metadata: %(reason)s", {"reason": error})
                self._loaded = False
            except StoreUnavailableError as error:
                if not failing:
                    _logger.warning(
                        "the metadata store does not answer; the cached metadata stays in use: %(error)s",
                        {"error": error},
                    )
                failing = True
            except Exception:
                _logger.exception(
                    "could not follow the metadata; reloading it. This is a defect of Penstock; please "
                    "report it"
                )
                self._loaded = False
            self.following = False
            self.broadcast.notify()
            await self._pause(pauses.pause())

    async def _load(self) -> None:
        """A server that keeps only a part does not read the whole: its part comes as it is asked for."""
        sharded = self.organisation.sharded
        listing = await self._store.list(SERVERS if sharded else "")
        self._servers = {}
        for entry in listing.entries:
            self._note_server(Change(*entry))
        self._reorganise()
        self.cache.load(Listing((), listing.version) if sharded else listing, everything=not sharded)
        self.changes.begin(listing.version)
        self._loaded = True

    async def _follow(self) -> None:
        watch = self._store.watch("", self.changes.heard)
        try:
            # A store delivers all changes of one version without a pause, so that no watch that is woken here reads half of a
            # version.
            async for change in watch:
                self.cache.apply(change)
                self.changes.append(change)
                if change.key.startswith(SERVERS):
                    self._note_server(change)
                    self._reorganise()
                self.broadcast.notify()
        finally:
            await watch.aclose()

    def _note_server(self, change: Change) -> None:
        name = change.key.removeprefix(SERVERS)
        if not change.key.startswith(SERVERS):
            return
        if change.value is None:
            self._servers.pop(name, None)
            return
        try:
            self._servers[name] = decode_server(change.value)
        except msgspec.MsgspecError as error:
            _logger.error(
                "ignored the entry %(entry)s, which does not describe a metadata server: %(error)s",
                {"entry": change.key, "error": error},
            )
            self._servers.pop(name, None)

    def _reorganise(self) -> None:
        mine = self.organisation.name
        if self._servers.keys() != self.organisation.servers.keys():
            _logger.info(
                "the metadata servers are now %(servers)s",
                {"servers": ", ".join(sorted(self._servers)) or "none"},
            )
        for entry in self._servers.values():
            if (entry.organisation, entry.copies) != (mine, self._copies) and entry != (
                self.organisation.servers.get(entry.name)
            ):
                _logger.warning(
                    "metadata server %(server)s is configured as %(organisation)s with %(copies)d copies, "
                    "but this one as %(own_organisation)s with %(own_copies)d: give all the same settings",
                    {
                        "server": entry.name,
                        "organisation": entry.organisation,
                        "copies": entry.copies,
                        "own_organisation": mine,
                        "own_copies": self._copies,
                    },
                )
        self.organisation = Organisation(mine, self._copies, self._servers)
        if self.organisation.sharded:
            self.cache.keep_only_own()

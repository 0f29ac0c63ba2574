"""Keeps a `MetadataCache` the same as a store: loads it wholly, follows every change, writes through.

While the store cannot be reached the cache goes on answering with what it knows; one line in the log says so,
and one says when the store is back. A cache that is empty then is loaded with what metadata servers remember, if there
are any.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.metadata.cache import MetadataCache
from penstock.metadata.store.interface import (
    ABSENT,
    Change,
    MetadataStore,
    RememberingStore,
    StoreUnavailableError,
    VersionConflictError,
    WatchLostError,
)

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0

_log = logging.getLogger(__name__)


class MetadataMirror:
    """One store and the cache in front of it. The store stays the caller's, who closes it after the mirror."""

    def __init__(
        self,
        store: MetadataStore,
        cache: MetadataCache | None = None,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.cache = cache if cache is not None else MetadataCache()
        self.ready = asyncio.Event()
        """Set once the whole store is in the cache, as it is now or as metadata servers know it."""
        self._store = store
        self._pause = pause
        self._heard: int | None = None
        """The version up to which the watch has told everything; None: the store has to be loaded."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to load and follow."""
        self._task = asyncio.create_task(self._run(), name="metadata mirror")

    async def close(self) -> None:
        """Stops following; the cache stays as it is."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        """Writes to the store and, once it is there, to the cache."""
        try:
            new = await self._store.put(key, value, version, lease)
        except VersionConflictError:
            await self.refresh(key)
            raise
        self._apply_own(Change(key, value, new))
        return new

    async def delete(self, key: str, version: int | None = None) -> int:
        """Deletes from the store and, once it is gone there, from the cache."""
        try:
            gone = await self._store.delete(key, version)
        except VersionConflictError:
            await self.refresh(key)
            raise
        if gone != ABSENT:
            self._apply_own(Change(key, None, gone))
        return gone

    async def refresh(self, key: str) -> None:
        """Looks at the store, where the cache may be behind: who looks again there sees what is there now."""
        known = self.cache.version(key)
        entry = await self._store.get(key)
        if entry is not None:
            self._apply_own(Change(*entry))
        elif known != ABSENT:
            # It was deleted at some version after the one that was known; anything newer is newer than this too.
            self._apply_own(Change(key, None, known + 1))

    def _apply_own(self, change: Change) -> None:
        # What the watch has told already may have been undone since; the watch is right.
        if self._heard is None or change.version > self._heard or self.cache.version(change.key) != ABSENT:
            self._apply(change)

    async def _run(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        failing = False
        while True:
            try:
                if self._heard is None:
                    listing = await self._store.list("")
                    self.cache.load(listing)
                    self._heard = listing.version
                else:
                    await self._store.get("")  # the watch alone would not tell whether the store is back
                if failing:
                    _log.warning("the metadata store is back")
                pause, failing = FIRST_PAUSE_SECONDS, False
                self.ready.set()
                await self._follow(self._heard)
                return
            except WatchLostError as error:
                _log.info("the metadata is loaded anew: %s", error)
                self._heard = None
            except StoreUnavailableError as error:
                if not failing:
                    _log.warning("the metadata store does not answer, the cache goes on without: %s", error)
                failing = True
                if self._heard is None and not self.ready.is_set():
                    await self._remember()
                await self._pause(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
            except Exception:
                # Without this the cache would stay as it is for ever, with keys in it that were taken away.
                _log.exception("the metadata could not be followed; it is loaded anew: please report this")
                self._heard = None
                await self._pause(pause)
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _remember(self) -> None:
        """Begins with what others know, where the store itself does not answer; the watch tells what came after."""
        if not isinstance(self._store, RememberingStore):
            return
        try:
            listing = await self._store.list_known("")
        except StoreUnavailableError:
            return
        _log.warning("the metadata is what metadata servers know of it, until the store is back")
        self.cache.load(listing)
        self._heard = listing.version
        self.ready.set()

    async def _follow(self, after: int) -> None:
        watch = self._store.watch("", after)
        try:
            async for change in watch:
                self._apply(change)
                self._heard = change.version
                self.cache.settle(change.version)
        finally:
            await watch.aclose()

    def _apply(self, change: Change) -> None:
        try:
            self.cache.apply(change)
        except Exception:
            _log.exception("a change of %s was not taken in by all that listen", change.key)

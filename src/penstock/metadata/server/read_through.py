"""Reads of the store for entries that the cache does not have. Requests that wait for the same key share the next read.

A read that began before a request may return an older version than this request may see. So no request joins a read in
progress: all that arrive meanwhile get the next one.
"""

from __future__ import annotations

import asyncio

from penstock.metadata.server.entry_cache import EntryCache
from penstock.metadata.store.interface import ABSENT, Entry, MetadataStore, StoreUnavailableError

READ_SECONDS = 2.0
"""The maximum of a read, so that the client still has time to ask another server."""


class ReadThrough:
    """Fresh reads of single keys, each stored in the cache."""

    def __init__(self, store: MetadataStore, cache: EntryCache, seconds: float = READ_SECONDS) -> None:
        self._store = store
        self._cache = cache
        self._seconds = seconds
        self._under_way: dict[str, asyncio.Task[Entry | None]] = {}
        self._next: dict[str, asyncio.Task[Entry | None]] = {}

    async def get(self, key: str) -> Entry | None:
        """The entry as the store has it at some moment after this was asked."""
        if key not in self._under_way:
            task = self._begin(key)
        elif (waiting := self._next.get(key)) is not None:
            task = waiting
        else:
            task = self._next[key] = asyncio.create_task(self._after(key))
        return await asyncio.shield(task)

    async def close(self) -> None:
        """No request waits any longer."""
        tasks = [*self._under_way.values(), *self._next.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: str) -> asyncio.Task[Entry | None]:
        task = asyncio.create_task(self._read(key))
        self._under_way[key] = task
        task.add_done_callback(lambda done: self._ended(key, done))
        return task

    def _ended(self, key: str, task: asyncio.Task[Entry | None]) -> None:
        if self._under_way.get(key) is task:
            del self._under_way[key]
        if not task.cancelled():
            task.exception()  # the client has an answer, or no longer waits

    async def _after(self, key: str) -> Entry | None:
        # A request that came after this read ended may have begun another by now; the requests that wait here need a later
        # one.
        while (running := self._under_way.get(key)) is not None:
            await asyncio.wait({running})
        del self._next[key]
        return await asyncio.shield(self._begin(key))

    async def _read(self, key: str) -> Entry | None:
        ticket = self._cache.begin(key)
        try:
            async with asyncio.timeout(self._seconds):
                entry = await self._store.get(key)
        except TimeoutError as error:
            raise StoreUnavailableError(
                f"the metadata store did not answer within {self._seconds:g} s, try again"
            ) from error
        finally:
            self._cache.abandon(ticket)
        self._cache.finish(ticket, entry.value if entry else None, entry.version if entry else ABSENT)
        return entry

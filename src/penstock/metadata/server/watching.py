"""Watches through a metadata server: from its log of changes, or from the store if that does not go back far enough.

Now and then a watch without changes gets the version up to which everything was delivered, so that it can continue from
there at another server, and so that silence means that this server is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from penstock.metadata.server.follower import Follower
from penstock.metadata.store.interface import Change, MetadataStore, StoreUnavailableError
from penstock.metadata.store.watchers import News
from penstock.streams.waiting import came

BEAT_SECONDS = 1.0
STORE_WATCHES = 256
"""The maximum of watches that read from the store at once; one more must try elsewhere."""
PENDING_CHANGES = 256


class Watching:
    """All watches of one server."""

    def __init__(self, store: MetadataStore, follower: Follower, beat_seconds: float = BEAT_SECONDS) -> None:
        self._store = store
        self._follower = follower
        self._beat_seconds = beat_seconds
        self._from_store = 0

    async def news(self, prefix: str, after: int) -> AsyncGenerator[News, None]:
        """The changes for one watch, whole versions at a time; raises the errors of `MetadataStore.watch`."""
        follower = self._follower
        with follower.broadcast.subscribed() as broadcast:
            while True:
                broadcast.clear()
                if not follower.following:
                    raise StoreUnavailableError(
                        "this metadata server receives no changes from the store; try another"
                    )
                news = follower.changes.news(prefix, after)
                if news is None:
                    async with aclosing(self._news_of_store(prefix, after)) as told:
                        async for news in told:
                            after = news.upto
                            yield news
                    continue
                after = news.upto
                if news.changes:
                    yield news
                if not news.more and not await came(broadcast, self._beat_seconds):
                    yield News([], after, False)

    async def _news_of_store(self, prefix: str, after: int) -> AsyncGenerator[News, None]:
        """Ends when the log of changes goes back to the last delivered version."""
        if self._from_store >= STORE_WATCHES:
            raise StoreUnavailableError(
                "this metadata server has too many watches that are far behind, try another"
            )
        self._from_store += 1
        pump = StoreWatch(self._store, prefix, after)
        try:
            while after < self._follower.changes.floor:
                changes = await pump.take(self._beat_seconds)
                after = changes[-1].version if changes else after
                yield News(changes, after, False)
        finally:
            self._from_store -= 1
            await pump.close()


class StoreWatch:
    """A watch of the store that a separate task reads, so that whole versions can be taken."""

    def __init__(self, store: MetadataStore, prefix: str, after: int) -> None:
        self._pending: list[Change] = []
        self._arrived = asyncio.Event()
        self._taken = asyncio.Event()
        self._task = asyncio.create_task(self._read(store, prefix, after))
        self._task.add_done_callback(lambda task: self._arrived.set())

    async def take(self, seconds: float) -> list[Change]:
        """What has arrived; nothing after so long a time. Raises the watch's errors."""
        await came(self._arrived, seconds)
        self._arrived.clear()
        taken, self._pending = self._pending, []
        self._taken.set()
        if not taken and self._task.done():
            self._task.result()
            raise StoreUnavailableError("the metadata store is closed")
        if self._task.done():
            self._arrived.set()
        return taken

    async def close(self) -> None:
        """Ends the watch."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _read(self, store: MetadataStore, prefix: str, after: int) -> None:
        watch = store.watch(prefix, after)
        try:
            # Between the changes of one version nothing here waits, so that they are taken together.
            async for change in watch:
                while len(self._pending) >= PENDING_CHANGES and self._pending[-1].version != change.version:
                    self._taken.clear()
                    await self._taken.wait()
                self._pending.append(change)
                self._arrived.set()
        finally:
            await watch.aclose()

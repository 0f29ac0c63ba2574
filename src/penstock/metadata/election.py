"""Elections: of several candidates one leads, for as long as it renews its lease.

The leader is whoever made the entry `elections/<name>`. Its version rises from leader to leader, so it serves as
an epoch that fences those who led before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from penstock.metadata.store.interface import (
    ABSENT,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)

PREFIX = "elections/"
RENEWALS_PER_LEASE = 3


class Leadership:
    """What a candidate holds that was elected."""

    def __init__(
        self,
        store: MetadataStore,
        lease: int,
        epoch: int,
        seconds: float,
        began: float,
        clock: Callable[[], float],
    ) -> None:
        self.epoch = epoch
        self._store = store
        self._lease = lease
        self._seconds = seconds
        self._until = began + seconds
        self._clock = clock

    @property
    def holds(self) -> bool:
        """Whether nobody else can have been elected yet; counted from before the lease was asked for."""
        return self._clock() < self._until

    async def renew(self) -> bool:
        """Leads on; False if it is over."""
        began = self._clock()
        if await self._store.renew(self._lease):
            self._until = began + self._seconds
        else:
            self._until = began
        return self.holds

    async def keep(self, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Renews until the leadership is lost, also because the store cannot be reached in time."""
        while self.holds:
            await pause(self._seconds / RENEWALS_PER_LEASE)
            try:
                await self.renew()
            except StoreUnavailableError:
                continue

    async def resign(self) -> None:
        """Gives it up; the next candidate is elected at once."""
        self._until = self._clock()
        await self._store.revoke(self._lease)


class Election:
    """One office, and one candidate for it."""

    def __init__(
        self,
        store: MetadataStore,
        name: str,
        candidate: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._key = PREFIX + name
        self._candidate = candidate
        self._seconds = seconds
        self._clock = clock

    async def campaign(self) -> Leadership:
        """Returns when elected."""
        while True:
            began = self._clock()
            lease = await self._store.grant(self._seconds)
            try:
                epoch = await self._store.put(self._key, self._candidate.encode(), ABSENT, lease)
            except VersionConflictError:
                await self._store.revoke(lease)
                await self._until_vacant()
            else:
                return Leadership(self._store, lease, epoch, self._seconds, began, self._clock)

    async def observe(self) -> AsyncGenerator[str | None, None]:
        """Who leads now, and from then on every change; None while nobody does."""
        listing = await self._store.list(self._key)
        yield next((entry.value.decode() for entry in listing.entries if entry.key == self._key), None)
        async for change in self._store.watch(self._key, listing.version):
            if change.key == self._key:
                yield change.value.decode() if change.value is not None else None

    async def _until_vacant(self) -> None:
        leaders = self.observe()
        try:
            async for leader in leaders:
                if leader is None:
                    return
        finally:
            await leaders.aclose()

"""Elections over a metadata store: one of several candidates leads, for as long as it renews its lease.

`cluster/membership/campaign.py` decides what a candidate does when, and how long it may lead.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from penstock.cluster.membership.campaign import ELECTIONS, RENEWALS_PER_LEASE, Campaign, Effect
from penstock.cluster.membership.store_requests import Ask, Revoke
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError, WatchLostError
from penstock.metadata.store_asking import STORE_ERRORS, ask, carry_out, failure

PREFIX = ELECTIONS


class Leadership:
    """What an elected candidate holds."""

    def __init__(
        self, store: MetadataStore, campaign: Campaign, seconds: float, clock: Callable[[], float]
    ) -> None:
        self.epoch = campaign.epoch
        self._store = store
        self._campaign = campaign
        self._seconds = seconds
        self._clock = clock

    @property
    def holds(self) -> bool:
        """Whether no other candidate can have been elected yet."""
        return self._campaign.holds(_ms(self._clock()))

    async def renew(self) -> bool:
        """Leads on; False if it is over."""
        effects = deque(self._campaign.renew(_ms(self._clock())))
        while effects:
            effect = effects.popleft()
            if isinstance(effect, Ask):
                outcome = await carry_out(self._store, effect.request)
                effects += self._campaign.answered(effect.number, outcome, _ms(self._clock()))
        return self.holds

    async def keep(self, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Renews until the leadership is lost, also because the store cannot be reached in time."""
        while self.holds:
            await pause(self._seconds / RENEWALS_PER_LEASE)
            await self.renew()

    async def resign(self) -> None:
        """Gives it up; the next candidate is elected at once."""
        for effect in self._campaign.resign():
            if isinstance(effect, Ask):
                await ask(self._store, effect.request)


class Election:
    """One election, and one candidate in it."""

    def __init__(
        self,
        store: MetadataStore,
        name: str,
        candidate: str,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._name = name
        self._key = PREFIX + name
        self._candidate = candidate
        self._seconds = seconds
        self._clock = clock

    async def campaign(self) -> Leadership:
        """Returns when elected; raises `StoreUnavailableError`."""
        campaign = Campaign(self._name, self._candidate, round(self._seconds * 1000), self._now_ms())
        effects = deque(campaign.tick(self._now_ms()))
        raised: StoreUnavailableError | None = None
        while True:
            while effects:
                effect = effects.popleft()
                if isinstance(effect, Ask):
                    try:
                        outcome = await ask(self._store, effect.request)
                    except STORE_ERRORS as error:
                        outcome = failure(error)
                        if isinstance(error, StoreUnavailableError) and not isinstance(
                            effect.request, Revoke
                        ):
                            raised = error
                    effects += campaign.answered(effect.number, outcome, self._now_ms())
            if raised is not None:
                raise raised
            if campaign.holds(self._now_ms()):
                return Leadership(self._store, campaign, self._seconds, self._clock)
            effects += campaign.tick(self._now_ms()) or await self._next_news(campaign)

    async def observe(self) -> AsyncGenerator[str | None, None]:
        """The present holder, and from then on every change; None while the office is vacant."""
        async with aclosing(self._holders()) as holders:
            async for value, _ in holders:
                yield value.decode() if value is not None else None

    async def _next_news(self, campaign: Campaign) -> list[Effect]:
        """Waits until another candidate has left the office, and passes that to the campaign."""
        try:
            async with aclosing(self._holders()) as holders:
                async for value, version in holders:
                    effects = campaign.heard(value, version, self._now_ms())
                    if effects:
                        return effects
        except WatchLostError:
            pass  # its present holder is read again
        next_ms = campaign.next_ms()
        if next_ms is not None:
            await asyncio.sleep(max(next_ms - self._now_ms(), 1) / 1000)
        return []

    async def _holders(self) -> AsyncGenerator[tuple[bytes | None, int], None]:
        """(present value, version of the store), and from then on with every change."""
        listing = await self._store.list(self._key)
        yield (
            next((entry.value for entry in listing.entries if entry.key == self._key), None),
            listing.version,
        )
        async with aclosing(self._store.watch(self._key, listing.version)) as changes:
            async for change in changes:
                if change.key == self._key:
                    yield change.value, change.version

    def _now_ms(self) -> int:
        return _ms(self._clock())


def _ms(seconds: float) -> int:
    return int(seconds * 1000)

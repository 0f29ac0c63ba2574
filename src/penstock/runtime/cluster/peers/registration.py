"""A node's registration in the metadata store, over a real store and a real clock.

`cluster/membership/node_lease.py` decides the requests, how long the node may rely on its lease, and when it begins a new
life.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from penstock.cluster.layout.entries import NodeEntry, Position
from penstock.cluster.membership.node_lease import (
    LEASE_MS,
    CountOn,
    Effect,
    NewLife,
    NodeLease,
    Note,
    Registered,
)
from penstock.cluster.membership.store_requests import Ask, Outcome, Unknown
from penstock.metadata.store.interface import MetadataStore, StoreUnavailableError
from penstock.metadata.store_asking import StoreQuestions, carry_out
from penstock.streams.waiting import came

logger = logging.getLogger(__name__)

LEAVE_SECONDS = 1.0
SHORTEST_WAIT_SECONDS = 0.001


class Registration:
    """Keeps a node in the store as long as it runs."""

    def __init__(
        self,
        store: MetadataStore,
        entry: NodeEntry,
        now_ms: Callable[[], int],
        renewed: Callable[[int], None],
        new_life: Callable[[int], None],
        lease_ms: int = LEASE_MS,
    ) -> None:
        """`renewed` is called with the time until which the node cannot be replaced, `new_life` with its new `started_ms`."""
        self.registered = asyncio.Event()
        self._store = store
        self._now_ms = now_ms
        self._renewed = renewed
        self._new_life = new_life
        self._lease = NodeLease(entry, now_ms(), lease_ms)
        self._questions = StoreQuestions(store, self._answered)
        self._woken = asyncio.Event()
        self._leaving: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Registers, renews, registers again; until it is cancelled."""
        while True:
            self._woken.clear()
            self._perform(self._lease.tick(self._now_ms()))
            next_ms = self._lease.next_ms()
            await came(self._woken, self._seconds_until(next_ms) if next_ms is not None else None)

    def heard(self, value: bytes | None, version: int) -> None:
        """The present entry under the node's own key."""
        self._perform(self._lease.heard(value, version, self._now_ms()))
        self._woken.set()

    def say_positions(self, positions: dict[int, Position]) -> None:
        """How far the logs go that the node was asked about."""
        self._perform(self._lease.say_positions(positions, self._now_ms()))
        self._woken.set()

    async def say_leaving(self) -> None:
        """Announces that it is about to stop: it is assigned nothing more. Raises `StoreUnavailableError` if the store cannot
        be reached.
        """
        self._leaving = asyncio.get_running_loop().create_future()
        self._perform(self._lease.say_leaving(self._now_ms()))
        if self._lease.is_registered:
            await self._leaving

    async def leave(self) -> None:
        """A clean stop: others take over at once."""
        await self._questions.close()
        effects = self._lease.leave()
        self._perform(effect for effect in effects if not isinstance(effect, Ask))
        try:
            async with asyncio.timeout(LEAVE_SECONDS):
                for effect in effects:
                    if isinstance(effect, Ask):
                        await carry_out(self._store, effect.request)
        except TimeoutError:
            pass  # the lease ends by itself

    # -- effects ---------------------------------------------------------------------------------------------

    def _answered(self, question: int, outcome: Outcome) -> None:
        self._perform(self._lease.answered(question, outcome, self._now_ms()))
        self._woken.set()
        leaving = self._leaving
        if leaving is not None and not leaving.done():
            if self._lease.leaving_is_said:
                leaving.set_result(None)
            elif isinstance(outcome, Unknown):
                leaving.set_exception(StoreUnavailableError(outcome.why))
            elif not self._lease.is_registered:
                leaving.set_exception(StoreUnavailableError("the node's lease has ended"))

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Ask():
                    self._questions.ask(effect)
                case CountOn(until_ms):
                    self._renewed(until_ms)
                case NewLife(started_ms):
                    self._new_life(started_ms)
                case Registered():
                    self.registered.set()
                case Note(sentence):
                    logger.warning("%(sentence)s", {"sentence": sentence, "node": self._lease.entry.node})

    def _seconds_until(self, time_ms: int) -> float:
        return max((time_ms - self._now_ms()) / 1000, SHORTEST_WAIT_SECONDS)

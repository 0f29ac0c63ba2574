"""A node's entries in the metadata store, under its lease: that it lives, and how far logs go that nobody leads.

The lease is renewed several times in its length. What this node may count on ends earlier by its own clock
(`cluster/node_lease.py`). A lease that was lost is made anew under another `started_ms`, which tells everybody that
the node was gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from penstock.cluster.layout import NodeEntry, Position, PositionsEntry, encode, node_key, positions_key
from penstock.cluster.node_lease import LEASE_MS, RENEW_MS, RETRY_MS, counted_on_ms
from penstock.metadata.store.interface import (
    LeaseEndedError,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)

log = logging.getLogger(__name__)


@dataclass
class Registration:
    """Keeps a node in the store for as long as it runs."""

    store: MetadataStore
    entry: NodeEntry
    now_ms: Callable[[], int]
    renewed: Callable[[int], None]
    """Told until when nobody replaces the node."""
    new_life: Callable[[int], None]
    """Told the new `started_ms` after the lease was lost."""
    lease_ms: int = LEASE_MS
    registered: asyncio.Event = field(default_factory=asyncio.Event)
    _lease: int | None = None
    _positions: dict[int, Position] = field(default_factory=dict)
    _written: PositionsEntry | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Registers, renews, registers anew; until it is cancelled."""
        failing = False
        while True:
            try:
                if self._lease is None:
                    await self._register()
                else:
                    await self._renew(self._lease)
                await self._write_positions()
                if failing:
                    failing = False
                    log.warning("node %s is in the layout again", self.entry.node)
                await self._pause(RENEW_MS / 1000)
            except (StoreUnavailableError, LeaseEndedError, VersionConflictError) as error:
                if not failing:
                    log.warning("node %s cannot say that it lives: %s", self.entry.node, error)
                failing = True
                if isinstance(error, LeaseEndedError):
                    self._lease = None
                await asyncio.sleep(RETRY_MS / 1000)

    async def _pause(self, seconds: float) -> None:
        """Until the lease is to be renewed; positions are written in between."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            self._wake.clear()
            try:
                async with asyncio.timeout(left):
                    await self._wake.wait()
            except TimeoutError:
                return
            await self._write_positions()

    async def _register(self) -> None:
        began_ms = self.now_ms()
        lease = await self.store.grant(self.lease_ms / 1000)
        if self.registered.is_set():
            # Everybody who looks must see that it was gone, so the time is another one.
            started_ms = max(self.now_ms(), self.entry.started_ms + 1)
            self.entry = msgspec.structs.replace(self.entry, started_ms=started_ms)
            self.new_life(started_ms)
        await self.store.put(node_key(self.entry.node), encode(self.entry), None, lease)
        self._lease, self._written = lease, None
        self._count_on(began_ms)
        self.registered.set()

    async def _renew(self, lease: int) -> None:
        began_ms = self.now_ms()
        if await self.store.renew(lease):
            self._count_on(began_ms)
        else:
            log.warning("the lease of node %s has ended; it is made anew", self.entry.node)
            self._lease = None

    def _count_on(self, began_ms: int) -> None:
        self.renewed(began_ms + counted_on_ms(self.lease_ms))

    # -- positions -------------------------------------------------------------------------------------------

    def say_positions(self, positions: dict[int, Position]) -> None:
        """How far the logs go that the node was asked about."""
        if positions != self._positions:
            self._positions = positions
            self._wake.set()

    async def _write_positions(self) -> None:
        if self._lease is None:
            return
        entry = PositionsEntry(
            node=self.entry.node, started_ms=self.entry.started_ms, positions=self._positions
        )
        if entry == self._written or (self._written is None and not self._positions):
            return
        await self.store.put(positions_key(self.entry.node), encode(entry), None, self._lease)
        self._written = entry

    async def say_leaving(self) -> None:
        """It is about to stop: it is given nothing more. Raises what the store raises."""
        self.entry = msgspec.structs.replace(self.entry, leaving=True)
        if self._lease is not None:
            await self.store.put(node_key(self.entry.node), encode(self.entry), None, self._lease)

    async def leave(self) -> None:
        """A clean stop: others take over at once."""
        lease, self._lease = self._lease, None
        if lease is not None:
            self.renewed(0)  # whoever acknowledges alone stops before anybody can be elected
            try:
                async with asyncio.timeout(1.0):
                    await self.store.revoke(lease)
            except (StoreUnavailableError, TimeoutError):
                pass  # then it ends by itself

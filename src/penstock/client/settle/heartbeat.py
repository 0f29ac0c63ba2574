"""Extends leases while their messages are being worked on."""

from __future__ import annotations

import logging
from weakref import WeakSet

from penstock.client.connection.link import Link
from penstock.client.settle.settlement import SettleAction, Settler
from penstock.client_core.lease import Lease
from penstock.client_core.lease_keeping import LeaseKeeping
from penstock.model.errors import PenstockError

logger = logging.getLogger("penstock.client")


class Heartbeat:
    """Extends, three times in each visibility timeout, every lease with messages that are not settled.

    Leases are held weakly: messages that were neither settled nor kept by the program come back when their time is over,
    as they should.
    """

    def __init__(self, link: Link, settler: Settler, visibility_timeout_ms: int) -> None:
        self._link = link
        self._settler = settler
        self._extension = SettleAction("extend", visibility_timeout_ms)
        self._keeping = LeaseKeeping(visibility_timeout_ms)
        self._leases: WeakSet[Lease] = WeakSet()

    def keep(self, lease: Lease) -> None:
        """Extends the lease from now on."""
        self._leases.add(lease)
        if self._keeping.begins():
            self._link.loop.call_later(self._keeping.interval, self._beat)

    def _beat(self) -> None:
        kept, due = self._keeping.beat(list(self._leases), self._link.loop.time())
        self._leases = WeakSet(kept)
        if kept:
            self._link.loop.call_later(self._keeping.interval, self._beat)
        if due:
            self._link.background.run(self._extend(due))

    async def _extend(self, leases: list[Lease]) -> None:
        try:
            settlement = await self._settler.all_of(self._extension, leases)
        except PenstockError as error:
            logger.warning("could not extend leases: %(error)s", {"error": error})
            return
        if settlement.stale:
            logger.warning(
                "%(messages)d messages were not extended in time; their leases have ended",
                {"messages": len(settlement.stale)},
            )

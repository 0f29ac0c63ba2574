"""Keeps leases alive while their messages are being worked on."""

from __future__ import annotations

import logging
from weakref import WeakSet

from penstock.client.lease import Lease
from penstock.client.link import Link
from penstock.client.settlement import Action, Settler
from penstock.model.errors import PenstockError

log = logging.getLogger("penstock.client")

BEATS_PER_TIMEOUT = 3


class Heartbeat:
    """Extends, three times per visibility timeout, every lease with messages that are not settled.

    Leases are held weakly: messages that were neither settled nor kept by anyone come back when their time is
    up, as they should.
    """

    def __init__(self, link: Link, settler: Settler, visibility_timeout_ms: int) -> None:
        self._link = link
        self._settler = settler
        self._extension = Action("extend", visibility_timeout_ms)
        self._interval = visibility_timeout_ms / 1000 / BEATS_PER_TIMEOUT
        self._leases: WeakSet[Lease] = WeakSet()
        self._beating = False

    def keep(self, lease: Lease) -> None:
        """Extends the lease from now on."""
        self._leases.add(lease)
        if not self._beating and self._interval > 0:
            self._beating = True
            self._link.loop.call_later(self._interval, self._beat)

    def _beat(self) -> None:
        # A lease younger than half an interval can wait for the next beat; a busy consumer has mostly those.
        young = self._link.loop.time() - self._interval / 2
        leases = [lease for lease in self._leases if lease.open_runs()]
        self._leases = WeakSet(leases)
        self._beating = bool(leases)
        if not self._beating:
            return
        self._link.loop.call_later(self._interval, self._beat)
        if due := [lease for lease in leases if lease.arrived <= young]:
            self._link.background.run(self._extend(due))

    async def _extend(self, leases: list[Lease]) -> None:
        try:
            settlement = await self._settler.all_of(self._extension, leases)
        except PenstockError as error:
            log.warning("could not extend leases: %s", error)
            return
        if settlement.stale:
            log.warning(
                "%d messages were not extended in time; they are no longer ours", len(settlement.stale)
            )

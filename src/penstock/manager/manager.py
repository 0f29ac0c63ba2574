"""The internal manager: one of the nodes is elected, follows the layout and writes the changes that are due.

It decides nothing itself. What it writes is on condition that the entry is still the one that was seen, so losing the
office late, or holding it twice for a moment, does no harm; and nothing is lost with it, because it keeps no plans.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from penstock.cluster.changes import Change
from penstock.cluster.internal_manager import DEFAULT_SETTINGS, decide, unsettled
from penstock.cluster.layout import CAPACITY, NODES, POSITIONS, UNCLEAN
from penstock.cluster.manager_settings import ManagerSettings
from penstock.cluster.view import PREFIX, ClusterView
from penstock.manager.capacity_log import CapacityLog
from penstock.metadata.election import Election, Leadership
from penstock.metadata.mirror import MetadataMirror
from penstock.metadata.store import interface
from penstock.metadata.store.interface import (
    LeaseEndedError,
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)

OFFICE = "manager"
LEASE_SECONDS = 2.0
RETRY_SECONDS = 0.5
SOON_SECONDS = 0.1
"""Until the next look while something waits for time to pass; twice as long each time that nothing was to be done."""
LATER_SECONDS = 5.0
GATHER_SECONDS = 0.5
"""Looks for changes that are not urgent are so far apart: a thousand new queues are not a thousand looks."""
WRITES_AT_ONCE = 64
URGENT = (NODES, POSITIONS, UNCLEAN)
"""Changes under these may mean that somebody does not serve, or how that can end."""

_log = logging.getLogger(__name__)


class Manager:
    """A candidate for the office, and its holder once elected. `clock` tells milliseconds, from whenever."""

    def __init__(
        self,
        store: MetadataStore,
        node_name: str,
        clock: Callable[[], int],
        settings: ManagerSettings = DEFAULT_SETTINGS,
        lease_seconds: float = LEASE_SECONDS,
        mirror: MetadataMirror | None = None,
    ) -> None:
        """A `mirror` that is given stays its owner's, who has started it: every change is then heard of once for both."""
        self.view = ClusterView()
        """What is known of the cluster, also while another one manages it."""
        self.leads = False
        self._capacity_log = CapacityLog(self.view)
        self._store = store
        self._node_name = node_name
        self._clock = PatientClock(clock)
        self._settings = settings
        self._lease_seconds = lease_seconds
        self._news = asyncio.Event()
        self._urgent = asyncio.Event()
        self._stopping = asyncio.Event()
        self._is_own_mirror = mirror is None
        self._mirror = mirror if mirror is not None else MetadataMirror(store)
        for entry in self._mirror.cache.list(PREFIX):
            self._changed(interface.Change(*entry))
        self._mirror.cache.listen(PREFIX, self._changed)

    async def run(self) -> None:
        """Stands for election, manages, stands again; until `stop`, or until it is cancelled."""
        if self._is_own_mirror:
            self._mirror.start()
        stop = asyncio.create_task(self._stopping.wait(), name="manager stop")
        work = asyncio.create_task(self._work(), name="manager")
        try:
            await asyncio.wait({stop, work}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            for task in (stop, work):
                task.cancel()
            await asyncio.gather(stop, work, return_exceptions=True)
            if self._is_own_mirror:
                await self._mirror.close()

    def stop(self) -> None:
        """Resigns, so that another one is elected at once, and ends `run`."""
        self._stopping.set()

    # --- the office -----------------------------------------------------------------------------------------

    async def _work(self) -> None:
        await self._mirror.ready.wait()
        while True:
            try:
                election = Election(self._store, OFFICE, self._node_name, self._lease_seconds)
                leadership = await election.campaign()
                await self._hold(leadership)
            except (StoreUnavailableError, LeaseEndedError):
                await asyncio.sleep(
                    RETRY_SECONDS
                )  # the mirror has said already that the store does not answer
            except Exception:
                # A node goes on without; the others would stand for election only after this one's lease.
                _log.exception("the cluster manager failed and begins anew: please report this")
                await asyncio.sleep(RETRY_SECONDS)

    async def _hold(self, leadership: Leadership) -> None:
        """Manages until the office is lost; gives it up in every other case."""
        _log.info("%s manages the cluster now", self._node_name)
        self.leads = True
        self._capacity_log.look_at_all()
        keeping = asyncio.create_task(leadership.keep(), name="manager lease")
        managing = asyncio.create_task(self._manage(leadership), name="manager decisions")
        try:
            await asyncio.wait({keeping, managing}, return_when=asyncio.FIRST_COMPLETED)
            if managing.done():
                managing.result()
        finally:
            self.leads = False
            for task in (keeping, managing):
                task.cancel()
            await asyncio.gather(keeping, managing, return_exceptions=True)
            _log.info("%s no longer manages the cluster", self._node_name)
            await self._resign(leadership)

    async def _resign(self, leadership: Leadership) -> None:
        try:
            async with asyncio.timeout(self._lease_seconds):
                await leadership.resign()
        except (StoreUnavailableError, TimeoutError):
            pass  # the lease ends by itself

    # --- the work -------------------------------------------------------------------------------------------

    async def _manage(self, leadership: Leadership) -> None:
        pause = SOON_SECONDS
        while leadership.holds:
            self._news.clear()
            self._urgent.clear()
            changes = decide(self.view, self._clock(), self._settings)
            if changes:
                await self._write(changes, leadership)
            is_news = await self._wait(pause if changes or unsettled(self.view) else LATER_SECONDS)
            pause = SOON_SECONDS if changes or is_news else min(pause * 2, LATER_SECONDS)

    async def _wait(self, seconds: float) -> bool:
        """Until something has changed (True) or the time has passed; at once where it is urgent."""
        if not await _happens(self._news, seconds):
            return False
        if not self._urgent.is_set():
            await _happens(self._urgent, min(GATHER_SECONDS, seconds))
        return True

    async def _write(self, changes: list[Change], leadership: Leadership) -> None:
        """Many at once, because the store takes many at once; they are about different entries."""
        turns = asyncio.Semaphore(WRITES_AT_ONCE)

        async def write(change: Change) -> None:
            async with turns:
                if leadership.holds:
                    await self._write_one(change)

        async with asyncio.TaskGroup() as group:
            for change in changes:
                group.create_task(write(change))

    async def _write_one(self, change: Change) -> None:
        try:
            value = change.value
            if value is None:
                await self._mirror.delete(change.key, change.version)
            else:
                await self._mirror.put(change.key, value, change.version)
        except VersionConflictError:
            _log.debug("%s was changed by somebody else: %s", change.key, change.reason)
        except StoreUnavailableError as error:
            _log.warning("%s could not be changed (%s): %s", change.key, error, change.reason)
        else:
            _log.info("%s: %s", change.key.removeprefix(PREFIX), change.reason)

    def _changed(self, change: interface.Change) -> None:
        lives = self.view.members.lives
        self.view.apply(change.key, change.value, change.version, self._clock())
        why = self.view.unreadable.get(change.key)
        if why is not None:
            _log.error("the manager leaves %s alone because it cannot read it: %s", change.key, why)
        if change.key.startswith(CAPACITY):
            if self.leads:
                self._capacity_log.look_at(change.key.removeprefix(CAPACITY))
            return
        if change.key.startswith(NODES) and self.view.members.lives == lives:
            return  # a node only says how busy it is, which can wait for the next look
        self._news.set()
        if change.key.startswith(URGENT):
            self._urgent.set()


class PatientClock:
    """Goes on where it was when the clock it reads was set back: nobody waits for the hour to come again."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._read_ms = clock()
        self._now_ms = self._read_ms

    def __call__(self) -> int:
        read_ms = self._clock()
        self._now_ms += max(0, read_ms - self._read_ms)
        self._read_ms = read_ms
        return self._now_ms


async def _happens(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True

"""The internal manager of a cluster over a real store: one node is elected, and writes the changes that are due.

It decides nothing itself. `cluster/manager/` decides when a node may manage, when it checks the layout and what it writes;
this module carries it out. If a node notices late that it lost the office, or two hold it for a moment, this does no harm,
because every write is on condition that the entry is still the one that was read. Nothing is lost with a manager, because
it keeps no plans.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable

from penstock.cluster.layout.decoder import capacity_of_key
from penstock.cluster.layout.view import PREFIX, ClusterView
from penstock.cluster.manager.candidate import LEASE_MS, MANAGER_ELECTION, Effect, ManagerCandidate
from penstock.cluster.manager.decide import DEFAULT_SETTINGS
from penstock.cluster.manager.loop import Write
from penstock.cluster.manager.settings import ManagerSettings
from penstock.cluster.membership.campaign import Deposed, Elected
from penstock.cluster.membership.store_requests import Ask, Outcome
from penstock.metadata.election import PREFIX as ELECTIONS
from penstock.metadata.mirror.mirror import MetadataMirror
from penstock.metadata.store import interface
from penstock.metadata.store.interface import (
    MetadataStore,
    StoreUnavailableError,
    VersionConflictError,
)
from penstock.metadata.store_asking import StoreQuestions, carry_out
from penstock.runtime.cluster.capacity_log import CapacityLog
from penstock.streams.waiting import came

__all__ = ["LEASE_SECONDS", "MANAGER_ELECTION", "Manager"]

LEASE_SECONDS = LEASE_MS / 1000
SHORTEST_WAIT_SECONDS = 0.001

_logger = logging.getLogger(__name__)


class Manager:
    """A candidate, and the manager once elected.

    `clock` returns milliseconds from any origin; it never goes back, and runs at nine tenths of its pace or faster.
    """

    def __init__(
        self,
        store: MetadataStore,
        node_name: str,
        clock: Callable[[], int],
        settings: ManagerSettings = DEFAULT_SETTINGS,
        lease_seconds: float = LEASE_SECONDS,
        mirror: MetadataMirror | None = None,
    ) -> None:
        """The caller owns and starts a given `mirror`: then each change is received once for both."""
        self._store = store
        self._node_name = node_name
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._office = ManagerCandidate(node_name, clock(), settings, round(lease_seconds * 1000))
        self._capacity_log = CapacityLog(self.view)
        self._questions = StoreQuestions(store, self._answered)
        self._writes: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()
        self._stopping = False
        self._is_own_mirror = mirror is None
        self._mirror = mirror if mirror is not None else MetadataMirror(store)
        for prefix in (PREFIX, ELECTIONS):
            for entry in self._mirror.cache.list(prefix):
                self._changed(interface.Change(*entry))
            self._mirror.cache.listen(prefix, self._changed)
        self._mirror.follows_changed.append(self._follows)

    @property
    def view(self) -> ClusterView:
        """The known layout of the cluster, also while another node manages it."""
        return self._office.view

    @property
    def leads(self) -> bool:
        """Whether it manages the cluster, as far as it has noticed."""
        return self._office.leads

    async def run(self) -> None:
        """Stands for election, manages, stands again; until `stop`, or until it is cancelled."""
        if self._is_own_mirror:
            self._mirror.start()
        try:
            ready = asyncio.create_task(self._mirror.ready.wait(), name="manager mirror")
            stop = asyncio.create_task(self._stopped(), name="manager stop")
            await asyncio.wait({ready, stop}, return_when=asyncio.FIRST_COMPLETED)
            for task in (ready, stop):
                task.cancel()
            await self._work()
        finally:
            await self._close()

    def stop(self) -> None:
        """Resigns, so that another one is elected at once, and ends `run`."""
        self._stopping = True
        self._woken.set()

    async def _stopped(self) -> None:
        while not self._stopping:
            self._woken.clear()
            await self._woken.wait()

    async def _work(self) -> None:
        while not self._stopping:
            self._woken.clear()
            try:
                self._perform(self._office.tick(self._clock()))
            except Exception:
                # A node continues without it; another one manages the cluster after this one's lease.
                _logger.exception(
                    "the cluster manager failed and restarts: this is a defect of Penstock; please report it"
                )
                self._perform(self._office.give_up(self._clock()))
            next_ms = self._office.next_ms()
            seconds = (
                None if next_ms is None else max((next_ms - self._clock()) / 1000, SHORTEST_WAIT_SECONDS)
            )
            await came(self._woken, seconds)

    async def _close(self) -> None:
        if self.leads:
            _logger.info(
                "node %(node)s no longer manages the cluster: it is stopping", {"node": self._node_name}
            )
        effects = self._office.resign()
        await self._questions.close()
        for task in list(self._writes):
            task.cancel()
        await asyncio.gather(*self._writes, return_exceptions=True)
        try:
            async with asyncio.timeout(self._lease_seconds):
                for effect in effects:
                    if isinstance(effect, Ask):
                        await carry_out(self._store, effect.request)
        except TimeoutError:
            pass  # the lease ends by itself
        if self._is_own_mirror:
            await self._mirror.close()

    # --- effects --------------------------------------------------------------------------------------------

    def _answered(self, question: int, outcome: Outcome) -> None:
        self._perform(self._office.answered(question, outcome, self._clock()))
        self._woken.set()

    def _follows(self, follows: bool) -> None:
        self._office.hears(self._clock(), hears=follows)
        self._woken.set()

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Ask():
                    self._questions.ask(effect)
                case Write():
                    task = asyncio.get_running_loop().create_task(self._write(effect))
                    self._writes.add(task)
                    task.add_done_callback(self._writes.discard)
                case Elected():
                    _logger.info("node %(node)s manages the cluster now", {"node": self._node_name})
                    self._capacity_log.look_at_all()
                case Deposed(why):
                    _logger.info(
                        "node %(node)s no longer manages the cluster: %(reason)s",
                        {"node": self._node_name, "reason": why},
                    )

    async def _write(self, write: Write) -> None:
        change = write.change
        try:
            value = change.value
            if value is None:
                await self._mirror.delete(change.key, change.version)
            else:
                await self._mirror.put(change.key, value, change.version)
        except VersionConflictError:
            _logger.debug(
                "another process changed %(entry)s first: %(reason)s",
                {"entry": change.key, "reason": change.reason},
            )
        except StoreUnavailableError as error:
            _logger.warning(
                "could not change %(entry)s (%(error)s): %(reason)s",
                {"entry": change.key, "error": error, "reason": change.reason},
            )
        else:
            _logger.info(
                "%(entry)s: %(reason)s", {"entry": change.key.removeprefix(PREFIX), "reason": change.reason}
            )
        self._office.written(write.number)
        self._woken.set()

    def _changed(self, change: interface.Change) -> None:
        self._perform(self._office.heard(change.key, change.value, change.version, self._clock()))
        why = self.view.unreadable.get(change.key)
        if why is not None:
            _logger.error(
                "the manager ignores entry %(entry)s, because it cannot read it: %(error)s",
                {"entry": change.key, "error": why},
            )
        queue = capacity_of_key(change.key)
        if self.leads and queue is not None:
            self._capacity_log.look_at(queue)
        self._woken.set()

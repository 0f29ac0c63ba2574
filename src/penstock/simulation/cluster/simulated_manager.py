"""The manager's candidate on one simulated node: `cluster/manager/candidate.py`, carried out over the simulated store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.view import PREFIX
from penstock.cluster.manager.candidate import Effect, ManagerCandidate
from penstock.cluster.manager.loop import Write
from penstock.cluster.manager.settings import ManagerSettings
from penstock.cluster.membership.campaign import ELECTIONS, Deposed, Elected
from penstock.cluster.membership.store_requests import Ask, Delete, Done, Outcome, Put, Request
from penstock.metadata.store.interface import Change as StoredChange
from penstock.simulation.cluster.alarm import Alarm
from penstock.simulation.cluster.mirror import SimulatedMirror
from penstock.simulation.schedule import Times
from penstock.simulation.trace import Trace

SETTINGS = ManagerSettings(replace_after_ms=60_000, trust_after_ms=2_000)

Asks = Callable[[Request, Callable[[Outcome], None]], None]


class ManagerObserver(Protocol):
    """Observes the actions of managers."""

    def manager_writes(self, name: str, epoch: int, request: Put | Delete, known: int) -> None:
        """A node asks for this, as the manager elected at `epoch`, which knows the entry at version `known`."""


class SimulatedManager:
    """A candidate, and the manager once elected."""

    def __init__(
        self,
        name: str,
        mirror: SimulatedMirror,
        times: Times,
        trace: Trace,
        do: Callable[[Callable[[], None]], None],
        ask: Asks,
        observer: ManagerObserver,
    ) -> None:
        """`ask` asks the store for the node."""
        self._name = name
        self._mirror = mirror
        self._times = times
        self._trace = trace
        self._do = do
        self._ask = ask
        self._observer = observer
        self.candidate = ManagerCandidate(name, times.now_ms, SETTINGS)
        self._alarm = Alarm(times, self.candidate.next_ms, lambda: do(self._tick))
        for prefix in (PREFIX, ELECTIONS):
            for entry in sorted(mirror.cache.list(prefix)):
                self._heard(StoredChange(*entry))
            mirror.cache.listen(prefix, self._heard)
        mirror.follows_changed.append(self._follows)
        self._tick()

    def _tick(self) -> None:
        self._perform(self.candidate.tick(self._times.now_ms))
        self._alarm.set()

    def resign(self) -> None:
        """The node is about to stop: another one takes over at once."""
        self._perform(self.candidate.resign())

    def _tick_soon(self) -> None:
        """After everything that comes at the same moment."""
        self._times.after(0, lambda: self._do(self._tick))

    def _heard(self, change: StoredChange) -> None:
        self._perform(self.candidate.heard(change.key, change.value, change.version, self._times.now_ms))
        self._alarm.set()

    def _follows(self, follows: bool) -> None:
        self.candidate.hears(self._times.now_ms, hears=follows)
        self._tick_soon()

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Ask(number, request):
                    self._ask(request, lambda outcome, number=number: self._answered(number, outcome))  # type: ignore[misc]  # a lambda with its own value
                case Write(number, change):
                    self._write(number, change)
                case Elected():
                    self._trace.add(self._name, "manages the cluster now")
                case Deposed(why):
                    self._trace.add(self._name, f"no longer manages the cluster: {why}")

    def _answered(self, number: int, outcome: Outcome) -> None:
        self._perform(self.candidate.answered(number, outcome, self._times.now_ms))
        self._tick_soon()

    def _write(self, number: int, change: Change) -> None:
        value = change.value

        def written(outcome: Outcome) -> None:
            if isinstance(outcome, Done):
                self._trace.add(self._name, f"{change.key.removeprefix(PREFIX)}: {change.reason}")
            self.candidate.written(number)
            self._tick_soon()

        request: Put | Delete = (
            Delete(change.key, change.version) if value is None else Put(change.key, value, change.version)
        )
        known = self._mirror.cache.version(change.key)
        self._observer.manager_writes(self._name, self.candidate.epoch, request, known)
        self._mirror.carry_out(request, written)

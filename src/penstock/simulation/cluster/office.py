"""The office of the manager: nodes stand for it, one holds it under a lease and writes what the real `decide` says.

Losing it late is part of the simulation: a holder learns that its lease has ended only when it asks next.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.cluster import internal_manager
from penstock.cluster.changes import Change
from penstock.cluster.manager_settings import ManagerSettings
from penstock.cluster.view import PREFIX, ClusterView
from penstock.simulation.cluster.metadata import SimulatedMetadata, StoredChange
from penstock.simulation.schedule import Times
from penstock.simulation.trace import Trace

OFFICE = "election/manager"
LEASE_MS = 2_000
_STAND_MS = 300
_LOOK_MS = 100
SETTINGS = ManagerSettings(replace_after_ms=60_000, trust_after_ms=2_000)

Later = Callable[[int, Callable[[], None]], None]


class Office:
    """A candidate, and the manager once elected."""

    def __init__(
        self, name: str, store: SimulatedMetadata, schedule: Times, trace: Trace, later: Later
    ) -> None:
        self._name = name
        self._store = store
        self._schedule = schedule
        self._trace = trace
        self._later = later
        self.view = ClusterView()
        self._lease: int | None = None
        self.holds = False
        self._under_way: set[str] = set()
        later(_STAND_MS, self._stand)

    def heard(self, change: StoredChange) -> None:
        """The store has changed."""
        if change.key.startswith(PREFIX):
            self.view.apply(change.key, change.value, change.version, self._schedule.now_ms)

    def _stand(self) -> None:
        """Asks for the office, or for more time in it."""
        name = self._name

        def elect() -> tuple[int, bool]:
            """(lease, whether the office is held under it)."""
            store, lease = self._store, self._lease
            if lease is None or not store.renew(lease):
                lease = store.grant(LEASE_MS)
            found = store.entries.get(OFFICE)
            if found is None:
                store.put(OFFICE, name.encode(), 0, lease)
            elif found.value == name.encode() and lease != self._lease:
                return lease, False  # an earlier life's, which has to end first
            return lease, store.entries[OFFICE].value == name.encode()

        self._store.ask(name, elect, lambda outcome: self._later(0, lambda: self._elected(outcome)))

    def _elected(self, outcome: tuple[int, bool] | None) -> None:
        if outcome is not None:
            held = self.holds
            self._lease, self.holds = outcome
            if self.holds and not held:
                self._trace.add(self._name, "manages the cluster now")
                self._later(0, self._manage)
        self._later(_STAND_MS, self._stand)

    def _manage(self) -> None:
        if not self.holds:
            return
        for change in internal_manager.decide(self.view, self._schedule.now_ms, SETTINGS):
            if change.key not in self._under_way:
                self._write(change)
        self._later(_LOOK_MS, self._manage)

    def _write(self, change: Change) -> None:
        store, value = self._store, change.value
        self._under_way.add(change.key)

        def written(done: bool | None) -> None:
            self._under_way.discard(change.key)
            if done:
                self._trace.add(self._name, f"{change.key.removeprefix(PREFIX)}: {change.reason}")

        def write() -> bool:
            if value is None:
                return store.delete(change.key, change.version)
            return store.put(change.key, value, change.version)

        store.ask(self._name, write, lambda done: self._later(0, lambda: written(done)))

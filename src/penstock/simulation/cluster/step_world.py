"""Carries out the steps of a simulated front end, the counterpart of `runtime.cluster.link`, over simulated time and networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.line_call import Call
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.cluster.metadata import SimulatedMetadata, StoredChange
from penstock.simulation.cluster.partition_calls import SimulatedCalls
from penstock.simulation.schedule import Schedule
from penstock.steps.runner import not_carried_out
from penstock.steps.step import Ask, Look, Put, Remove, Single, Stored, StoreStep, Until

_LOOK_MS = 20


class StepWorld:
    """What the requests of one front end share: its map, its connections, the store."""

    def __init__(
        self,
        name: str,
        clients: Mapping[str, SimulatedClient],
        fabric: Fabric,
        metadata: SimulatedMetadata,
        schedule: Schedule,
        random: Random,
    ) -> None:
        self.name = name
        self.map = ClusterMap()
        self._versions: dict[str, int] = {}
        self._metadata = metadata
        self._schedule = schedule
        self.calls = SimulatedCalls(self.map, clients, self._refresh, fabric, schedule, random)
        self._watch = metadata.watch(name, self._heard)

    def stop(self) -> None:
        """The front end is killed."""
        self.calls.stop()
        self._watch.ended = True

    # -- the layout ------------------------------------------------------------------------------------------

    def _heard(self, change: StoredChange) -> None:
        """Newer entries replace known ones; an answer of the store may be older than a change."""
        if change.version >= self._versions.get(change.key, 0):
            self._versions[change.key] = change.version
            self.map.apply(change.key, change.value)

    def _refresh(self, key: str, done: Callable[[], None]) -> None:
        self._use_store(Look(key), lambda _: done())

    # -- what steps are carried out with ---------------------------------------------------------------------

    def start(self, step: Single, done: Callable[[Any], None]) -> Call | None:
        """See `World`. Any node: one that leads something. The map is updated now and then."""
        match step:
            case Ask() if step.partition:
                return self.calls.start(step, done)
            case Ask():
                return self.calls.start(Ask(step.request, partition=min(self.map.partitions)), done)
            case Look() | Put() | Remove():
                self._use_store(step, done)
            case Until():
                self._look(step.holds, self._schedule.elapsed_ms + step.wait_ms, done)
            case _:
                raise not_carried_out(step)
        return None

    def cancel(self, under_way: Call) -> None:
        """See `World`."""
        self.calls.cancel(under_way)

    def _look(self, holds: Callable[[], bool], end_ms: int, done: Callable[[bool], None]) -> None:
        if holds() or self._schedule.elapsed_ms >= end_ms:
            done(holds())
        else:
            self._schedule.after(_LOOK_MS, lambda: self._look(holds, end_ms, done))

    def _use_store(self, step: StoreStep, done: Callable[[Any], None]) -> None:
        """Reads or writes the layout; the outcome is a value or an exception."""
        store = self._metadata
        looked_at = 0

        def carry_out() -> Any:
            nonlocal looked_at
            match step:
                case Look(key):
                    looked_at = store.version
                    found = store.entries.get(key)
                    return Stored(found.value, found.version) if found is not None else Stored(None, 0)
                case Put(key, value, version):
                    return (
                        store.entries[key].version
                        if store.put(key, value, version)
                        else VersionConflictError()
                    )
                case Remove(key, version):
                    return None if store.delete(key, version) else VersionConflictError()

        def answered(outcome: Any) -> None:
            if outcome is None and not isinstance(step, Remove):
                outcome = PenstockError(ErrorCode.METADATA_UNAVAILABLE, "the store does not answer")
            elif isinstance(step, Look) and outcome.value is not None:
                self._heard(StoredChange(step.key, outcome.value, outcome.version))
            elif isinstance(step, Look):
                self._heard(StoredChange(step.key, None, looked_at))
            done(outcome)

        store.ask(self.name, carry_out, answered)

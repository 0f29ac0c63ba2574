"""A targeted fault in copies: a node loses a partition while its disk is full and a checkpoint copies living entries of it.

Then the node gets the partition again, and copies of it succeed. The rest of the failed copy must not affect them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from random import Random

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.limits import KIBIBYTE
from penstock.model.settings import QueueSettings
from penstock.simulation.cluster.fault_plan import ClusterFaultPlan
from penstock.simulation.cluster.machine import ClusterMachine
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.cluster.store_faults import StoreFaultPlan
from penstock.simulation.cluster.targeted_members import QUEUE, MemberHunter, adds_again
from penstock.simulation.driver import DiskPace
from penstock.simulation.queue_plan import QueuePlan
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.producer import Producer
from penstock.simulation.workload.stage import Stage
from penstock.storage.copy import CopyJob

KEPT = QueueSettings(delay_ms=20_000)
LONGER_MS = 8_000
"""It takes long until a node has lost a partition, has it again, and has copied what lives of it."""
_COPY_MS = (2_500, 3_500)
_COPIED_MS = 4_000
_REMOVED_MS = 3_500
_BACK_MS = 6_000


def fails_copies(scenario: ClusterScenario) -> bool:
    """Whether the run has this fault. With its own random generator."""
    faults, store, base = scenario.faults, scenario.store, scenario.base
    is_hunted = faults.hunt is not None or scenario.hunted is not None or adds_again(scenario)
    is_moved = scenario.target_hunt is not None or scenario.keeps_numbers
    is_harmed = faults.flips_ms or store.siege_ms or store.coup_ms
    has_room = scenario.replicas == scenario.nodes == 3 and base.duration_ms > 2_000
    is_free = not (is_hunted or is_moved or is_harmed or base.kind)
    return is_free and has_room and Random(f"copies: {base.duration_ms}").random() < 0.25


def make_quiet(scenario: ClusterScenario) -> None:
    """Nothing else goes wrong, and nodes copy something all the time."""
    base = scenario.base
    base.options = dataclasses.replace(base.options, checkpoint_journal_bytes=2 * KIBIBYTE)
    scenario.faults, scenario.store = ClusterFaultPlan(), StoreFaultPlan()


class SlowCopies(DiskPace):
    """Makes copies of one partition slow."""

    def __init__(self, machine: ClusterMachine, partitions: Callable[[], Collection[int]]) -> None:
        super().__init__()
        self._machine = machine
        self._partitions = partitions

    @property
    def job_ms(self) -> tuple[int, int]:
        """Asked when a job begins."""
        job = self._machine._driver._job if self._machine._driver is not None else None
        is_slow = isinstance(job, CopyJob) and job.partition in self._partitions()
        return _COPY_MS if is_slow else (0, 8)

    @job_ms.setter
    def job_ms(self, job_ms: tuple[int, int]) -> None:
        pass


class CopyHunter(MemberHunter):
    """Fills a disk in the middle of a copy, removes the partition, and assigns it again."""

    def hunt_copies(self, stage: Stage) -> None:
        """Begins, with messages that are not received for long."""
        stage.tasks.start(self._send(stage))
        self._tasks.start(self._hunt_copies())

    def _send(self, stage: Stage) -> Steps[None]:
        producer, plan = Producer(stage, "copied"), QueuePlan(QUEUE, KEPT)
        while not stage.stopping:
            yield Pause(self._random.randint(10, 40))
            life = stage.life_of(QUEUE)
            if life is not None:
                yield from producer._deliver(producer._compose(plan, life, 10), 3)

    def _hunt_copies(self) -> Steps[None]:
        while not self._is_over():
            yield Pause(self._random.randint(300, 900))
            names = [
                name
                for entry in self._entries().values()
                for name in entry.in_sync
                if entry.queue == QUEUE
                and name not in (entry.primary, self._manager())
                and self._machines[name].is_up
            ]
            if names and not self._is_over():
                yield from self._fail_copy(self._random.choice(names))

    def _fail_copy(self, name: str) -> Steps[None]:
        machine = self._machines[name]
        machine.pace = SlowCopies(machine, self._hunted)
        yield from self._until(lambda: self._copied(name) is not None, _COPIED_MS)
        entry = self._copied(name)
        if entry is not None and not self._is_over():
            self._say(
                f"the disk of {name} is full while it copies partition {entry.partition}, and the node loses it"
            )
            self._operators.counts["hunt: partition lost while it is copied"] += 1
            machine.disk.capacity = machine.disk.used_bytes()
            self._operators.drain(name)
            yield from self._until(lambda: self._holds(name, entry) is False, _REMOVED_MS)
            yield from self._until(lambda: not self._copies(name, entry), _REMOVED_MS)
            machine.disk.capacity = None
            self._operators.undrain(name)
        machine.pace = DiskPace()
        if entry is None or self._is_over():
            return
        yield from self._until(lambda: name in self._now(entry).in_sync, _BACK_MS)
        yield from self._until(lambda: self._copies(name, entry), _COPIED_MS)
        yield Pause(self._random.choice((50, 200)))
        if not self._is_over() and machine.is_up:
            self._operators.keep_down(name, 10)
            self._operators.counts["kill"] += 1
            machine.crash(power=False)

    def _hunted(self) -> Collection[int]:
        return [entry.partition for entry in self._entries().values() if entry.queue == QUEUE]

    def _copied(self, name: str) -> PartitionEntry | None:
        """A partition of which the machine copies something, and that another node leads."""
        store = self._machines[name].store
        found = [
            entry
            for entry in self._entries().values()
            if entry.queue == QUEUE
            and entry.primary != name
            and store is not None
            and entry.partition in store._segments._copying
        ]
        return found[0] if found else None

    def _copies(self, name: str, entry: PartitionEntry) -> bool:
        store = self._machines[name].store
        return store is not None and entry.partition in store._segments._copying

    def _holds(self, name: str, entry: PartitionEntry) -> bool:
        node = self._machines[name].replicated
        return node is None or entry.partition in node._parts.catalogue.partitions

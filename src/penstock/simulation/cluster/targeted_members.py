"""A targeted fault in memberships: a replica is removed from its node and added again, and its primary sees neither step
alone.

The node drops its data in between, so the new replica is empty. A primary that confuses it with the former one would put
it in sync. No clients use these partitions: everything in them was confirmed by the former replica.
"""

from __future__ import annotations

from random import Random

from penstock.cluster.layout.entries import PartitionEntry
from penstock.cluster.manager.candidate import MANAGER_ELECTION
from penstock.cluster.membership.campaign import ELECTIONS
from penstock.model.settings import QueueSettings
from penstock.simulation.cluster.metadata import StoreFault
from penstock.simulation.cluster.scenario import ClusterScenario
from penstock.simulation.cluster.targeted_faults import Hunter
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.stage import Stage
from penstock.wire.messages import CreateQueue, QueueDescription

QUEUE = "added-again"
_STEP_MS = 6_000
"""The manager leaves an entry alone that was changed lately."""


def adds_again(scenario: ClusterScenario) -> bool:
    """Whether the run has this fault. With its own random generator."""
    faults, store, base = scenario.faults, scenario.store, scenario.base
    is_hunted = faults.hunt is not None or scenario.hunted is not None
    is_moved = scenario.target_hunt is not None or scenario.keeps_numbers
    is_harmed = (
        faults.flips_ms or faults.crashes_ms or faults.store_away_ms or store.siege_ms or store.coup_ms
    )
    is_free = not (is_hunted or is_moved or is_harmed or base.kind)
    has_room = scenario.replicas == scenario.nodes == 3 and base.duration_ms > 6_000
    return is_free and has_room and Random(f"again: {base.duration_ms}").random() < 0.8


class MemberHunter(Hunter):
    """Removes replicas from a node, and adds them again."""

    def create(self, stage: Stage, settings: QueueSettings) -> Steps[None]:
        """Makes the queue that is hunted."""
        client = stage.client("member hunter")
        for _ in range(100):
            reply = yield Ask(client, CreateQueue(QUEUE, settings))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                if settings.delay_ms:
                    stage.note(reply.answer)
                return
            if stage.stopping:
                return
            yield Pause(100)

    def hunt_members(self) -> None:
        """Begins."""
        self._tasks.start(self._hunt_members())

    def _hunt_members(self) -> Steps[None]:
        while not self._is_over():
            yield Pause(self._random.randint(100, 600))
            found = [
                entry
                for entry in self._entries().values()
                if entry.queue == QUEUE
                and entry.serving == entry.epoch
                and entry.primary != self._manager()
                and len(entry.in_sync) == len(entry.replicas) == len(self._machines)
                and all(self._machines[name].is_up for name in entry.replicas)
            ]
            if found and not self._is_over():
                yield from self._add_again(self._random.choice(found))

    def _manager(self) -> str:
        holder = self._metadata.entries.get(ELECTIONS + MANAGER_ELECTION)
        return holder.value.decode() if holder is not None else ""

    def _add_again(self, entry: PartitionEntry) -> Steps[None]:
        primary = entry.primary or ""
        node = self._random.choice([name for name in entry.replicas if name != primary])
        self._say(
            f"{node} loses its replica of partition {entry.partition} and gets it again; {primary} hears nothing"
        )
        self._operators.counts["hunt: replica added again"] += 1
        deaf = self._metadata.faults[primary] = StoreFault(deaf=True)
        self._operators.drain(node)
        yield from self._until(lambda: node not in self._now(entry).replicas, _STEP_MS)
        yield from self._until(lambda: node not in self._now(entry).leaving, _STEP_MS)
        if not self._is_over():
            self._operators.undrain(node)
        yield from self._until(lambda: node in self._now(entry).replicas, _STEP_MS)
        yield Pause(self._random.choice((0, 0, 20, 200)))
        if self._metadata.faults.get(primary) is deaf:
            del self._metadata.faults[primary]
        if self._is_over():
            return
        self._metadata.compact()  # it receives the present entry
        for stream in list(self._metadata.streams):
            if stream.who == primary:
                stream.end("unavailable")
        yield from self._until(lambda: node in self._now(entry).in_sync, _STEP_MS)

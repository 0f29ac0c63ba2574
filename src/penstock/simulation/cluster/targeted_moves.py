"""Targeted faults in moves: the target is deleted, and created again, between two attempts to move messages.

`hunt_targets` delays a request or its answer until the next queue of the name exists. `hunt_unsettled` keeps the answer
back for longer than a source waits for it: only the deleted target's later message tells the source that its messages have
arrived.
"""

from __future__ import annotations

from functools import partial

from penstock.cluster.layout.entries import PartitionEntry
from penstock.simulation.cluster.operator import ClusterOperator
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.cluster.targeted_faults import Hunter
from penstock.simulation.tasks import Pause, Steps

_UNANSWERED_MS = 4_500
"""More than a source waits for an answer."""
_REMADE_MS = 2_500
"""Less than a source waits for an answer."""


class MoveHunter(Hunter):
    """Waits until messages move to a queue on another node."""

    def hunt_targets(self, every_ms: int, stage: ClusterStage, operator: ClusterOperator) -> None:
        """Begins; `operator` deletes and makes queues."""
        self._tasks.start(self._hunt_targets(every_ms, stage, operator))

    def _hunt_targets(self, every_ms: int, stage: ClusterStage, operator: ClusterOperator) -> Steps[None]:
        while not self._is_over():
            yield Pause(self._random.randint(every_ms // 3, every_ms))
            yield from self._until(lambda: self._on_their_way() is not None, 5_000)
            found = self._on_their_way()
            life = stage.queues.get(found[1].queue) if found is not None else None
            if found is None or life is None or life.queue_id != found[1].queue_id or self._is_over():
                continue
            sender, target = found
            holder = target.primary or ""
            self._operators.counts["hunt: target made again"] += 1
            asks = self._random.random() < 0.5
            self._say(
                f"{target.queue} is deleted and made again, while what {sender} {'asks' if asks else 'is told by'} {holder} waits"
            )
            # The request waits and finds its target gone, or it was carried out and its answer is lost.
            self._fabric.hold_way(*((sender, holder) if asks else (holder, sender)))
            stage.tasks.start(operator.delete(life))
            yield from self._until(partial(self._is_remade, target), _REMADE_MS)
            yield Pause(self._random.choice((0, 0, 50, 400)))
            if not self._is_over():
                self._fabric.mend_network()
            yield Pause(1_000)

    def hunt_unsettled(self, every_ms: int, stage: ClusterStage, operator: ClusterOperator) -> None:
        """Begins; `operator` deletes and makes queues."""
        self._tasks.start(self._hunt_unsettled(every_ms, stage, operator))

    def _hunt_unsettled(self, every_ms: int, stage: ClusterStage, operator: ClusterOperator) -> Steps[None]:
        while not self._is_over():
            yield Pause(self._random.randint(every_ms // 3, every_ms))
            yield from self._until(lambda: self._on_their_way() is not None, 5_000)
            found = self._on_their_way()
            life = stage.queues.get(found[1].queue) if found is not None else None
            if found is None or life is None or life.queue_id != found[1].queue_id or self._is_over():
                continue
            sender, target = found
            holder = target.primary or ""
            self._fabric.hold_way(holder, sender)
            arrived = yield from self._until(partial(self._has_arrived, sender, target), 500)
            if arrived and not self._is_over():
                self._operators.counts["hunt: target gone before its answer"] += 1
                self._say(
                    f"{target.queue} is deleted, and {sender} does not hear from {holder} what has arrived"
                )
                stage.tasks.start(operator.delete(life))
                yield from self._until(lambda: False, _UNANSWERED_MS)
            if not self._is_over():
                self._fabric.mend_network()

    def _has_arrived(self, sender: str, target: PartitionEntry) -> bool:
        """Whether a target has messages of which their source does not know yet that they have arrived."""
        node, there = self._machines[sender].replicated, self._machines[target.primary or ""].replicated
        partition = there._parts.catalogue.partitions.get(target.partition) if there is not None else None
        if node is None or partition is None:
            return False
        return any(
            journey.target == target.partition
            and journey.phase == "under way"
            and bool(partition.origins.arrived(journey.source, journey.runs))
            for journey in node.replication.dispatch.moves._journeys.values()
        )

    def _on_their_way(self) -> tuple[str, PartitionEntry] | None:
        """A node that sends messages, and the partition on another node that they go to."""
        entries = self._entries()
        for name, machine in self._machines.items():
            node = machine.replicated
            for journey in node.replication.moves._journeys.values() if node is not None else ():
                target = entries.get(journey.target) if journey.phase == "under way" else None
                if target is not None and not target.deleted and target.primary not in (None, name):
                    return name, target
        return None

    def _is_remade(self, target: PartitionEntry) -> bool:
        return any(
            entry.queue == target.queue and entry.queue_id != target.queue_id and entry.serving == entry.epoch
            for entry in self._entries().values()
        )

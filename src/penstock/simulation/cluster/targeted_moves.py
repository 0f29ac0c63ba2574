"""Targeted faults in moves: the target is deleted, and created again, or hidden, between two attempts to move messages.

`hunt_targets` delays a request or its answer until the next queue of the name exists. `hunt_unsettled` keeps the answer
back for longer than a source waits for it: only the deleted target's later message tells the source that its messages have
arrived. `hunt_hidden` does that while other nodes find the entry of the target missing, or too new to read; some of them start
meanwhile.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

from penstock.cluster.layout.entries import PartitionEntry, partition_key
from penstock.simulation.cluster.operator import ClusterOperator
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.cluster.targeted_faults import Hunter
from penstock.simulation.tasks import Pause, Steps

_UNANSWERED_MS = 4_500
"""More than a source waits for an answer."""
_REMADE_MS = 2_500
"""Less than a source waits for an answer."""
_HIDDEN_MS = 6_000
"""Less than `GONE_MS` in runs of a cluster: then it would not come back."""
_RESTORED_MS = 13_000
"""More than that: it is there, and cannot be read."""
_TOO_NEW = b'{"needs": 1000000}'
_Hidden = Literal["missing", "too new", "missing, and restored too new"]


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

    def hunt_hidden(self, every_ms: int, stage: ClusterStage, operator: ClusterOperator) -> None:
        """Begins; `operator` deletes and makes queues."""
        self._tasks.start(self._hunt_hidden(every_ms, stage, operator))

    def _hunt_hidden(self, every_ms: int, stage: ClusterStage, operator: ClusterOperator) -> Steps[None]:
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
                if self._random.random() < 0.8:
                    self._say(f"{target.queue} is deleted")
                    stage.tasks.start(operator.delete(life))
                    yield Pause(self._random.choice((0, 30, 200, 800)))
                yield from self._hide(target, holder)
            if not self._is_over():
                self._fabric.mend_network()

    def _hide(self, target: PartitionEntry, holder: str) -> Steps[None]:
        """All nodes but one find the entry hidden, for a while."""
        kinds: tuple[_Hidden, ...] = get_args(_Hidden)
        kind = self._random.choice(kinds)
        others = [machine for name, machine in self._machines.items() if name != holder]
        key = partition_key(target.partition)
        self._operators.counts[f"hunt: entry of a target {kind}"] += 1
        self._say(f"for all but {holder} the entry of partition {target.partition} is {kind}")
        for machine in others:
            machine.hide(key, _TOO_NEW if kind == "too new" else None)
        lasts_ms = _HIDDEN_MS
        if kind == "missing, and restored too new":
            yield from self._until(lambda: False, 300)
            for machine in others:
                machine.hide(key, _TOO_NEW)
            lasts_ms = _RESTORED_MS
        elif self._random.random() < 0.6:
            for machine in others:
                if machine.is_up:
                    self._operators.keep_down(machine.name, 10)
                    self._operators.counts["kill"] += 1
                    machine.crash(power=False)
        yield from self._until(lambda: False, lasts_ms)
        for machine in others:
            machine.show(key)

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

"""A targeted fault in moves on a single node: the target queue is deleted in the middle of a step of the move.

The journal accepts some of the messages and has no room for the next. So some have arrived, which only their target knows.
Then the target is deleted, and created again.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.simulation.machine import Machine
from penstock.simulation.message_history import QueueLife, Span
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.operator import Operator
from penstock.simulation.workload.stage import Stage

_LONGEST_MS = 2_000
_UPKEEP_MS = 2_000
"""Work that found no room is repeated by then."""


class DeadLetterHunter:
    """Deletes queues while messages arrive in them."""

    def __init__(self, stage: Stage, machine: Machine, random: Random, counts: Counter[str]) -> None:
        self._stage = stage
        self._machine = machine
        self._random = random
        self._counts = counts
        self._operator = Operator(stage, "undertaker")

    def run(self) -> Steps[None]:
        """Hunts until everything is made well."""
        stage, refusals = self._stage, self._machine.refusals
        while not stage.stopping:
            yield Pause(self._random.randint(50, 600))
            span = Span(stage.schedule.now_ms)
            stage.recorder.history.slow_disks.append(span)
            refusals.lets_arrive = self._random.randint(1, 3)
            life: QueueLife | None = None
            for waited_ms in range(_LONGEST_MS):
                life = self._in_the_middle()
                if life is not None or stage.stopping:
                    break
                if refusals.lets_arrive == 0 and waited_ms % 40 == 39:
                    refusals.lets_arrive = self._random.randint(1, 3)
                yield Pause(1)
            if life is not None and not stage.stopping:
                self._counts["hunt: target deleted in a move"] += 1
                stage.trace.add("hunt", f"{life.name} is deleted while messages arrive in it")
                yield from self._operator.delete(life)
            refusals.lets_arrive = None
            span.answered_ms = stage.schedule.now_ms + _UPKEEP_MS

    def _in_the_middle(self) -> QueueLife | None:
        """A queue in which messages have arrived that have not left their source yet."""
        node = self._machine.node
        partitions = node._parts.catalogue.partitions if node is not None else {}
        for target in partitions.values():
            life = self._stage.queues.get(target.name)
            for source_id, _ in target.origins if life is not None else ():
                source = partitions.get(source_id)
                moving = source.moves.values() if source is not None else ()
                is_there = life is not None and life.queue_id == target.partition_id
                if is_there and any(target.origins.arrived(source_id, list(runs)) for runs in moving):
                    return life
        return None

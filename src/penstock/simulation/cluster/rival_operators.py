"""Operators that change the same queue at the same moment, and queues that change between `sync` and `async` while they are
used.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.model.settings_checks import changed_settings
from penstock.simulation.cluster.operator import ClusterOperator
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.stage import MOVED_TO
from penstock.wire.messages import AlterQueue, QueueDescription

_OPERATORS = 3
_ATTEMPTS = 20


class RivalOperators:
    """All of them. One without an answer repeats its change."""

    def __init__(
        self,
        stage: ClusterStage,
        random: Random,
        replicas: tuple[int, ...],
        counts: Counter[str],
        *,
        destructive: bool,
    ) -> None:
        self._stage = stage
        self._random = random
        self._counts = counts
        self._destructive = destructive
        self._operators = [
            ClusterOperator(stage, f"rival-{number}", replicas, counts, destructive=destructive)
            for number in range(_OPERATORS)
        ]
        self._client = stage.client("rival-replication")

    def run(self) -> Steps[None]:
        """Every now and then several of them want something of one queue."""
        stage, random = self._stage, self._random
        while not stage.stopping:
            yield Pause(random.randint(200, 1_500))
            life = stage.pick_life()
            if life is None:
                continue
            self._counts["several operators at one queue"] += 1
            for operator in random.sample(self._operators, random.randint(2, _OPERATORS)):
                deletes = self._destructive and random.random() < 0.15
                steps = operator.delete(life) if deletes else operator.alter(life)
                stage.tasks.start(steps, random.choice((0, 0, 5, 40)))
            if may_be_async(life) and random.random() < 0.7:
                stage.tasks.start(self._change_replication(life), random.choice((0, 0, 5, 40)))

    def _change_replication(self, life: QueueLife) -> Steps[None]:
        """Changes the replication; the losses of a queue while it is `async` are known from its primaries' settings, record
        by record.
        """
        stage, random = self._stage, self._random
        replication = random.choice(("sync", "async"))
        for named in stage.recorder.history.lives_named(life.name):
            named.settings.append(changed_settings(named.settings[-1], {"replication": replication}))
        for _ in range(_ATTEMPTS):
            reply = yield Ask(self._client, AlterQueue(life.name, {"replication": replication}))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                stage.note(reply.answer)
                stage.trace.add("rival-replication", f"{life.name} is {replication}")
                self._counts["replication of a queue altered"] += 1
                return
            if stage.stopping:
                return
            yield Pause(random.randint(50, 300))


def may_be_async(life: QueueLife) -> bool:
    """Dead and late letters, and their sources, stay unchanged, because their losses are known by queue."""
    settings = life.settings[0]
    moves = settings.dead_letter_queue is not None or settings.sorted or life.name == "plain"
    return not moves and not life.name.endswith(MOVED_TO)

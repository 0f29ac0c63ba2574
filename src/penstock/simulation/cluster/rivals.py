"""Operators who change the same queues at the same moment, each through a separate front end, so that they meet at the store.

They contend for queues that the other clients use: these are altered, change between `sync` and `async`, and in some runs are deleted
and made again. They also contend for queues of which no other client knows: these may be made with any settings. What the operators
are told is held against the store (I11), as with every client; so are the ids, the epochs and the names of what they make, and all
replicas of it in the end.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import changed_settings
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.operator import ClusterOperator
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Ask, Pause, Reply, Steps
from penstock.simulation.workload.stage import MOVED_TO
from penstock.wire.messages import (
    AlterQueue,
    CreateQueue,
    DeleteQueue,
    DescribeQueue,
    Failed,
    QueueDescription,
    Request,
)

_OPERATORS = 3
_ATTEMPTS = 20
_ROUND_MS = (100, 700)
_DELAYS_MS = (0, 0, 5, 40)
"""Between the operators of a round."""
_QUEUE, _DEAD, _SORTED = "contested", "contested-dead", "contested-sorted"
_NAMES = (_QUEUE, _QUEUE, _DEAD, _SORTED, f"{_SORTED}.late")


class Rivals:
    """All of them. In each round several want something of one queue."""

    def __init__(
        self, stage: ClusterStage, random: Random, replicas: int, counts: Counter[str], *, destructive: bool
    ) -> None:
        self._stage = stage
        self._random = random
        self._replicas = replicas
        self._counts = counts
        self._destructive = destructive
        names = [f"rival-{number}" for number in range(_OPERATORS)]
        self._clients = {name: stage.client(name) for name in names}
        allowed = tuple(range(1, replicas + 1))
        self._operators = [
            ClusterOperator(stage, f"used-{name}", allowed, counts, destructive=destructive) for name in names
        ]
        self._client = stage.client("rival-replication")

    def run(self) -> Steps[None]:
        """Round after round, until the run ends."""
        stage, random = self._stage, self._random
        while not stage.stopping:
            yield Pause(random.randint(*_ROUND_MS))
            life = stage.pick_life() if random.random() < 0.5 else None
            if life is not None:
                self._change(life)
            else:
                self._contend()

    def _start(self, steps: Steps[None]) -> None:
        self._stage.tasks.start(steps, self._random.choice(_DELAYS_MS))

    # -- queues that others use ------------------------------------------------------------------------------

    def _change(self, life: QueueLife) -> None:
        random = self._random
        self._counts["several operators at one queue"] += 1
        for operator in random.sample(self._operators, random.randint(2, _OPERATORS)):
            deletes = self._destructive and random.random() < 0.15
            self._start(operator.delete(life) if deletes else operator.alter(life))
        if may_be_async(life) and random.random() < 0.7:
            self._start(self._change_replication(life))

    def _change_replication(self, life: QueueLife) -> Steps[None]:
        """What a queue loses while it is `async` is told apart by what its primaries went by, record by record."""
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

    # -- queues of which no other client knows -------------------------------------------------------------------

    def _contend(self) -> None:
        for name, client in self._clients.items():
            self._start(self._ask(name, client, self._request()))

    def _ask(self, name: str, client: SimulatedClient, request: Request) -> Steps[None]:
        reply: Reply | None = yield Ask(client, request)
        if reply is None:
            said = "no answer"
        elif isinstance(reply.answer, Failed):
            said = str(reply.answer.code)
        else:
            said = "done"
            is_change = not isinstance(request, DescribeQueue)
            self._counts["queue made, changed or deleted by rivals"] += is_change
        self._stage.trace.add(name, f"{type(request).__name__} {getattr(request, 'name', '')}: {said}")

    def _request(self) -> Request:
        random = self._random
        name = random.choice(_NAMES)
        action = random.random()
        if action < 0.35:
            return CreateQueue(name, self._settings(name))
        if action < 0.6:
            return AlterQueue(name, self._changes(name))
        return DeleteQueue(name) if action < 0.9 else DescribeQueue(name)

    def _settings(self, name: str) -> QueueSettings:
        random = self._random
        if name == _SORTED:
            return QueueSettings(ordering="clock", window_ms=100, replicas=self._replicas)
        partitions = random.choice((1, 3))
        if name == _QUEUE and random.random() < 0.5:
            return QueueSettings(
                replicas=self._replicas, partitions=partitions, max_receives=2, dead_letter_queue=_DEAD
            )
        return QueueSettings(replicas=self._replicas, partitions=partitions)

    def _changes(self, name: str) -> dict[str, str | int | bool | None]:
        random = self._random
        if name == _QUEUE and random.random() < 0.3:
            return {"max_receives": 3, "dead_letter_queue": random.choice((_DEAD, f"{_DEAD}-2"))}
        return {"visibility_timeout_ms": random.choice((200, 1_000, 4_000))}


def may_be_async(life: QueueLife) -> bool:
    """Dead and late letters, and what they come from, stay as they are: what they lose is told apart by their queues."""
    settings = life.settings[0]
    moves = settings.dead_letter_queue is not None or settings.sorted or life.name == "plain"
    return not moves and not life.name.endswith(MOVED_TO)

"""Operators that create, change and delete the same queues at the same time, each through a separate front end.

No other client uses these queues. The operators' answers are compared with the store (I11), like those of every client; so
are the ids, the epochs and the names of what they create, and all replicas of it at the end. They act at the same moments,
so that they conflict at the store, and a delete may hit a queue that another operator has just created.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.model.settings import QueueSettings
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.stage import Stage
from penstock.wire.messages import AlterQueue, CreateQueue, DeleteQueue, DescribeQueue, Failed, Request

_SHARE = 0.1
_RIVALS = 3
_ROUND_MS = 400
_QUEUE, _DEAD, _SORTED = "contested", "contested-dead", "contested-sorted"
_NAMES = (_QUEUE, _QUEUE, _DEAD, _SORTED, f"{_SORTED}.late")


def start_rivals(stage: Stage, seed: int, replicas: int, counts: Counter[str]) -> None:
    """Some runs have them; the dice for that, and for what they do, are separate."""
    dice = Random(f"{seed} rivals")
    if dice.random() < _SHARE:
        for number in range(_RIVALS):
            rival = Rival(stage, f"rival-{number}", Random(f"{seed} rival {number}"), replicas, counts)
            stage.tasks.start(rival.run())


class Rival:
    """One of them."""

    def __init__(self, stage: Stage, name: str, random: Random, replicas: int, counts: Counter[str]) -> None:
        self._stage = stage
        self._name = name
        self._random = random
        self._replicas = replicas
        self._counts = counts
        self._client = stage.client(name)

    def run(self) -> Steps[None]:
        """One request in each round, until the run ends."""
        stage = self._stage
        while not stage.stopping:
            yield Pause(_ROUND_MS - stage.schedule.elapsed_ms % _ROUND_MS)
            request = self._request()
            reply = yield Ask(self._client, request)
            what = type(request).__name__
            if reply is None:
                said = "no answer"
            elif isinstance(reply.answer, Failed):
                said = str(reply.answer.code)
            else:
                said = "done"
                self._counts["queue made, changed or deleted by rivals"] += not isinstance(
                    request, DescribeQueue
                )
            stage.trace.add(self._name, f"{what} {getattr(request, 'name', '')}: {said}")

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

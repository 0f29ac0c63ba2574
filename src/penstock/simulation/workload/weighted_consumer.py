"""A consumer that receives from several queues at once, by weights, and settles its messages like any other consumer.

Some runs have one. Now and then it also pings, and takes ids from the clock, which no other client does. It has its own
random generator.
"""

from __future__ import annotations

from random import Random

from penstock.model.errors import ErrorCode
from penstock.simulation.client import Impatient
from penstock.simulation.message_history import DeliveredMessage, QueueLife
from penstock.simulation.tasks import Ask, Asker, Pause, Steps
from penstock.simulation.workload.consumer import Settler, describe
from penstock.simulation.workload.stage import Stage
from penstock.wire.messages import Delivery, Failed, GroupDelivery, Ping, ReceiveAny, WeightedQueue

_NAME = "weighted"
_SHARE = 0.12
_WEIGHTS = (1, 1, 3, 10)


def draw_weighted(stage: Stage, seed: int) -> WeightedConsumer | None:
    """The one of this run; most runs have none."""
    dice = Random(f"{seed} {_NAME}")
    return WeightedConsumer(stage, dice) if dice.random() < _SHARE else None


class WeightedConsumer:
    """The consumer."""

    def __init__(self, stage: Stage, random: Random) -> None:
        self._stage = stage
        self._random = random
        self._settler = Settler(stage, _NAME)

    def run(self) -> Steps[None]:
        """Receives until the run ends."""
        stage, random = self._stage, self._random
        while not stage.stopping:
            yield Pause(random.randint(0, 150))
            lives = self._pick()
            if not lives:
                yield Pause(200)
                continue
            if random.random() < 0.05:
                yield Ask(self._settler.client, Ping())
            for messages in (yield from self._receive(lives)):
                if random.random() < 0.2:
                    stage.tasks.start(self._settler.work_off(messages))
                else:
                    yield from self._settler.work_off(messages)

    def _pick(self) -> list[QueueLife]:
        """Some queues whose messages are received."""
        lives = [life for _, life in sorted(self._stage.queues.items()) if life.settings[0].has_queue]
        return self._random.sample(lives, min(len(lives), self._random.randint(1, 4)))

    def _receive(self, lives: list[QueueLife]) -> Steps[list[list[DeliveredMessage]]]:
        """One receive; the messages of each queue."""
        stage, random = self._stage, self._random
        wait_ms = random.choice((0, 0, 300, 1_500))
        visibility_ms = random.choice((None, 150, 700, 3_000))
        request = ReceiveAny(
            [WeightedQueue(life.queue_id, random.choice(_WEIGHTS)) for life in lives],
            random.choice((1, 5, 20)),
            wait_ms,
            visibility_ms,
            random.choice((None, None, 100, 2_000)),
        )
        asker: Asker = self._settler.client
        impatient = wait_ms > 0 and random.random() < 0.2
        if impatient:
            asker = Impatient(self._settler.client, random.randint(1, wait_ms))
        asked_ms = stage.schedule.now_ms
        names = [life.name for life in lives]
        reply = yield Ask(asker, request, timeout_ms=wait_ms + 8_000)
        if reply is None:
            stage.trace.add(_NAME, f"receive from {names}: no answer")
            yield Pause(random.randint(5, 300))
            return []
        if isinstance(reply.answer, GroupDelivery):
            if not reply.answer.deliveries and wait_ms and not impatient:
                for life in lives:
                    stage.recorder.polled_in_vain(life, asked_ms, wait_ms)
            return self._note(lives, reply.answer, reply.body, asked_ms, visibility_ms)
        assert isinstance(reply.answer, Failed)
        stage.trace.add(_NAME, f"receive from {names}: {reply.answer.code}")
        if reply.answer.code in (ErrorCode.QUEUE_NOT_FOUND, ErrorCode.QUEUE_DAMAGED):
            for life in lives:  # the answer does not say which one it is about
                yield from stage.look_up(self._settler.client, life.name)
        yield Pause(random.randint(10, 200))
        return []

    def _note(
        self,
        lives: list[QueueLife],
        answer: GroupDelivery,
        body: memoryview,
        asked_ms: int,
        visibility_ms: int | None,
    ) -> list[list[DeliveredMessage]]:
        by_id = {life.queue_id: life for life in lives}
        found: list[list[DeliveredMessage]] = []
        start = 0
        for one in answer.deliveries:
            size = sum(batch.size for batch in one.batches)
            life = by_id[one.queue_id]
            given = Delivery(one.token, one.until_ms, one.batches)
            found.append(
                self._stage.recorder.delivered(
                    life, given, body[start : start + size], asked_ms, visibility_ms
                )
            )
            start += size
            self._stage.trace.add(_NAME, f"received from {life.name}: {describe(found[-1])}")
        return found

"""Subscribers: get deliveries within their credit, which they renew, until they or the network end the subscription."""

from __future__ import annotations

from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Ask, Pause, Reply, Steps
from penstock.simulation.workload.consumer import Settler, describe
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import AddCredit, Delivery, Subscribe, Unsubscribe

_LIFE_MS = 4_000


class Subscriber:
    """One subscriber, on one queue after the other."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._settler = Settler(stage, name)
        self._lost = True

    def run(self) -> Steps[None]:
        """Subscribes until the run ends."""
        stage, random = self._stage, self._stage.random
        while not stage.stopping:
            life = stage.pick_queue()
            if life is None or life.name.endswith(MOVED_TO):
                yield Pause(100)
                continue
            subscription = self._subscribe(life)
            if subscription is None:
                yield Pause(200)
                continue
            until_ms = stage.schedule.elapsed_ms + random.randint(500, _LIFE_MS)
            while self._goes_on(until_ms):
                yield Pause(50)
            if not self._lost:
                yield Ask(self._settler.client, Unsubscribe(subscription))
                self._settler.client.forget(subscription)
            yield Pause(random.randint(10, 300))
            if random.random() < 0.3:
                yield from stage.look_up(self._settler.client, life.name)

    def _goes_on(self, until_ms: int) -> bool:
        return not self._lost and not self._stage.stopping and self._stage.schedule.elapsed_ms < until_ms

    def _subscribe(self, life: QueueLife) -> int | None:
        random = self._stage.random
        visibility_ms = random.choice((None, 400, 2_000))
        request = Subscribe(life.queue_id, random.choice((3, 20, 100)), random.choice((1, 10)), visibility_ms)
        asked_ms = self._stage.schedule.now_ms
        subscription: int | None = None

        def arrived(reply: Reply | None) -> None:
            if reply is None or not isinstance(reply.answer, Delivery):
                self._stage.failed(life, reply)
                self._lost = True
            elif subscription is not None:
                self._take(life, subscription, reply.answer, reply.body, asked_ms, visibility_ms)

        self._lost = False
        subscription = self._settler.client.subscribe(request, arrived)
        return subscription

    def _take(
        self,
        life: QueueLife,
        subscription: int,
        delivery: Delivery,
        body: memoryview,
        asked_ms: int,
        visibility_ms: int | None,
    ) -> None:
        stage = self._stage
        if not delivery.batches:
            return
        messages = stage.recorder.delivered(life, delivery, body, asked_ms, visibility_ms)
        stage.trace.add(self._name, f"was pushed from {life.name}: {describe(messages)}")
        stage.tasks.start(self._settler.work_off(messages))
        if stage.random.random() < 0.9:
            self._settler.client.tell(AddCredit(subscription, len(messages)))

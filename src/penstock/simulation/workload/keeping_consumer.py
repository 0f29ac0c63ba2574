"""A consumer with the code of the client library: its link, its credit, and the beats that keep leases while it works.

Deliveries wait in its buffer until it wants them, and come again over every new connection.
"""

from __future__ import annotations

from collections import deque

from penstock.client_core.call import Stream
from penstock.client_core.credit import Credit
from penstock.client_core.lease_keeping import LeaseKeeping
from penstock.model.errors import ErrorCode, PenstockError
from penstock.simulation.client_link import SimulatedLink
from penstock.simulation.message_history import DeliveredMessage, QueueLife
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.consumer import Settler, describe
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import AddCredit, Delivery, Subscribe

_TIMEOUT_SECONDS = 6.0
_LIFE_MS = 6_000
_DISCONNECTED_SHARE = 0.02


class KeepingConsumer:
    """One consumer, on one queue after the other."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.settler = Settler(stage, name)
        self.link = SimulatedLink(name, stage.door(name), _TIMEOUT_SECONDS, stage.random, lambda: False)

    def run(self) -> Steps[None]:
        """Subscribes until the run ends."""
        stage, random = self.stage, self.stage.random
        while not stage.stopping:
            life = stage.pick_queue()
            if life is None or life.name.endswith(MOVED_TO):
                yield Pause(100)
                continue
            subscription = Subscription(self, life)
            self.link.open_stream(subscription)
            until_ms = stage.schedule.elapsed_ms + random.randint(500, _LIFE_MS)
            while self._goes_on(subscription, until_ms):
                yield Pause(random.randint(1, 80))
                taken = subscription.take()
                if taken is not None:
                    stage.tasks.start(self._work(taken))
                if random.random() < _DISCONNECTED_SHARE:
                    self.link.disconnect()
            self.link.close_stream(subscription)
            for lease in subscription.give_back():
                yield from self.settler.settle("release", lease.messages)
            if subscription.error is not None and subscription.error.code is ErrorCode.QUEUE_NOT_FOUND:
                yield from stage.look_up(self.settler.client, life.name)
            yield Pause(random.randint(10, 300))

    def _goes_on(self, subscription: Subscription, until_ms: int) -> bool:
        stage = self.stage
        return subscription.error is None and not stage.stopping and stage.schedule.elapsed_ms < until_ms

    def _work(self, lease: Lease) -> Steps[None]:
        """Works for longer than a lease lasts, now and then, then deletes; some die without a word."""
        random = self.stage.random
        yield Pause(random.choice((0, 20, 400, 2_500)))
        lease.is_open = False
        if random.random() < 0.9:
            yield from self.settler.settle("delete", lease.messages)


class Lease:
    """A delivery, for as long as somebody works on it."""

    def __init__(self, messages: list[DeliveredMessage], arrived: float) -> None:
        self.messages = messages
        self.arrived = arrived
        self.is_open = True

    def open_runs(self) -> object:
        """Whether it is to be kept."""
        return self.is_open


class Subscription(Stream):
    """One subscription and what waits in its buffer."""

    def __init__(self, consumer: KeepingConsumer, life: QueueLife) -> None:
        super().__init__()
        random = consumer.stage.random
        self.error: PenstockError | None = None
        self._consumer = consumer
        self._life = life
        self._asked_ms = consumer.stage.schedule.now_ms
        self._visibility_ms = random.choice((400, 2_000))
        self._keeping = LeaseKeeping(self._visibility_ms) if random.random() < 0.7 else None
        self._credit = Credit(
            random.choice((3, 20, 100)), 0.0 if self._keeping else self._visibility_ms / 1000
        )
        self._batch_messages = random.choice((1, 10))
        self._buffer: deque[Lease] = deque()
        self._kept: list[Lease] = []

    def opening(self) -> Subscribe:
        """See `Stream`."""
        return Subscribe(
            self._life.queue_id, self._credit.opening(), self._batch_messages, self._visibility_ms
        )

    def delivered(self, delivery: Delivery, body: memoryview) -> None:
        """Keeps messages until they are wanted."""
        if not delivery.batches:
            return
        stage = self._consumer.stage
        messages = stage.recorder.delivered(self._life, delivery, body, self._asked_ms, self._visibility_ms)
        stage.trace.add(self._consumer.name, f"was pushed from {self._life.name}: {describe(messages)}")
        lease = Lease(messages, self._consumer.link.now())
        self._buffer.append(lease)
        self._credit.delivered(len(messages))
        if self._keeping is not None:
            self._kept.append(lease)
            self._beat_later(begins=self._keeping.begins())

    def failed(self, error: PenstockError) -> None:
        """It has ended."""
        if error.code is ErrorCode.QUEUE_DAMAGED:
            self._consumer.stage.recorder.damage_seen(self._life)
        self.error = error

    def take(self) -> Lease | None:
        """The first delivery whose lease is not over; the server gets credit for those that left."""
        while self._buffer:
            lease = self._buffer.popleft()
            self._credit.left(len(lease.messages))
            if given := self._credit.handed_out(len(lease.messages)):
                self._consumer.link.post(AddCredit(self.request_id, given))
            if not self._credit.is_over(lease.arrived, self._consumer.link.now()):
                return lease
        return None

    def give_back(self) -> list[Lease]:
        """What nobody took."""
        left, self._buffer = list(self._buffer), deque()
        for lease in left:
            lease.is_open = False
        return left

    def _beat_later(self, *, begins: bool) -> None:
        if begins and self._keeping is not None:
            link = self._consumer.link
            link.at(link.now() + self._keeping.interval, self._beat)

    def _beat(self) -> None:
        stage = self._consumer.stage
        if self._keeping is None or stage.stopping:
            return
        self._kept, due = self._keeping.beat(self._kept, self._consumer.link.now())
        self._beat_later(begins=bool(self._kept))
        for lease in due:
            extending = self._consumer.settler.settle("extend", lease.messages, self._visibility_ms)
            stage.tasks.start(extending)

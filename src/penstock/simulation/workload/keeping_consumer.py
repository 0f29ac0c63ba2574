"""A consumer with the code of the client library: its link, subscriptions, and the renewals of leases while it works.

Deliveries wait in its buffer until they are used, and come again over every new connection.
"""

from __future__ import annotations

from penstock.client_core.lease import Lease
from penstock.client_core.lease_keeping import LeaseKeeping
from penstock.client_core.subscribing import ConsumerTerms, PushedMessages, Subscribing
from penstock.model.errors import ErrorCode, PenstockError
from penstock.simulation.client_link import SimulatedLink
from penstock.simulation.message_history import DeliveredMessage, QueueLife
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.consumer import Settler, describe
from penstock.simulation.workload.library_settling import Pushed
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import AddCredit, Delivery

_TIMEOUT_SECONDS = 6.0
_LIFE_MS = 6_000
_DISCONNECTED_SHARE = 0.02


class KeepingConsumer:
    """One consumer, on one queue after the other."""

    def __init__(self, stage: Stage, name: str) -> None:
        self.stage = stage
        self.name = name
        self.settler = Settler(stage, name)
        self.link = SimulatedLink(name, stage.network_of(name), _TIMEOUT_SECONDS, stage.random, lambda: False)

    def run(self) -> Steps[None]:
        """Subscribes until the run ends."""
        stage, random = self.stage, self.stage.random
        while not stage.stopping:
            life = stage.pick_queue()
            if life is None or life.name.endswith(MOVED_TO):
                yield Pause(100)
                continue
            subscription = Subscription(self, life)
            until_ms = stage.schedule.elapsed_ms + random.randint(500, _LIFE_MS)
            while self._goes_on(subscription, until_ms):
                yield Pause(random.randint(1, 80))
                taken = subscription.take()
                if taken is not None:
                    stage.tasks.start(self._work(taken))
                if random.random() < _DISCONNECTED_SHARE:
                    self.link.disconnect()
            self.link.close_stream(subscription)
            for pushed in subscription.give_back():
                yield from self.settler.settle("release", pushed.messages)
            if subscription.error is not None and subscription.error.code is ErrorCode.QUEUE_NOT_FOUND:
                yield from stage.look_up(self.settler.client, life.name)
            yield Pause(random.randint(10, 300))

    def _goes_on(self, subscription: Subscription, until_ms: int) -> bool:
        stage = self.stage
        return subscription.error is None and not stage.stopping and stage.schedule.elapsed_ms < until_ms

    def _work(self, pushed: Pushed) -> Steps[None]:
        """Now and then works for longer than a lease lasts, then deletes; sometimes it dies silently."""
        random = self.stage.random
        yield Pause(random.choice((0, 20, 400, 2_500)))
        pushed.lease.close_runs(pushed.lease.runs())  # it is kept no longer
        if random.random() < 0.9:
            yield from self.settler.settle("delete", pushed.messages)


class Subscription(Subscribing[DeliveredMessage]):
    """One subscription and its buffer."""

    def __init__(self, consumer: KeepingConsumer, life: QueueLife) -> None:
        random = consumer.stage.random
        visibility_ms = random.choice((400, 2_000))
        keeps = random.random() < 0.7
        credit = random.choice((3, 20, 100))
        super().__init__(ConsumerTerms(credit, random.choice((1, 10)), visibility_ms, keeps))
        self._consumer = consumer
        self._life = life
        self._asked_ms = consumer.stage.schedule.now_ms
        self._visibility_ms = visibility_ms
        self._keeping = LeaseKeeping(visibility_ms) if keeps else None
        self._kept: list[Lease] = []
        self._pushed: dict[bytes, Pushed] = {}
        """By token: the deliveries."""
        self.begin(life.queue_id, visibility_ms)

    @property
    def error(self) -> PenstockError | None:
        """The error that ended it."""
        return self._error

    def take(self) -> Pushed | None:
        """The first delivery whose lease is not over; the server gets credit for it."""
        pushed = self.next_at_hand()
        if pushed is None:
            return None
        assert isinstance(pushed, Pushed)
        self.handed_out(len(pushed))
        return pushed

    def give_back(self) -> list[Pushed]:
        """Deliveries that were not taken."""
        leases, _ = self.left_over()
        for lease in leases:
            lease.close_runs(lease.runs())
        return [self._pushed[lease.token] for lease in leases]

    # -- see `Subscribing` -----------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._consumer.link.now()

    def _open(self) -> None:
        self._consumer.link.open_stream(self)

    def _post(self, credit: AddCredit) -> None:
        self._consumer.link.post(credit)

    def _received(self, delivery: Delivery, body: memoryview) -> PushedMessages[DeliveredMessage]:
        stage = self._consumer.stage
        messages = stage.recorder.delivered(self._life, delivery, body, self._asked_ms, self._visibility_ms)
        stage.trace.add(self._consumer.name, f"was pushed from {self._life.name}: {describe(messages)}")
        lease = Lease(delivery.token, delivery.batches, self._now())
        pushed = self._pushed[delivery.token] = Pushed(self._life, lease, messages)
        if self._keeping is not None:
            self._kept.append(lease)
            self._beat_later(begins=self._keeping.begins())
        return pushed

    def failed(self, error: PenstockError) -> None:
        """See `Stream`."""
        if error.code is ErrorCode.QUEUE_DAMAGED:
            self._consumer.stage.recorder.damage_seen(self._life)
        super().failed(error)

    def _look_again(self, error: PenstockError) -> None:
        self.end(error)  # its consumer looks by itself, and goes elsewhere

    def _wake(self, waiters: int) -> None:
        """Does nothing: its consumer polls."""

    def _wake_all(self) -> None:
        """Does nothing: no caller waits."""

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
            messages = self._pushed[lease.token].messages
            extending = self._consumer.settler.settle("extend", messages, self._visibility_ms)
            stage.tasks.start(extending)

"""Subscriptions of a simulated consumer with the code of the client library (`client_core.subscribing`)."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Protocol

from penstock.client_core.call import Call
from penstock.client_core.lease import Lease
from penstock.client_core.lease_keeping import LeaseKeeping
from penstock.client_core.settling import SettleAction
from penstock.client_core.subscribing import ConsumerTerms, PushedMessages, Subscribing
from penstock.model.errors import ErrorCode, PenstockError
from penstock.simulation.client_link import SimulatedLink
from penstock.simulation.message_history import DeliveredMessage, QueueLife
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.consumer import describe
from penstock.simulation.workload.library_settling import LibrarySettling, Pushed
from penstock.simulation.workload.stage import Stage
from penstock.wire.messages import (
    AddCredit,
    Answer,
    Delivery,
    DescribeQueue,
    QueueDescription,
    Request,
    Subscribe,
)

_GIVE_BACK = SettleAction("release")
"""The history counts everything that was pushed as received, so what is given back here counts too."""


class Owner(Protocol):
    """The owner of the subscription."""

    stage: Stage
    name: str
    random: Random
    counts: Counter[str]
    link: SimulatedLink
    settling: LibrarySettling

    def ask(self, request: Request) -> PlainCall:
        """Asks over the link."""
        ...

    def start(self, steps: Steps[None]) -> None:
        """Lets something of it run."""
        ...


class PlainCall(Call):
    """A request whose answer is polled."""

    __slots__ = ("answer", "body_of_answer", "error", "is_done")

    def __init__(self) -> None:
        super().__init__()
        self.answer: Answer | None = None
        self.body_of_answer = memoryview(b"")
        self.error: PenstockError | None = None
        self.is_done = False

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """See `Call`."""
        self.answer, self.body_of_answer, self.is_done = answer, body, True

    def fail(self, error: PenstockError) -> None:
        """See `Call`."""
        self.error, self.is_done = error, True


class LibrarySubscription(Subscribing[DeliveredMessage]):
    """One subscription; the server may never push more than its credit."""

    def __init__(self, consumer: Owner, life: QueueLife) -> None:
        random = consumer.random
        self.visibility_ms = random.choice((400, 2_000))
        terms = ConsumerTerms(
            random.choice((3, 20, 100)), random.choice((1, 10)), self.visibility_ms, random.random() < 0.6
        )
        super().__init__(terms)
        self.pushed: dict[bytes, Pushed] = {}
        """By token: the deliveries."""
        self._consumer = consumer
        self._life = life
        self._asked_ms = consumer.stage.schedule.now_ms
        self._link = consumer.link
        self._settling = consumer.settling
        self._keeping = LeaseKeeping(self.visibility_ms) if terms.heartbeat else None
        self._leases: list[Lease] = []
        self._allowed = 0
        """Messages that the server may still push over this connection."""

    def close(self) -> None:
        """Unsubscribes, and returns deliveries that were not taken."""
        self.closed = True
        self._link.close_stream(self)
        leases, messages = self.left_over()
        for lease in leases:
            self._settling.whole(_GIVE_BACK, self.pushed[lease.token])
        if messages:
            pushed = self.pushed[messages[0][0].token]
            self._settling.chosen(_GIVE_BACK, pushed, [sequence for _, sequence in messages])
        for lease in self._leases:
            if any(lease is left for left in leases):
                lease.close_runs(lease.runs())

    # -- see `Subscribing` -----------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._link.now()

    def _open(self) -> None:
        self._link.open_stream(self)

    def opening(self) -> Subscribe:
        """See `Stream`: over a new connection the server has this credit and no other."""
        opening = super().opening()
        self._allowed = opening.credit
        return opening

    def _post(self, credit: AddCredit) -> None:
        self._allowed += credit.messages
        self._link.post(credit)

    def _received(self, delivery: Delivery, body: memoryview) -> PushedMessages[DeliveredMessage]:
        consumer, stage = self._consumer, self._consumer.stage
        consumer.counts["pushed to the library"] += 1
        messages = stage.recorder.delivered(self._life, delivery, body, self._asked_ms, self.visibility_ms)
        stage.trace.add(consumer.name, f"was pushed from {self._life.name}: {describe(messages)}")
        self._allowed -= len(messages)
        if self._allowed < 0:
            stage.recorder.history.beyond_credit.append(
                (
                    stage.schedule.now_ms,
                    f"{consumer.name} was pushed {-self._allowed} more than it has credit for",
                )
            )
        lease = Lease(delivery.token, delivery.batches, self._now())
        pushed = self.pushed[delivery.token] = Pushed(self._life, lease, messages)
        if self._keeping is not None:
            self._leases.append(lease)
            if self._keeping.begins():
                self._link.at(self._now() + self._keeping.interval, self._beat)
        return pushed

    def _beat(self) -> None:
        if self._keeping is None or self._link is not self._consumer.link:
            return  # it died
        self._leases, due = self._keeping.beat(self._leases, self._now())
        if self._leases:
            self._link.at(self._now() + self._keeping.interval, self._beat)
        for lease in due:
            self._settling.whole(SettleAction("extend", self.visibility_ms), self.pushed[lease.token])

    def failed(self, error: PenstockError) -> None:
        """See `Stream`."""
        if error.code is ErrorCode.QUEUE_DAMAGED:
            self._consumer.stage.recorder.damage_seen(self._life)
        super().failed(error)

    def _look_again(self, error: PenstockError) -> None:
        self._consumer.start(self._look_up(error))

    def _look_up(self, error: PenstockError) -> Steps[None]:
        stage = self._consumer.stage
        call = self._consumer.ask(DescribeQueue(self._life.name))
        while not call.is_done:
            yield Pause(5)
        if isinstance(call.answer, QueueDescription) and call.answer.queue_id != self._life.queue_id:
            self._life = stage.note(call.answer)
            self._asked_ms = stage.schedule.now_ms
            self._consumer.counts["subscription found its queue again"] += 1
            self.found_again(self._life.queue_id, error)
        else:
            self.found_again(None, error)

    def _wake(self, waiters: int) -> None:
        """Does nothing: the consumer polls."""

    def _wake_all(self) -> None:
        """Does nothing: no caller waits."""

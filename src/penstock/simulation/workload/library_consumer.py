"""Consumers with the code of the client library: its link, subscriptions, credit, lease renewals, and settlements.

Some stay on one queue until the end and receive everything from it; others change queues, receive or subscribe, keep
receipts for later, break their connection, or die silently.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

from penstock.client_core.call import Unanswered
from penstock.client_core.lease import Lease
from penstock.client_core.settling import DELETE, SettleAction
from penstock.model.errors import ErrorCode, PenstockError
from penstock.simulation.client_link import SimulatedLink
from penstock.simulation.message_history import DeliveredMessage, QueueLife
from penstock.simulation.network import Network
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.consumer import describe
from penstock.simulation.workload.library_settling import LibrarySettling, Pushed, SingleWaiter, WholeWaiter
from penstock.simulation.workload.library_subscription import LibrarySubscription, PlainCall
from penstock.simulation.workload.stage import MOVED_TO, Stage
from penstock.wire.messages import (
    Delete,
    Delivery,
    DescribeQueue,
    Extend,
    QueueDescription,
    Receive,
    Release,
    Request,
)

_TIMEOUT_SECONDS = 6.0
_LIFE_MS = 6_000
_DISCONNECTED_SHARE = 0.02
_DEATH_SHARE = 0.005
_THROTTLED = (Delete, Release, Extend, Receive)
_KEPT = 30


class LibraryConsumer:
    """One consumer; `steady`: the name of the queue on which it stays."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        network: Network,
        random: Random,
        was_settled_again: Callable[[bytes], bool],
        counts: Counter[str],
        steady: str | None = None,
    ) -> None:
        self.stage = stage
        self.name = name
        self.random = random
        self.counts = counts
        self._network = network
        self._was_settled_again = was_settled_again
        self._steady = steady
        self._throttled_share = random.choice((0.0, 0.0, 0.05))
        self._kept: list[Pushed] = []
        self.tasks = 0
        """Its own that are under way."""
        self.over = False
        """Whether one that is steady is to end."""
        self._connect()

    def _connect(self) -> None:
        self.link = SimulatedLink(
            self.name, self._network, _TIMEOUT_SECONDS, self.random, self._is_throttled, _THROTTLED
        )
        self.settling = LibrarySettling(self.stage, self.name, self.link, self._was_settled_again)

    def _is_throttled(self) -> bool:
        return not self.stage.stopping and self.random.random() < self._throttled_share

    @property
    def _ends(self) -> bool:
        return self.over if self._steady is not None else self.stage.stopping

    def start(self, steps: Steps[None]) -> None:
        """Lets something of it run."""

        def counted() -> Steps[None]:
            yield from steps
            self.tasks -= 1

        self.tasks += 1
        self.stage.tasks.start(counted())

    def run(self) -> Steps[None]:
        """Consumes until the run ends, then waits for its last answers."""
        random = self.random
        while not self._ends:
            life = self._next_queue()
            if life is None:
                yield from self._find()
                yield Pause(random.randint(50, 200))
            elif self._steady is not None or random.random() < 0.7:
                yield from self._subscribe(life)
            else:
                yield from self._receive(life)
            yield Pause(random.randint(10, 200))
        while self.link.table.calls:
            yield Pause(20)

    def _next_queue(self) -> QueueLife | None:
        if self._steady is not None:
            return self.stage.queues.get(self._steady)
        life = self.stage.pick_queue()
        return None if life is None or life.name.endswith(MOVED_TO) else life

    def _find(self) -> Steps[None]:
        """Looks whether the queue that it stays on was made again."""
        if self._steady is not None:
            call = self.ask(DescribeQueue(self._steady))
            while not call.is_done:
                yield Pause(10)
            if isinstance(call.answer, QueueDescription):
                self.stage.note(call.answer)

    def ask(self, request: Request) -> PlainCall:
        """Asks over the link."""
        call = PlainCall()
        call.message = request
        self.link.transmit(call)
        return call

    # -- subscriptions ---------------------------------------------------------------------------------------

    def _subscribe(self, life: QueueLife) -> Steps[None]:
        stage, random = self.stage, self.random
        subscription = LibrarySubscription(self, life)
        subscription.begin(life.queue_id, subscription.visibility_ms)
        until_ms = stage.schedule.elapsed_ms + random.randint(500, _LIFE_MS)
        by_message = random.random() < 0.4
        while not self._ends and (self._steady or stage.schedule.elapsed_ms < until_ms):
            yield Pause(random.randint(1, 80) if not stage.stopping else 2)
            try:
                if not subscription.is_open():
                    break
            except PenstockError as error:
                stage.trace.add(self.name, f"the subscription to {life.name} ended: {error.code}")
                if error.code is ErrorCode.QUEUE_NOT_FOUND and self._steady is not None:
                    stage.queues.pop(life.name, None)
                break
            take = self._take_message if by_message else self._take_delivery
            while take(subscription) and stage.stopping:
                pass  # in the end it takes all there is
            if not stage.stopping and random.random() < _DISCONNECTED_SHARE:
                self.link.disconnect()
            if not stage.stopping and random.random() < _DEATH_SHARE:
                self._die()
                return
        subscription.close()

    def _take_delivery(self, subscription: LibrarySubscription) -> bool:
        pushed = subscription.next_at_hand()
        if pushed is None:
            return False
        assert isinstance(pushed, Pushed)
        subscription.handed_out(len(pushed))
        self._keep(pushed)
        self.start(self._work(pushed))
        return True

    def _take_message(self, subscription: LibrarySubscription) -> bool:
        message = subscription.next_message_at_hand()
        if message is None:
            return False
        pushed = subscription.pushed[message.token]
        if message is pushed.messages[-1]:
            self._keep(pushed)
        self.start(self._work_on_one(pushed, message))
        return True

    def _die(self) -> None:
        """Its process is killed and another one begins."""
        self.counts["consumer died"] += 1
        self.stage.trace.add(self.name, "died")
        self.link.table.fail_all(Unanswered("it died"))
        self.link.disconnect()
        self._connect()

    # -- receives --------------------------------------------------------------------------------------------

    def _receive(self, life: QueueLife) -> Steps[None]:
        stage, random = self.stage, self.random
        wait_ms, visibility_ms = random.choice((0, 300, 1_500)), random.choice((400, 2_000))
        asked_ms = stage.schedule.now_ms
        call = self.ask(Receive(life.queue_id, random.choice((1, 5, 20)), wait_ms, visibility_ms))
        link = self.link
        while not call.is_done:
            yield Pause(random.randint(1, 20))
            if not stage.stopping and random.random() < _DISCONNECTED_SHARE:
                link.disconnect()
        delivery = call.answer
        if not isinstance(delivery, Delivery):
            stage.trace.add(self.name, f"receive from {life.name}: {call.error and call.error.code}")
            if call.error is not None and call.error.code is ErrorCode.QUEUE_NOT_FOUND:
                self.ask(DescribeQueue(life.name))
        elif delivery.batches:
            self.counts["received by the library"] += 1
            messages = stage.recorder.delivered(life, delivery, call.body_of_answer, asked_ms, visibility_ms)
            stage.trace.add(self.name, f"received from {life.name}: {describe(messages)}")
            pushed = Pushed(life, Lease(delivery.token, delivery.batches, link.now()), messages)
            self._keep(pushed)
            yield from self._work(pushed)

    # -- what it does with messages --------------------------------------------------------------------------

    def _keep(self, pushed: Pushed) -> None:
        """Keeps some receipts for later, also over failovers; now and then an old one is used again."""
        random = self.random
        if random.random() < 0.2:
            self._kept.append(pushed)
        if len(self._kept) > _KEPT:
            self._kept.pop(random.randrange(len(self._kept)))
        if self._kept and random.random() < 0.05:
            old = random.choice(self._kept)
            action = random.choice((DELETE, SettleAction("release"), SettleAction("extend", 1_000)))
            # As a program does that has stored its receipts: it does not know what it settled before.
            lease = Lease(old.lease.token, old.lease._batches, old.lease.arrived)
            self.settling.whole(action, old, lease)

    def _work(self, pushed: Pushed) -> Steps[None]:
        settling, random = self.settling, self.random
        yield Pause(random.choice((0, 5, 50, 400, 2_500)) if not self.stage.stopping else 0)
        style = random.random() if not self.stage.stopping else 0.0
        waiters: list[WholeWaiter | SingleWaiter] = []
        if style < 0.5:
            waiters = settling.whole(DELETE, pushed)
            if random.random() < 0.05:
                for waiter in waiters:
                    waiter.cancel()
        elif style < 0.65:
            for message in pushed.messages:
                waiters.append(settling.one(DELETE, pushed, message))
                if random.random() < 0.3:
                    yield Pause(random.choice((0, 1, 20)))
        elif style < 0.75:
            waiters += settling.whole(SettleAction("extend", random.choice((300, 2_000))), pushed)
            yield Pause(random.choice((0, 200, 1_500)))
            waiters += settling.whole(DELETE, pushed)
        elif style < 0.85:
            some = [message.sequence for message in pushed.messages if random.random() < 0.5]
            if some:
                delayed = SettleAction("release", random.choice((0, 100, 1_000)))
                waiters.append(settling.chosen(delayed, pushed, some))
            yield Pause(random.choice((0, 10)))
            waiters += settling.whole(DELETE, pushed)
        elif style < 0.93:
            waiters = settling.whole(SettleAction("release", random.choice((0, 0, 300))), pushed)
        while not all(waiter.done() for waiter in waiters):
            yield Pause(20)
        # No object holds the lease any more, settled or forgotten, so it is not extended.
        pushed.lease.close_runs(pushed.lease.runs())

    def _work_on_one(self, pushed: Pushed, message: DeliveredMessage) -> Steps[None]:
        random = self.random
        yield Pause(random.choice((0, 5, 50, 400)) if not self.stage.stopping else 0)
        style = random.random() if not self.stage.stopping else 0.0
        if style < 0.85:
            self.settling.one(DELETE, pushed, message)
        elif style < 0.95:
            self.settling.one(SettleAction("release", random.choice((0, 200))), pushed, message)
        else:
            pushed.lease.close([message.sequence])

"""How many receives a subscription has on their way: few where little comes, many where each comes back full."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from penstock.frontend.engine import Answered
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.routing.subscription import AHEAD_BYTES, AT_ONCE, Subscription
from penstock.steps.step import Reply
from penstock.wire.answers import DeliveredBatch
from penstock.wire.messages import Delivery, Receive, Request, Subscribe

BATCH = 100


class Engine:
    """Receives that wait until the test answers them."""

    def __init__(self) -> None:
        self.waiting: dict[int, tuple[int, Answered]] = {}
        self.cancelled: list[int] = []
        self._tickets = 0

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        assert isinstance(request, Receive)
        self._tickets += 1
        self.waiting[self._tickets] = (request.max_messages, done)
        return self._tickets

    def cancel(self, ticket: int) -> None:
        self.cancelled.append(ticket)

    def give(self, count: int, size: int = 0) -> None:
        """Answers the oldest with so many messages of so many bytes together."""
        _, done = self.waiting.pop(min(self.waiting))
        batches = (
            [DeliveredBatch(1, count, sent_ms=1, size=size, receive_counts=1, first_received_ms=1)]
            if count
            else []
        )
        done(Reply(Delivery(b"token", 1, batches), memoryview(bytes(size))))


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def _fail(error: PenstockError) -> None:
    raise error


def _subscribed(engine: Engine, loop: asyncio.AbstractEventLoop, credit: int) -> Subscription:
    subscription = Subscription(
        engine, loop.call_later, Subscribe(1, credit, BATCH), lambda delivery, body: None, _fail
    )
    subscription.go_on()
    return subscription


def test_waits_with_one_receive(loop: asyncio.AbstractEventLoop) -> None:
    engine = Engine()
    _subscribed(engine, loop, credit=100 * BATCH)
    assert len(engine.waiting) == 1


def test_has_more_on_their_way_while_each_comes_back_full_and_fewer_when_little_comes(
    loop: asyncio.AbstractEventLoop,
) -> None:
    engine = Engine()
    _subscribed(engine, loop, credit=100 * BATCH)
    counts = []
    for _ in range(5):
        engine.give(BATCH, size=1_000)
        counts.append(len(engine.waiting))
    assert counts == [2, 4, 8, AT_ONCE, AT_ONCE]
    _, *others = engine.waiting
    engine.give(1, size=10)
    assert engine.cancelled == others[AT_ONCE // 2 :]
    while len(engine.waiting) > 1:
        engine.give(0)
    engine.give(1, size=10)
    assert len(engine.waiting) == 1


def test_what_comes_in_spite_of_being_called_back_is_delivered(loop: asyncio.AbstractEventLoop) -> None:
    engine, delivered = Engine(), list[Delivery]()
    subscription = Subscription(
        engine,
        loop.call_later,
        Subscribe(1, 100 * BATCH, BATCH),
        lambda delivery, body: delivered.append(delivery),
        _fail,
    )
    subscription.go_on()
    engine.give(BATCH)
    engine.give(BATCH)
    assert len(engine.waiting) == 4
    engine.give(1)
    assert len(engine.cancelled) == 1
    engine.give(2)
    engine.give(3)
    assert sum(batch.count for delivery in delivered for batch in delivery.batches) == 2 * BATCH + 1 + 2 + 3
    assert len(engine.waiting) == 1


def test_asks_for_no_more_than_the_credit(loop: asyncio.AbstractEventLoop) -> None:
    engine = Engine()
    subscription = _subscribed(engine, loop, credit=3 * BATCH)
    engine.give(BATCH)
    engine.give(BATCH)
    assert [messages for messages, _ in engine.waiting.values()] == [BATCH]
    subscription.add_credit(5)
    assert [messages for messages, _ in engine.waiting.values()] == [BATCH, 5]


@pytest.mark.parametrize(("size", "at_once"), [(AHEAD_BYTES // 4, 4), (2 * AHEAD_BYTES, 1)])
def test_has_fewer_on_their_way_the_larger_they_are(
    loop: asyncio.AbstractEventLoop, size: int, at_once: int
) -> None:
    engine = Engine()
    _subscribed(engine, loop, credit=100 * BATCH)
    for _ in range(10):
        engine.give(BATCH, size=size)
    assert len(engine.waiting) == at_once

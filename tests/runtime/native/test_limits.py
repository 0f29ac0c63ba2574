"""Limits of requests (`penstock limit`) hold for the native protocol: counted as for SQS, refused so that clients try again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import penstock
from penstock.frontend.native.limits import NativeLimits
from penstock.frontend.native.rules import RULES
from penstock.frontend.throttle.throttle import Throttle
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.request_limits import RequestLimit, encode
from penstock.metadata.store.interface import Change
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire import messages
from penstock.wire.frames import Frame
from penstock.wire.messages import Receipt, Receive, Send, WeightedQueue
from tests.runtime.harness import async_test, until
from tests.runtime.native.test_users import UserServer, serving_users

NAMES = {1: "orders", 2: "others"}
IDS = {name: queue_id for queue_id, name in NAMES.items()}
TOKEN = (1).to_bytes(8, "little") + b"rest"


class Names:
    """Two queues."""

    def name_of(self, queue_id: int) -> str | None:
        return NAMES.get(queue_id)

    def id_of(self, name: str) -> int | None:
        return IDS.get(name)

    def may_be_new(self, queue_id: int) -> bool:
        return False


class Limited:
    """The limits of a native guard, which a test sets."""

    def __init__(self, **limits: tuple[float, int]) -> None:
        self.metadata = MetadataCache()
        for version, (key, (rate, burst)) in enumerate(limits.items(), 1):
            name = f"limits/{key.replace('_', '/')}"
            self.metadata.apply(Change(name, encode(RequestLimit(rate, burst)), version))
        self.throttle = Throttle(self.metadata)
        self.limits = NativeLimits(self.throttle, Names())

    def passes(
        self, request: messages.Request, body: bytes = b"", user: str = "ada", now_ms: int = 0
    ) -> bool:
        frame = Frame(1, memoryview(b""), memoryview(body))
        try:
            self.limits.check(user, RULES[type(request)], request, frame, now_ms)
        except PenstockError as error:
            if error.code is not ErrorCode.THROTTLED or not error.retryable:
                raise
            return False
        return True

    def left(self, now_ms: int = 0) -> int:
        """How many requests that cost one still pass."""
        return sum(self.passes(messages.Purge(1), now_ms=now_ms) for _ in range(2_000))


def batch(count: int) -> bytes:
    return encode_parts([b"x"] * count)


@pytest.mark.parametrize(
    ("request_", "body", "cost"),
    [
        (Send(1), batch(1), 1),
        (Send(1), batch(30), 30),
        (Send(1), b"short", 1),
        (Receive(1, 1), b"", 1),
        (Receive(1, 10), b"", 1),
        (Receive(1, 11), b"", 2),
        (Receive(1, 2**40), b"", 1_000),
        (Receive(1, -5), b"", 1),
        (messages.ReceiveAny([WeightedQueue(1, 1), WeightedQueue(2, 1)], 20), b"", 2),
        (messages.Subscribe(1, 100), b"", 10),
        (messages.Delete([Receipt(TOKEN, [(1, 3), (9, 1)]), Receipt(TOKEN, [(20, 2)])]), b"", 6),
        (messages.Release([Receipt(TOKEN, [(1, 3)])]), b"", 3),
        (messages.Extend([Receipt(TOKEN, [(1, 3)])], 10), b"", 3),
        (messages.ReadLog(1, 0), b"", 1),
        (messages.DescribeQueue("orders"), b"", 1),
        (messages.ListQueues(), b"", 1),
    ],
)
def test_requests_cost_what_those_of_sqs_do(request_: messages.Request, body: bytes, cost: int) -> None:
    limited = Limited(user_ada=(1, 1_500))
    assert limited.passes(request_, body)
    assert limited.left() == 1_500 - cost


@pytest.mark.parametrize(
    "request_",
    [
        Send(1),
        Receive(1),
        messages.ReceiveAny([WeightedQueue(2, 1), WeightedQueue(1, 1)]),
        messages.Delete([Receipt(TOKEN, [(1, 1)])]),
        messages.DescribeQueue("orders"),
    ],
)
def test_a_queue_is_limited_over_all_users_however_it_is_named(request_: messages.Request) -> None:
    limited = Limited(queue_orders=(1, 2))
    assert [limited.passes(request_, batch(1), user) for user in ("ada", "eve", "sam")] == [True, True, False]
    assert limited.passes(Send(2), batch(1))
    assert limited.passes(request_, batch(1), now_ms=1_000)


def test_no_claim_of_a_client_keeps_others_from_a_queue_for_long() -> None:
    limited = Limited(queue_orders=(1_000, 1))
    assert limited.passes(messages.Delete([Receipt(TOKEN, [(1, 2**62)])]))
    assert not limited.passes(Send(1), batch(1), "eve", 9_000)
    assert limited.passes(Send(1), batch(1), "eve", 10_001)


def test_credit_is_paid_for_and_never_more_is_owed_than_a_burst() -> None:
    limited = Limited(user_ada=(10, 20))
    for _ in range(100):
        limited.limits.charge_credit("ada", 1, 100, 0)
    assert not limited.passes(Receive(1), now_ms=2_000)
    assert limited.passes(Receive(1), now_ms=2_100)


async def limit(there: UserServer, key: str, rate: float, burst: int) -> None:
    store = there._shared._store
    assert store is not None
    await there.heard(key, store.put(key, encode(RequestLimit(rate, burst))))


@async_test
async def test_a_user_over_its_limit_is_refused_until_it_may_again_and_rows_say_so(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        root = await there.user("ada", root=True)
        async with there.as_(root, timeout=0.2) as client:
            queue = await client.create_queue("orders")
            await queue.send(b"x")
            await limit(there, "limits/user/ada", 0, 1)
            with pytest.raises(
                PenstockError, match=r"user 'ada' is limited to 0 requests a second"
            ) as caught:
                await queue.send(b"y")
            assert caught.value.code is ErrorCode.THROTTLED
            with pytest.raises(PenstockError, match="limited"):
                await queue.receive()
        refused = [event for event in there.events if event.outcome == "throttled"]
        assert {(event.action, event.user, event.status) for event in refused} == {
            ("SendMessage", "ada", 403),
            ("ReceiveMessage", "ada", 403),
        }
        assert all(event.queue.endswith(":orders") for event in refused)


@async_test
async def test_clients_wait_and_ask_again_and_nothing_is_stored_twice(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there, penstock.connect(there.server.url) as client:
        queue = await client.create_queue("orders")
        await limit(there, "limits/queue/orders", 200, 10)
        for number in range(6):
            await queue.send_batch([b"%d.%d" % (number, one) for one in range(10)])
        assert any(event.outcome == "throttled" for event in there.events)
        got: list[bytes] = []
        async with queue.consume(credit=20) as consumer:
            async for message in consumer:
                got.append(bytes(message.body))
                await message.delete()
                if len(got) == 60:
                    break
        assert sorted(got) == sorted(b"%d.%d" % (number, one) for number in range(6) for one in range(10))
        assert len({event.request_id for event in there.events}) == len(there.events)


@async_test
async def test_batches_that_are_on_their_way_together_are_stored_in_order_through_a_limit(
    tmp_path: Path,
) -> None:
    async with serving_users(tmp_path) as there, penstock.connect(there.server.url) as client:
        queue = await client.create_queue("orders", ordering="fifo")
        sent = [b"%d" % number for number in range(63)]
        await limit(there, "limits/queue/orders", 400, 20)
        async with queue.producer(batch_messages=20) as large, queue.producer(batch_messages=1) as small:
            for first in (0, 21, 42):  # a small one would pass before the large one that was refused
                await large.send_many(sent[first : first + 20])
                await small.send(sent[first + 20])
        assert any(event.outcome == "throttled" for event in there.events)
        await limit(there, "limits/queue/orders", 10_000, 10_000)
        assert [bytes(message.body) async for message in queue.peek()] == sent


@async_test
async def test_a_subscription_that_a_limit_refuses_begins_when_it_may(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there, penstock.connect(there.server.url) as client:
        queue = await client.create_queue("orders")
        await queue.send(b"x")
        await limit(there, "limits/queue/orders", 0, 1)
        async with queue.consume() as consumer:
            task = asyncio.ensure_future(anext(aiter(consumer)))
            await until(lambda: any(event.outcome == "throttled" for event in there.events))
            await limit(there, "limits/queue/orders", 1_000, 1_000)
            assert bytes((await task).body) == b"x"


@async_test
async def test_both_protocols_count_together(tmp_path: Path) -> None:
    async with serving_users(tmp_path) as there:
        sqs_server = there.server.broker.sqs_server
        assert sqs_server is not None
        assert sqs_server._front._services.throttle is there._shared.throttle

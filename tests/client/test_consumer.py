"""Push consumers: credit, reconnecting, leaving, heartbeat."""

from __future__ import annotations

import asyncio
import gc

import pytest

import penstock
from penstock import ErrorCode, Message, MessageConsumer, PenstockError
from penstock.wire.messages import (
    AddCredit,
    Delete,
    Delivery,
    Done,
    Extend,
    ReceiptOutcome,
    Release,
    Subscribe,
    Unsubscribe,
)
from tests.client.peer import Peer, Seen, async_test, connected


async def leave(peer: Peer, released: list[tuple[int, int]]) -> None:
    """Answers the end of a subscription and says what must be given back."""
    (await peer.next(Unsubscribe)).answer(Done())
    if released:
        seen = await peer.next(Release)
        assert [run for receipt in seen.request.receipts for run in receipt.runs] == released
        seen.settled(*[ReceiptOutcome(1, 0, []) for _ in seen.request.receipts])


def burst(seen: Seen[Subscribe], first: int, deliveries: int, messages: int = 1) -> None:
    for index in range(deliveries):
        seen.deliver(first + index * messages, [b"x"] * messages, b"token %d" % index)


@async_test
async def test_credit_is_topped_up_when_half_of_it_is_handed_out() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume(credit=10, batch_messages=3, visibility_timeout=5)
        handing = asyncio.ensure_future(anext(consumer))
        seen = await peer.next(Subscribe)
        assert seen.request == Subscribe(7, 10, 3, 5_000)
        burst(seen, 1, 10)
        await handing
        for _ in range(3):
            await anext(consumer)
        await client.queue("orders").describe()
        assert peer.quiet()  # 4 of 10 handed out
        await anext(consumer)
        credit = await peer.next(AddCredit)
        assert credit.request == AddCredit(seen.request_id, 5)
        leaving = asyncio.ensure_future(consumer.aclose())
        await leave(peer, [(6, 1), (7, 1), (8, 1), (9, 1), (10, 1)])
        await leaving


@async_test
async def test_batches_are_handed_out_whole_and_count_whole() -> None:
    async with connected() as (peer, client):
        async with client.queue("orders").consume_batches(credit=8, batch_messages=4) as consumer:
            seen = await peer.next(Subscribe)
            burst(seen, 1, 2, 4)
            batch = await anext(consumer)
            assert [message.sequence for message in batch] == [1, 2, 3, 4]
            assert (await peer.next(AddCredit)).request == AddCredit(seen.request_id, 4)
            deleting = batch.delete()
            deleted = await peer.next(Delete)
            assert deleted.request.receipts[0].runs == [(1, 4)]
            deleted.settled(ReceiptOutcome(4, 0, []))
            assert await deleting == (4, 0, [])
            leaving = asyncio.ensure_future(leave(peer, [(5, 4)]))
        await leaving


@async_test
async def test_leaving_the_loop_unsubscribes_and_gives_back_what_was_not_handed_out() -> None:
    async with connected() as (peer, client):

        async def consume_one() -> Message:
            async for message in client.queue("orders").consume():
                return message
            raise AssertionError

        consuming = asyncio.ensure_future(consume_one())
        seen = await peer.next(Subscribe)
        burst(seen, 1, 2, 3)
        message = await consuming
        assert message.sequence == 1
        gc.collect()
        (await peer.next(Unsubscribe)).answer(Done())
        released = await peer.next(Release)
        assert [receipt.runs for receipt in released.request.receipts] == [[(4, 3)], [(2, 2)]]
        released.settled(ReceiptOutcome(3, 0, []), ReceiptOutcome(2, 0, []))


@async_test
async def test_deliveries_that_cross_the_unsubscribe_are_given_back_too() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume()
        waiting = asyncio.ensure_future(anext(consumer))
        seen = await peer.next(Subscribe)
        leaving = asyncio.ensure_future(consumer.aclose())
        ending = await peer.next(Unsubscribe)
        burst(seen, 1, 1, 2)
        ending.answer(Done())
        released = await peer.next(Release)
        released.settled(ReceiptOutcome(2, 0, []))
        await leaving
        with pytest.raises(StopAsyncIteration):
            await waiting
        with pytest.raises(StopAsyncIteration):
            await anext(consumer)


@async_test
async def test_on_a_new_connection_it_subscribes_again_for_what_there_is_room_for() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume(credit=10)
        handing = asyncio.ensure_future(anext(consumer))
        burst(await peer.next(Subscribe), 1, 4)
        assert (await handing).sequence == 1
        peer.cut()
        again = await peer.next(Subscribe)
        assert again.request.credit == 7  # three wait here
        burst(again, 50, 1)
        assert [(await anext(consumer)).sequence for _ in range(4)] == [2, 3, 4, 50]
        leaving = asyncio.ensure_future(consumer.aclose())
        await leave(peer, [])
        await leaving


@async_test
async def test_without_a_connection_for_the_timeout_the_loop_ends_with_the_error() -> None:
    async with connected(timeout=0.1) as (peer, client):
        consumer = client.queue("orders").consume()
        handing = asyncio.ensure_future(anext(consumer))
        await peer.next(Subscribe)
        peer.hang_up()
        with pytest.raises(PenstockError) as caught:
            await handing
        assert caught.value.code is ErrorCode.UNREACHABLE
        await consumer.aclose()


@async_test
async def test_a_queue_made_again_is_subscribed_to() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume()
        handing = asyncio.ensure_future(anext(consumer))
        seen = await peer.next(Subscribe)
        peer.queues["orders"] = 9
        seen.refuse(ErrorCode.QUEUE_NOT_FOUND)
        again = await peer.next(Subscribe)
        assert again.request.queue_id == 9
        burst(again, 1, 1)
        await handing
        del peer.queues["orders"]
        again.refuse(ErrorCode.QUEUE_NOT_FOUND, "deleted")
        with pytest.raises(PenstockError, match="deleted"):
            await anext(consumer)


@async_test
async def test_a_queue_that_does_not_exist_is_said_so_and_can_be_tried_again() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("missing").consume()
        with pytest.raises(PenstockError, match="no queue 'missing'"):
            await anext(consumer)
        peer.queues["missing"] = 5
        handing = asyncio.ensure_future(anext(consumer))
        burst(await peer.next(Subscribe), 1, 1)
        await handing


@async_test
async def test_several_tasks_may_take_from_one_consumer() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume(credit=100)
        tasks = [asyncio.ensure_future(anext(consumer)) for _ in range(6)]
        seen = await peer.next(Subscribe)
        burst(seen, 1, 1, 4)
        seen.deliver(5, [b"x", b"y"])
        assert sorted([(await task).sequence for task in tasks]) == [1, 2, 3, 4, 5, 6]


@async_test
async def test_a_cancelled_taker_leaves_its_message_to_the_next() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume()
        first, second = (asyncio.ensure_future(anext(consumer)) for _ in range(2))
        seen = await peer.next(Subscribe)
        first.cancel()
        burst(seen, 1, 1)
        assert (await second).sequence == 1


def beat(consumer: MessageConsumer) -> None:
    """A third of the visibility timeout passes."""
    heartbeat = consumer._subscription._heartbeat
    assert heartbeat is not None
    for lease in heartbeat._leases:
        lease.arrived -= 100
    del lease
    heartbeat._beat()


@async_test
async def test_the_heartbeat_extends_what_is_not_settled_until_it_is() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume(visibility_timeout=300, heartbeat=True)
        handing = asyncio.ensure_future(anext(consumer))
        (await peer.next(Subscribe)).deliver(1, [b"x"] * 3)
        held = [await handing, await anext(consumer), await anext(consumer)]
        beat(consumer)
        extended = await peer.next(Extend)
        assert extended.request.visibility_timeout_ms == 300_000
        assert extended.request.receipts[0].runs == [(1, 3)]
        extended.settled(ReceiptOutcome(3, 0, []))
        deleting = held[1].delete()
        (await peer.next(Delete)).settled(ReceiptOutcome(1, 0, []))
        await deleting
        beat(consumer)
        extended = await peer.next(Extend)
        assert extended.request.receipts[0].runs == [(1, 1), (3, 1)]
        extended.settled(ReceiptOutcome(1, 0, [(3, 1)]))  # one was lost all the same: no use in trying again
        await client.queue("orders").describe()
        beat(consumer)
        extended = await peer.next(Extend)
        assert extended.request.receipts[0].runs == [(1, 1)]


@async_test
async def test_the_heartbeat_beats_by_itself() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume(visibility_timeout=0.06, heartbeat=True)
        handing = asyncio.ensure_future(anext(consumer))
        (await peer.next(Subscribe)).deliver(1, [b"x"])
        for _ in range(3):
            (await peer.next(Extend)).settled(ReceiptOutcome(1, 0, []))
        assert (await handing).body == b"x"


@async_test
async def test_the_heartbeat_lets_go_of_what_nobody_holds() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume(visibility_timeout=300, heartbeat=True)
        handing = asyncio.ensure_future(anext(consumer))
        seen = await peer.next(Subscribe)
        seen.deliver(1, [b"dropped"], b"one")
        seen.deliver(2, [b"held"], b"two")
        await handing
        del handing
        held = await anext(consumer)
        await client.queue("orders").describe()  # until the loop itself has let go of the task
        gc.collect()
        beat(consumer)
        extended = await peer.next(Extend)
        assert [receipt.token for receipt in extended.request.receipts] == [b"two"]
        assert held.body == b"held"


@async_test
async def test_messages_whose_lease_ended_while_they_waited_here_are_not_handed_out() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume(visibility_timeout=30, credit=4)
        handing = asyncio.ensure_future(anext(consumer))
        seen = await peer.next(Subscribe)
        seen.deliver(1, [b"in time", b"too late"])
        message = await handing
        seen.deliver(3, [b"too late"])
        await client.queue("orders").describe()  # a round trip: the delivery has arrived
        for delivery in (message.delivery, consumer._subscription._buffer[0]):
            delivery.lease.arrived -= 31
        handing = asyncio.ensure_future(anext(consumer))
        assert (await peer.next(AddCredit)).request.messages == 2
        seen.deliver(4, [b"in time"])
        assert (await handing).sequence == 4


@async_test
async def test_an_empty_delivery_is_no_news() -> None:
    async with connected() as (peer, client):
        consumer = client.queue("orders").consume()
        handing = asyncio.ensure_future(anext(consumer))
        seen = await peer.next(Subscribe)
        seen.answer(Delivery(b"", 0, []))
        burst(seen, 1, 1)
        await handing


@async_test
async def test_closing_the_client_ends_its_consumers() -> None:
    async with Peer() as peer:
        client = await penstock.connect(peer.url)
        consumer = client.queue("orders").consume()
        handing = asyncio.ensure_future(anext(consumer))
        await peer.next(Subscribe)
        closing = asyncio.ensure_future(client.close())
        await leave(peer, [])
        await closing
        with pytest.raises(StopAsyncIteration):
            await handing


@async_test
async def test_terms_that_cannot_be_are_refused() -> None:
    async with connected() as (_, client):
        queue = client.queue("orders")
        with pytest.raises(PenstockError, match="credit is 0"):
            queue.consume(credit=0)
        with pytest.raises(PenstockError, match="batch_messages is 10001"):
            queue.consume_batches(batch_messages=10_001)

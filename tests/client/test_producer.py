"""The producer: batching, back-pressure, failures, flushing."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

import penstock
from penstock import ErrorCode, OutgoingMessage, PenstockError, ProducerError
from penstock.client.produce.outgoing import Sendable
from penstock.model.batch import Batch
from penstock.wire.messages import Send
from tests.client.peer import Peer, Seen, async_test, connected

NEVER = 3_600


def bodies(seen: Seen[Send]) -> list[bytes]:
    return Batch(seen.body).bodies()


@async_test
async def test_full_batches_go_out_in_order_and_flush_sends_the_rest() -> None:
    async with connected() as (peer, client):
        producer = client.queue("orders").producer(batch_messages=2, linger=NEVER)
        for index in range(5):
            await producer.send(b"%d" % index)
        flushing = asyncio.ensure_future(producer.flush())
        seen = [await peer.next_send() for _ in range(3)]
        assert [bodies(one) for one in seen] == [[b"0", b"1"], [b"2", b"3"], [b"4"]]
        assert [one.request.number for one in seen] == [1, 2, 3]
        assert not flushing.done()
        for one in seen:
            one.stored()
        await flushing
        await producer.close()


@async_test
async def test_a_batch_is_sent_when_its_time_is_up() -> None:
    async with (
        connected() as (peer, client),
        client.queue("orders").producer() as producer,
    ):
        await producer.send(b"alone")
        seen = await peer.next_send()
        assert bodies(seen) == [b"alone"]
        seen.stored()


@async_test
async def test_without_linger_a_batch_ends_with_the_turn_of_the_loop() -> None:
    async with (
        connected() as (peer, client),
        client.queue("orders").producer(linger=0) as producer,
    ):
        await producer.send(b"a")
        await producer.send(b"b")
        seen = await peer.next_send()
        assert bodies(seen) == [b"a", b"b"]
        seen.stored()


@async_test
async def test_a_batch_is_sent_when_it_has_bytes_enough() -> None:
    async with (
        connected() as (peer, client),
        client.queue("orders").producer(batch_bytes=100, linger=NEVER) as producer,
    ):
        for size in (60, 30, 30, 500, 1):
            await producer.send(b"x" * size)
        closing = asyncio.ensure_future(producer.flush())
        seen = [await peer.next_send() for _ in range(4)]
        assert [[len(body) for body in bodies(one)] for one in seen] == [[60, 30], [30], [500], [1]]
        for one in seen:
            one.stored()
        await closing


@async_test
async def test_tickets_tell_the_sequence_number() -> None:
    async with (
        connected() as (peer, client),
        client.queue("orders").producer(batch_messages=3, linger=NEVER) as producer,
    ):
        tickets = [await producer.send(body) for body in (b"a", "b", OutgoingMessage(b"c", priority=3))]
        seen = await peer.next_send()
        assert not tickets[0].done()
        seen.stored(40)
        assert [(await ticket).sequence for ticket in tickets] == [40, 41, 42]
        assert tickets[0].done()


@async_test
async def test_no_more_batches_are_on_their_way_than_allowed() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        producer = queue.producer(batch_messages=1, in_flight=2, linger=NEVER)
        sending = asyncio.ensure_future(producer.send_many(b"%d" % index for index in range(10)))
        first, second = await peer.next_send(), await peer.next_send()
        await queue.describe()  # a round trip: whatever was to be sent has arrived
        assert peer.quiet()
        assert not sending.done()
        second.stored()
        third = await peer.next_send()
        assert bodies(third) == [b"2"]
        first.stored()
        third.stored()
        for _ in range(7):
            (await peer.next_send()).stored()
        await sending
        await producer.close()


@async_test
async def test_no_more_bytes_are_on_their_way_than_allowed_but_one_batch_always_is() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        producer = queue.producer(batch_messages=1, in_flight_bytes=1_000)
        sending = asyncio.ensure_future(producer.send_many([b"x" * 600] * 2 + [b"y" * 5_000]))
        for _ in range(3):
            seen = await peer.next_send()
            await queue.describe()
            assert peer.quiet()
            seen.stored()
        await sending
        await producer.close()


@async_test
async def test_what_was_read_of_an_iterator_is_taken_or_named() -> None:
    given = [b"%d" % number for number in range(100)]
    plain: list[Sendable] = [*given]
    with_more: list[Sendable] = [OutgoingMessage(body, priority=1) for body in given]
    for messages in (plain, with_more):
        async with connected() as (peer, client):
            producer = client.queue("orders").producer(batch_messages=10, in_flight=1, linger=NEVER)
            source = iter(messages)
            sending = asyncio.ensure_future(producer.send_many(source))
            (await peer.next_send()).refuse(ErrorCode.QUEUE_FULL)
            with pytest.raises(ProducerError) as caught:
                await sending
            named = [message for failure in caught.value.failures for message in failure.messages]
            left = list(source)
            closing = asyncio.ensure_future(producer.close())
            stored: list[bytes] = []
            while not closing.done():
                seen = asyncio.ensure_future(peer.next_send())
                await asyncio.wait({seen, closing}, return_when=asyncio.FIRST_COMPLETED)
                if seen.done():
                    stored += bodies(seen.result())
                    seen.result().stored()
                else:
                    seen.cancel()
            await closing
            known = [one.body if isinstance(one, OutgoingMessage) else one for one in (*named, *left)]
            assert sorted([*stored, *known], key=int) == given


@async_test
async def test_failures_are_raised_once_with_the_messages_and_the_producer_goes_on() -> None:
    async with connected() as (peer, client):
        producer = client.queue("orders").producer(batch_messages=2, linger=NEVER)
        tickets = [await producer.send(b"%d" % index) for index in range(4)]
        (await peer.next_send()).refuse(ErrorCode.QUEUE_FULL, "full")
        (await peer.next_send()).stored()
        with pytest.raises(ProducerError, match=r"2 messages in 1 batches.*full") as caught:
            await producer.flush()
        assert caught.value.code is ErrorCode.QUEUE_FULL
        assert caught.value.retryable
        assert [failure.messages for failure in caught.value.failures] == [[b"0", b"1"]]
        with pytest.raises(PenstockError, match="full"):
            await tickets[1]
        assert (await tickets[2]).sequence == 1
        await producer.flush()
        again = await producer.send(b"again")
        closing = asyncio.ensure_future(producer.close())
        (await peer.next_send()).stored(9)
        await closing
        assert (await again).sequence == 9


@async_test
async def test_the_next_send_raises_what_nobody_was_told() -> None:
    async with connected() as (peer, client):
        producer = client.queue("orders").producer(batch_messages=1)
        ticket = await producer.send(b"a")
        (await peer.next_send()).refuse(ErrorCode.DISK_FULL)
        with pytest.raises(PenstockError):
            await ticket
        with pytest.raises(ProducerError):
            await producer.send(b"not taken")
        await producer.close()
        assert peer.quiet()


@async_test
async def test_failures_can_be_taken_instead() -> None:
    async with (
        connected() as (peer, client),
        client.queue("orders").producer(batch_messages=1) as producer,
    ):
        ticket = await producer.send(b"a")
        (await peer.next_send()).refuse(ErrorCode.DISK_FULL)
        with pytest.raises(PenstockError):
            await ticket
        (failure,) = producer.take_failures()
        assert (failure.error.code, failure.messages) == (ErrorCode.DISK_FULL, [b"a"])


@async_test
async def test_a_bad_message_is_refused_before_it_is_taken_and_hurts_no_other() -> None:
    async with (
        connected() as (peer, client),
        client.queue("orders").producer(linger=NEVER) as producer,
    ):
        await producer.send(b"good")
        with pytest.raises(PenstockError, match="priority 11"):
            await producer.send(OutgoingMessage(b"bad", priority=11))
        with pytest.raises(TypeError, match="must be bytes or str"):
            await producer.send(17)  # type: ignore[arg-type]  # what is wrong is the test
        flushing = asyncio.ensure_future(producer.flush())
        seen = await peer.next_send()
        assert bodies(seen) == [b"good"]
        seen.stored()
        await flushing


@async_test
async def test_batches_on_their_way_survive_a_broken_connection_in_order() -> None:
    async with connected() as (peer, client):
        producer = client.queue("orders").producer(batch_messages=1, in_flight=3)
        sending = asyncio.ensure_future(producer.send_many([b"0", b"1", b"2", b"3"]))
        before = [await peer.next_send() for _ in range(3)]
        peer.cut()
        after = [await peer.next_send() for _ in range(3)]
        assert [one.request for one in after] == [one.request for one in before]
        for index, one in enumerate(after):
            one.stored(index + 1)
        (await peer.next_send()).stored(4)
        await sending
        await producer.close()


@async_test
async def test_a_queue_made_again_takes_what_the_old_one_refused() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        peer.queues["orders"] = 9
        async with queue.producer(batch_messages=1) as producer:
            ticket = await producer.send(b"x")
            (await peer.next_send()).refuse(ErrorCode.QUEUE_NOT_FOUND)
            seen = await peer.next_send()
            assert seen.request.queue_id == 9
            seen.stored(3)
            assert (await ticket).sequence == 3


@async_test
async def test_a_queue_that_does_not_exist_fails_everything_taken() -> None:
    async with connected() as (peer, client):
        producer = client.queue("missing").producer(batch_messages=2)
        await producer.send(b"a")
        with pytest.raises(ProducerError, match="no queue") as caught:
            await producer.flush()
        assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND
        await producer.close()
        assert peer.quiet()


@async_test
async def test_closing_the_client_flushes_its_producers() -> None:
    async with Peer() as peer:
        client = await penstock.connect(peer.url)
        producer = client.queue("orders").producer(linger=NEVER)
        ticket = await producer.send(b"x")
        closing = asyncio.ensure_future(client.close())
        (await peer.next_send()).stored()
        await closing
        assert (await ticket).sequence == 1
        with pytest.raises(PenstockError, match="closed"):
            await producer.send(b"y")


@async_test
async def test_an_error_inside_the_block_is_not_hidden_by_a_failure_to_send() -> None:
    async with connected() as (peer, client):

        async def fails() -> None:
            async with client.queue("orders").producer(linger=NEVER) as producer:
                await producer.send(b"x")
                raise KeyError("mine")

        failing = asyncio.ensure_future(fails())
        (await peer.next_send()).refuse(ErrorCode.QUEUE_FULL)
        with pytest.raises(KeyError, match="mine"):
            await failing


@async_test
async def test_a_cancelled_sender_that_waits_for_room_leaves_the_producer_intact() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        producer = queue.producer(batch_messages=1, in_flight=1)
        await producer.send(b"0")
        await producer.send(b"1")
        waiting = asyncio.ensure_future(producer.send(b"2"))
        first = await peer.next_send()
        waiting.cancel()
        await asyncio.wait([waiting])
        first.stored()
        (await peer.next_send()).stored()
        await producer.close()
        assert peer.quiet()


@async_test
async def test_a_batch_that_a_cluster_cannot_take_just_now_is_sent_again_with_its_number() -> None:
    async with connected() as (peer, client):
        producer = client.queue("orders").producer(batch_messages=1)
        ticket = await producer.send(b"x")
        for code in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNREACHABLE, ErrorCode.NOT_PRIMARY):
            (await peer.next_send()).refuse(code)
        seen = await peer.next_send()
        assert (seen.request.number, bodies(seen)) == (1, [b"x"])
        seen.stored(4)
        assert (await ticket).sequence == 4
        await producer.close()


@async_test
async def test_a_batch_that_is_refused_for_the_whole_timeout_has_failed() -> None:
    async with connected(timeout=0.2) as (peer, client):
        producer = client.queue("orders").producer(batch_messages=1)
        ticket = await producer.send(b"x")
        tries = 0
        while not ticket.done():
            with contextlib.suppress(TimeoutError):
                (await asyncio.wait_for(peer.next_send(), 0.5)).refuse(
                    ErrorCode.NOT_ENOUGH_REPLICAS, "too few"
                )
                tries += 1
        with pytest.raises(PenstockError, match="too few"):
            await ticket
        assert tries >= 2
        with pytest.raises(ProducerError):
            await producer.close()

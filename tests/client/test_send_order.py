"""Batches that are on their way together: what follows one that was refused comes again behind it."""

from __future__ import annotations

import asyncio

import penstock
from penstock import ErrorCode, PenstockError
from penstock.model.batch import Batch
from penstock.wire.messages import Delete, ReceiptOutcome, Receive, Send
from tests.client.peer import Peer, Seen, async_test, connected
from tests.runtime.harness import until


async def batches(peer: Peer, count: int) -> list[Seen[Send]]:
    return [await peer.next_send() for _ in range(count)]


def numbers(seen: list[Seen[Send]]) -> list[tuple[int, int]]:
    return [(one.request.number, one.request.after) for one in seen]


@async_test
async def test_a_producer_sends_a_throttled_batch_and_those_behind_it_again_in_order() -> None:
    async with connected() as (peer, client), client.queue("orders").producer(batch_messages=1) as producer:
        tickets = [await producer.send(b"%d" % number) for number in range(4)]
        first = await batches(peer, 4)
        assert numbers(first) == [(1, 0), (2, 1), (3, 2), (4, 3)]
        first[0].refuse(ErrorCode.THROTTLED)
        for one in first[1:]:
            one.refuse(ErrorCode.OUT_OF_ORDER)
        await until(lambda: client.queue("orders").route.line.waits)
        tickets.append(await producer.send(b"4"))  # it waits behind them
        again = await batches(peer, 5)
        assert numbers(again) == [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
        assert [Batch(one.body).bodies() for one in again] == [[b"%d" % number] for number in range(5)]
        for place, one in enumerate(again):
            one.stored(place + 1)
        assert [(await ticket).sequence for ticket in tickets] == [1, 2, 3, 4, 5]


@async_test
async def test_single_sends_keep_their_order_through_a_cluster_that_changes() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = [asyncio.ensure_future(queue.send(b"%d" % number)) for number in range(3)]
        first = await batches(peer, 3)
        first[0].stored(1)
        first[1].refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
        first[2].refuse(ErrorCode.OUT_OF_ORDER)
        again = await batches(peer, 2)
        assert numbers(again) == [(2, 0), (3, 2)]
        again[0].stored(2)
        again[1].stored(3)
        assert [(await one).sequence for one in sending] == [1, 2, 3]


@async_test
async def test_what_fails_for_good_does_not_hold_up_what_follows() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = [asyncio.ensure_future(queue.send(b"%d" % number)) for number in range(2)]
        first = await batches(peer, 2)
        first[0].refuse(ErrorCode.DISK_FULL)
        first[1].refuse(ErrorCode.OUT_OF_ORDER)
        (again,) = await batches(peer, 1)
        assert numbers([again]) == [(2, 0)]
        again.stored(1)
        outcomes = await asyncio.gather(*sending, return_exceptions=True)
        assert isinstance(outcomes[0], PenstockError)
        assert outcomes[0].code is ErrorCode.DISK_FULL
        assert outcomes[1].sequence == 1  # type: ignore[union-attr]  # it is no error


@async_test
async def test_a_send_that_is_cancelled_while_it_waits_is_not_sent_again() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = [asyncio.ensure_future(queue.send(b"%d" % number)) for number in range(2)]
        first = await batches(peer, 2)
        first[0].refuse(ErrorCode.THROTTLED)
        sending[0].cancel()
        await asyncio.wait([sending[0]])
        first[1].refuse(ErrorCode.OUT_OF_ORDER)
        (again,) = await batches(peer, 1)
        assert Batch(again.body).bodies() == [b"1"]
        again.stored(1)
        await sending[1]
        assert peer.quiet()


@async_test
async def test_closing_the_client_fails_what_waits_to_be_sent_again() -> None:
    async with Peer() as peer:
        client = await penstock.connect(peer.url)
        sending = [asyncio.ensure_future(client.queue("orders").send(b"x")) for _ in range(2)]
        first = await batches(peer, 2)
        first[0].refuse(ErrorCode.THROTTLED)
        first[1].refuse(ErrorCode.OUT_OF_ORDER)
        await until(lambda: client.queue("orders").route.line.waits)
        await client.close()
        outcomes = await asyncio.gather(*sending, return_exceptions=True)
        assert all(isinstance(outcome, PenstockError) for outcome in outcomes)


@async_test
async def test_a_delete_through_a_front_end_that_has_not_heard_of_the_queue_is_asked_again() -> None:
    async with connected() as (peer, client):
        receiving = asyncio.ensure_future(client.queue("orders").receive())
        (await peer.next(Receive)).deliver(1, [b"x"])
        (message,) = await receiving
        deleting = asyncio.ensure_future(message.delete())
        seen = await peer.next(Delete)
        seen.refuse(ErrorCode.METADATA_UNAVAILABLE)
        again = await peer.next(Delete)
        assert again.request == seen.request
        again.settled(ReceiptOutcome(1, 0, []))
        await deleting

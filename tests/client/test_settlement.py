"""Deleting, releasing and extending: what travels together, and what each caller is told."""

from __future__ import annotations

import asyncio

import pytest

from penstock import DeliveredMessages, ErrorCode, PenstockError, Queue, Settlement
from penstock.wire.messages import Delete, Extend, ReceiptOutcome, Receive, Release
from tests.client.peer import Peer, Seen, async_test, connected


async def receive(
    peer: Peer, queue: Queue, first: int, count: int, token: bytes = b"token"
) -> DeliveredMessages:
    receiving = asyncio.ensure_future(queue.receive())
    (await peer.next(Receive)).deliver(first, [b"x"] * count, token)
    return await receiving


@async_test
async def test_deletes_of_one_turn_travel_together() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        one = await receive(peer, queue, 10, 5, b"one")
        two = await receive(peer, queue, 20, 5, b"two")
        futures = [one[index].delete() for index in (3, 0, 1, 4)] + [two[2].delete(), one[0].ack()]
        seen = await peer.next(Delete)
        assert [(receipt.token, receipt.runs) for receipt in seen.request.receipts] == [
            (b"one", [(10, 2), (13, 2)]),
            (b"two", [(22, 1)]),
        ]
        assert not any(future.done() for future in futures)
        seen.settled(ReceiptOutcome(4, 0, []), ReceiptOutcome(1, 0, []))
        await asyncio.gather(*futures)
        assert peer.quiet()


@async_test
async def test_each_deleter_is_told_its_own_outcome() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 4)
        results = asyncio.gather(*(message.delete() for message in messages), return_exceptions=True)
        (await peer.next(Delete)).settled(ReceiptOutcome(1, 1, [(11, 1), (13, 1)]))
        outcomes = await results
        assert [outcome is None for outcome in outcomes] == [True, False, True, False]
        stale = outcomes[1]
        assert isinstance(stale, PenstockError)
        assert stale.code is ErrorCode.STALE_RECEIPT
        assert "message 11" in str(stale)
        assert "heartbeat" in str(stale)


@async_test
async def test_a_failed_request_fails_every_deleter() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 2)
        results = asyncio.gather(*(message.delete() for message in messages), return_exceptions=True)
        (await peer.next(Delete)).refuse(ErrorCode.QUEUE_NOT_FOUND)
        assert [type(outcome) for outcome in await results] == [PenstockError, PenstockError]


@async_test
async def test_one_cancelled_deleter_does_not_take_the_others_with_it() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 2)
        first, second = messages[0].delete(), messages[1].delete()
        seen = await peer.next(Delete)
        first.cancel()
        seen.settled(ReceiptOutcome(2, 0, []))
        await second


@async_test
async def test_different_actions_of_one_turn_are_different_requests() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 6)
        futures = [
            messages[0].delete(),
            messages[1].release(),
            messages[2].release(1.5),
            messages[3].extend(60),
            messages[4].release(),
        ]
        deleted, released, delayed, extended = (
            await peer.next(Delete),
            await peer.next(Release),
            await peer.next(Release),
            await peer.next(Extend),
        )
        assert deleted.request.receipts[0].runs == [(10, 1)]
        assert (released.request.delay_ms, released.request.receipts[0].runs) == (0, [(11, 1), (14, 1)])
        assert (delayed.request.delay_ms, delayed.request.receipts[0].runs) == (1_500, [(12, 1)])
        assert (extended.request.visibility_timeout_ms, extended.request.receipts[0].runs) == (
            60_000,
            [(13, 1)],
        )
        for seen in (deleted, released, delayed, extended):
            seen.settled(ReceiptOutcome(1, 0, []))
        await asyncio.gather(*futures)


@async_test
async def test_a_delete_sent_again_may_find_the_messages_gone() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 2)
        single, whole = messages[0].delete(), messages.delete()
        await peer.next(Delete)
        await peer.next(Delete)
        peer.cut()
        whole_again, single_again = await peer.next(Delete), await peer.next(Delete)
        assert single_again.request.receipts[0].runs == [(10, 1)]
        single_again.settled(ReceiptOutcome(0, 1, []))
        whole_again.settled(ReceiptOutcome(0, 2, []))
        await single
        assert await whole == (0, 2, [])


@async_test
async def test_a_release_sent_again_may_find_the_lease_ended_by_itself() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 3)
        single = messages[0].release()
        await peer.next(Release)
        peer.cut()
        (await peer.next(Release)).settled(ReceiptOutcome(0, 0, [(10, 1)]))
        await single
        whole = messages.release()
        await peer.next(Release)
        peer.cut()
        (await peer.next(Release)).settled(ReceiptOutcome(0, 0, [(11, 2)]))
        assert await whole == (2, 0, [])


@async_test
async def test_extending_what_is_gone_is_an_error() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 1)
        extending = messages[0].extend(30)
        (await peer.next(Extend)).settled(ReceiptOutcome(0, 1, []))
        with pytest.raises(PenstockError, match="too late to extend"):
            await extending


@async_test
async def test_settling_a_delivery_leaves_out_what_is_settled() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 5)
        releasing = messages[2].release()
        (await peer.next(Release)).settled(ReceiptOutcome(1, 0, []))
        await releasing
        deleting = messages.delete()
        seen = await peer.next(Delete)
        assert seen.request.receipts[0].runs == [(10, 2), (13, 2)]
        seen.settled(ReceiptOutcome(3, 0, [(14, 1)]))
        assert await deleting == (3, 0, [14])
        assert await messages.delete() == (0, 0, [])


@async_test
async def test_a_delivery_whose_settling_failed_can_be_settled_again() -> None:
    async with connected() as (peer, client):
        messages = await receive(peer, client.queue("orders"), 10, 5)
        deleting = messages.delete()
        (await peer.next(Delete)).refuse(ErrorCode.OVERLOADED)
        with pytest.raises(PenstockError):
            await deleting
        deleting = messages.delete()
        (await peer.next(Delete)).settled(ReceiptOutcome(5, 0, []))
        assert (await deleting).done == 5


@async_test
async def test_chosen_messages_of_many_deliveries_are_settled_in_one_request() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        one = await receive(peer, queue, 10, 5, b"one")
        two = await receive(peer, queue, 20, 5, b"two")
        chosen = [one[4], two[0], one[3], two[1]]
        settling = asyncio.ensure_future(queue.extend_batch(chosen, 60))
        await settle_both(await peer.next(Extend), settling)
        settling = asyncio.ensure_future(queue.release_batch(chosen, 2))
        await settle_both(await peer.next(Release), settling)
        settling = asyncio.ensure_future(queue.delete_batch(chosen))
        await settle_both(await peer.next(Delete), settling)
        assert await queue.delete_batch([]) == (0, 0, [])


async def settle_both(
    seen: Seen[Delete] | Seen[Release] | Seen[Extend], settling: asyncio.Future[Settlement]
) -> None:
    assert [receipt.runs for receipt in seen.request.receipts] == [[(13, 2)], [(20, 2)]]
    seen.settled(ReceiptOutcome(2, 0, []), ReceiptOutcome(1, 0, [(21, 1)]))
    assert await settling == (3, 0, [21])

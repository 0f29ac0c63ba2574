"""Deliveries and batches of messages settled in one turn of the event loop: one request for all, an outcome for each."""

from __future__ import annotations

import asyncio

import pytest

from penstock import ErrorCode, PenstockError, Settlement
from penstock.model import limits
from penstock.wire.messages import Delete, ReceiptOutcome, Release
from tests.client.peer import async_test, connected
from tests.client.test_settlement import receive


@async_test
async def test_deliveries_of_one_turn_travel_together_and_each_has_its_outcome() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        deliveries = [await receive(peer, queue, 10 * n, 3, b"token %d" % n) for n in (1, 2, 3)]
        deleting = [delivery.delete() for delivery in deliveries]
        seen = await peer.next(Delete)
        assert [(receipt.token, receipt.runs) for receipt in seen.request.receipts] == [
            (b"token 1", [(10, 3)]),
            (b"token 2", [(20, 3)]),
            (b"token 3", [(30, 3)]),
        ]
        seen.settled(ReceiptOutcome(3, 0, []), ReceiptOutcome(1, 1, [(22, 1)]), ReceiptOutcome(0, 3, []))
        assert await asyncio.gather(*deleting) == [
            Settlement(3, 0, []),
            Settlement(1, 1, [22]),
            Settlement(0, 3, []),
        ]
        assert peer.quiet()


@async_test
async def test_batches_that_several_tasks_delete_in_one_turn_travel_together() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        one, two = [await receive(peer, queue, 10 * n, 3, b"token %d" % n) for n in (1, 2)]
        deleting = asyncio.gather(
            queue.delete_batch(one), queue.delete_batch([*two[:2], one[0]]), queue.delete_batch([])
        )
        seen = await peer.next(Delete)
        assert [(receipt.token, receipt.runs) for receipt in seen.request.receipts] == [
            (b"token 1", [(10, 3)]),
            (b"token 2", [(20, 2)]),
            (b"token 1", [(10, 1)]),
        ]
        seen.settled(ReceiptOutcome(3, 0, []), ReceiptOutcome(1, 0, [(21, 1)]), ReceiptOutcome(0, 1, []))
        settled = list(await deleting)
        assert settled == [Settlement(3, 0, []), Settlement(1, 1, [21]), Settlement(0, 0, [])]
        assert peer.quiet()


@async_test
async def test_what_is_done_to_deliveries_is_not_mixed_up() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        one = await receive(peer, queue, 10, 2, b"one")
        two = await receive(peer, queue, 20, 2, b"two")
        deleting, releasing = one.delete(), two.release()
        deleted, released = await peer.next(Delete), await peer.next(Release)
        assert [receipt.token for receipt in deleted.request.receipts] == [b"one"]
        assert [receipt.token for receipt in released.request.receipts] == [b"two"]
        deleted.settled(ReceiptOutcome(2, 0, []))
        released.refuse(ErrorCode.OVERLOADED)
        assert await deleting == (2, 0, [])
        with pytest.raises(PenstockError, match="overloaded"):
            await releasing


@async_test
async def test_a_refusal_fails_all_that_travelled_together() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        one = await receive(peer, queue, 10, 2, b"one")
        two = await receive(peer, queue, 20, 2, b"two")
        given_up, deleting = one.delete(), two.delete()
        seen = await peer.next(Delete)
        given_up.cancel()
        seen.refuse(ErrorCode.OVERLOADED)
        with pytest.raises(PenstockError):
            await deleting
        assert given_up.cancelled()


@async_test
async def test_no_request_has_more_receipts_than_a_server_takes() -> None:
    async with connected() as (peer, client):
        delivery = await receive(peer, client.queue("orders"), 10, 1)
        deleting = [delivery.delete() for _ in range(limits.RECEIPTS_PER_REQUEST + 1)]
        first, second = await peer.next(Delete), await peer.next(Delete)
        assert len(first.request.receipts) == limits.RECEIPTS_PER_REQUEST
        assert len(second.request.receipts) == 1
        first.settled(*[ReceiptOutcome(0, 1, [])] * limits.RECEIPTS_PER_REQUEST)
        second.settled(ReceiptOutcome(1, 0, []))
        outcomes = await asyncio.gather(*deleting)
        assert outcomes[-1] == (1, 0, [])


@async_test
async def test_a_client_that_closes_in_the_same_turn_still_deletes() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        whole = await receive(peer, queue, 10, 2, b"whole")
        single = await receive(peer, queue, 20, 2, b"single")
        deleting, deleting_one = whole.delete(), single[0].delete()
        await client.close()
        seen = [await peer.next(Delete), await peer.next(Delete)]
        assert [one.request.receipts[0].token for one in seen] == [b"whole", b"single"]
        outcomes = await asyncio.gather(deleting, deleting_one, return_exceptions=True)
        assert all(isinstance(outcome, PenstockError) for outcome in outcomes), (
            "nobody waited for the answers"
        )

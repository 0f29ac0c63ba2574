"""Receiving: what a delivered message shows, and what happens to deliveries nobody waits for."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from penstock import ErrorCode, PenstockError
from penstock.client.connection.call import FutureCall
from penstock.client.produce.outgoing import encode_attributes
from penstock.model.batch import encode_parts
from penstock.model.origin import Origin
from penstock.model.partition_numbers import number_of
from penstock.wire.messages import (
    DeliveredBatch,
    Delivery,
    Peek,
    Peeked,
    PeekFilter,
    ReceiptOutcome,
    Receive,
    Redrive,
    Redriven,
    Release,
)
from tests.client.peer import async_test, connected


@async_test
async def test_arguments_are_converted_once() -> None:
    async with connected() as (peer, client):
        receiving = asyncio.ensure_future(
            client.queue("orders").receive(5, wait=20, visibility_timeout=1.5, max_bytes=1_000)
        )
        seen = await peer.next(Receive)
        assert seen.request == Receive(7, 5, 20_000, 1_500, 1_000)
        seen.answer(Delivery(b"", 0, []))
        messages = await receiving
        assert not messages
        assert list(messages) == []
        assert messages.bodies() == []
        assert await messages.delete() == (0, 0, [])


@async_test
async def test_a_message_shows_all_it_carries() -> None:
    batch = encode_parts(
        [b"plain", "fünf".encode()],
        priorities=[0, 7],
        delays_ms=[2**64 - 1, 500],
        ttls_ms=[2**64 - 1, 60_000],
        groups=[b"", b"group"],
        deduplication_ids=[b"", b"\xff"],
        attributes=[b"", encode_attributes({"a": 1, "b": b"bytes", "c": True, "d": 0.5, "e": "text"})],
    )
    other = encode_parts([b"dead"])
    origin = Origin(3, "source", "max-receives", [(40, 1)], 7_000, [5], 9_000)
    heads = [
        DeliveredBatch(10, 2, 1_000, len(batch), [1, 3], [0, 2_000]),
        DeliveredBatch(20, 1, 8_000, len(other), 1, 9_500, origin),
    ]
    async with connected() as (peer, client):
        receiving = asyncio.ensure_future(client.queue("orders").receive())
        (await peer.next(Receive)).answer(Delivery(b"token", 31_000, heads), batch + other)
        messages = await receiving
    plain, rich, dead = messages
    assert len(messages) == 3
    assert messages.bodies() == [b"plain", "fünf".encode(), b"dead"]
    assert (plain.sequence, plain.body, plain.priority, plain.group, plain.attributes) == (
        10,
        b"plain",
        0,
        None,
        {},
    )
    assert (plain.delay_ms, plain.ttl_ms, plain.deduplication_id, plain.first_received_at) == (None,) * 4
    assert (rich.sequence, rich.text(), rich.priority, rich.group) == (11, "fünf", 7, "group")
    assert rich.attributes == {"a": 1, "b": b"bytes", "c": True, "d": 0.5, "e": "text"}
    assert rich.attributes["c"] is True
    assert (rich.delay_ms, rich.ttl_ms, rich.deduplication_id) == (500, 60_000, "\udcff")
    assert (rich.receive_count, rich.first_received_ms, rich.sent_ms) == (3, 2_000, 1_000)
    assert rich.sent_at == datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
    assert rich.dead_letter is None
    assert dead.dead_letter is not None
    assert (dead.dead_letter.reason, dead.dead_letter.source) == ("max-receives", "source")
    assert (dead.dead_letter.sequence, dead.dead_letter.receive_count) == (40, 5)
    assert dead.dead_letter.moved_at.timestamp() == 9
    assert messages[-1].sequence == messages[2].sequence == 20
    assert [one.sequence for one in messages[1:]] == [11, 20]
    assert "dead" in repr(dead)
    with pytest.raises(IndexError):
        messages[3]


@async_test
async def test_messages_that_come_after_the_receive_was_cancelled_are_given_back() -> None:
    async with connected() as (peer, client):
        receiving = asyncio.ensure_future(client.queue("orders").receive(wait=20))
        seen = await peer.next(Receive)
        receiving.cancel()
        await asyncio.wait([receiving])
        seen.deliver(5, [b"a", b"b"])
        released = await peer.next(Release)
        assert [(receipt.token, receipt.runs) for receipt in released.request.receipts] == [
            (b"token", [(5, 2)])
        ]
        released.settled(ReceiptOutcome(2, 0, []))


@async_test
async def test_messages_that_come_in_the_turn_of_the_cancellation_are_given_back() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        receiving = asyncio.ensure_future(queue.receive(wait=20))
        seen = await peer.next(Receive)
        (call,) = client._link._table.calls.values()
        assert isinstance(call, FutureCall)
        convert = call.convert

        def convert_and_cancel(*arrived: Any) -> object:
            asyncio.get_running_loop().call_soon(receiving.cancel)  # before the task is woken by the result
            return convert(*arrived)

        call.convert = convert_and_cancel
        seen.deliver(5, [b"a", b"b"])
        released = await peer.next(Release)
        assert released.request.receipts[0].runs == [(5, 2)]
        released.settled(ReceiptOutcome(2, 0, []))
        await asyncio.wait([receiving])
        assert receiving.cancelled()


@async_test
async def test_a_receive_finds_a_queue_made_again() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        peer.queues["orders"] = 9
        receiving = asyncio.ensure_future(queue.receive())
        (await peer.next(Receive)).refuse(ErrorCode.QUEUE_NOT_FOUND)
        seen = await peer.next(Receive)
        assert seen.request.queue_id == 9
        seen.deliver(1, [b"x"])
        assert len(await receiving) == 1


@async_test
async def test_a_delivery_that_contradicts_itself_is_an_error() -> None:
    async with connected() as (peer, client):
        receiving = asyncio.ensure_future(client.queue("orders").receive())
        batch = encode_parts([b"x"])
        head = DeliveredBatch(1, 2, 0, len(batch), 1, 0)
        (await peer.next(Receive)).answer(Delivery(b"t", 0, [head]), batch)
        messages = await receiving
        with pytest.raises(PenstockError, match="contradicts itself"):
            _ = messages[0].body
        receiving = asyncio.ensure_future(client.queue("orders").receive())
        (await peer.next(Receive)).answer(Delivery(b"t", 0, [head]), batch + b"more")
        messages = await receiving
        with pytest.raises(PenstockError, match="contradicts itself"):
            messages.bodies()


@async_test
async def test_peek_goes_through_all_pages() -> None:
    chosen = PeekFilter(states=["ready"])
    async with connected() as (peer, client):

        async def look() -> list[tuple[int, bytes, str]]:
            return [
                (message.sequence, message.body, message.state)
                async for message in client.queue("orders").peek(3, limit=5, filter=chosen)
            ]

        looking = asyncio.ensure_future(look())
        first = await peer.next(Peek)
        assert first.request == Peek(7, 3, 5, chosen)
        batch = encode_parts([b"a", b"b"])
        head = DeliveredBatch(4, 2, 0, len(batch), 0, 0, None, ["ready", "leased"])
        first.answer(Peeked([head], 100), batch)
        second = await peer.next(Peek)
        assert second.request == Peek(7, 100, 3, chosen)
        second.answer(Peeked([], None))
        assert await looking == [(4, b"a", "ready"), (5, b"b", "leased")]


@async_test
async def test_redrive_goes_on_until_the_end_it_saw_at_the_beginning() -> None:
    async with connected() as (peer, client):
        peer.next_sequence = 2_000
        told: list[int] = []
        moving = asyncio.ensure_future(
            client.queue("orders").redrive("target", sequences=[5, 3, 4], on_progress=told.append)
        )
        first = await peer.next(Redrive)
        assert first.request == Redrive(7, "target", 1_000, 0, [(3, 3)], None)
        first.answer(Redriven(3, 1_000))
        (await peer.next(Redrive)).answer(Redriven(0, 1_500))
        last = await peer.next(Redrive)
        assert last.request.start == 1_500
        last.answer(Redriven(2, 2_000))  # what came after the beginning is left alone
        assert await moving == 5
        assert told == [3, 5]


@async_test
async def test_a_redrive_goes_through_all_partitions_up_to_what_was_there() -> None:
    async with connected() as (peer, client):
        peer.next_sequence, peer.partitions = 11, 3
        moving = asyncio.ensure_future(client.queue("orders").redrive())
        steps = [  # (where it starts, where the server would go on)
            (0, number_of(0, 5)),
            (number_of(0, 5), number_of(0, 12)),  # what has come back since
            (number_of(1, 0), number_of(2, 0)),
            (number_of(2, 0), None),
        ]
        for start, following in steps:
            asked = await peer.next(Redrive)
            assert asked.request.start == start
            asked.answer(Redriven(4, following))
        assert await moving == 16


@async_test
async def test_a_redrive_moves_what_a_partition_has_that_did_not_say_so() -> None:
    async with connected() as (peer, client):
        peer.next_sequence, peer.damage = 1, "partition 0: it does not answer"
        moving = asyncio.ensure_future(client.queue("orders").redrive())
        asked = await peer.next(Redrive)
        asked.answer(Redriven(1_000, 1_001))
        asked = await peer.next(Redrive)
        assert asked.request.start == 1_001
        asked.answer(Redriven(7, None))
        assert await moving == 1_007

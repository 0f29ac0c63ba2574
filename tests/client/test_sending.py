"""Sending: numbers, queues made again, and what becomes of refusals."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from penstock import ErrorCode, OutgoingMessage, PenstockError
from penstock.client_core.send_line import NUMBERS_IN_FLIGHT
from penstock.model.batch import Batch
from penstock.wire.messages import Send, SendResult
from tests.client.peer import async_test, connected


@async_test
async def test_a_batch_is_one_request_and_its_result_is_looked_up_lazily() -> None:
    async with connected() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send_batch([b"a", b"bb", b"ccc"]))
        seen = await peer.next_send()
        assert Batch(seen.body).bodies() == [b"a", b"bb", b"ccc"]
        assert Batch(seen.body).columns == 0
        seen.answer(SendResult([(10, 2), (4, 1)], [2], 5_000))
        sent = await sending
        assert [one.sequence for one in sent] == sent.sequences == [10, 11, 4]
        assert [one.duplicate for one in sent] == [False, False, True]
        assert sent[-1] == sent[2] == (4, True, 5_000, 0)
        assert sent[0].sent_at.timestamp() == 5
        assert peer.lookups == 1


@async_test
async def test_an_empty_batch_asks_nobody() -> None:
    async with connected() as (peer, client):
        assert len(await client.queue("orders").send_batch([])) == 0
        assert peer.lookups == 0


@async_test
async def test_numbers_rise_by_one_per_queue_under_one_producer() -> None:
    async with connected() as (peer, client):
        peer.queues["other"] = 8
        tasks = [
            asyncio.ensure_future(client.queue(name).send(b"x"))
            for name in ("orders", "other", "orders", "orders")
        ]
        seen = [await peer.next_send() for _ in tasks]
        numbers: dict[int, list[int]] = {}
        for one in seen:
            numbers.setdefault(one.request.queue_id, []).append(one.request.number)
            one.stored()
        await asyncio.gather(*tasks)
        assert numbers == {7: [1, 2, 3], 8: [1]}
        assert len({one.request.producer for one in seen}) == 1
        assert 0 < seen[0].request.producer < 2**63
        assert peer.lookups == 2  # first uses that come together share one lookup


@async_test
async def test_a_refusal_is_raised_with_its_code_and_the_next_send_goes_on() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = asyncio.ensure_future(queue.send(b"x"))
        (await peer.next_send()).refuse(ErrorCode.QUEUE_FULL, "full")
        with pytest.raises(PenstockError, match="full") as caught:
            await sending
        assert caught.value.retryable
        sending = asyncio.ensure_future(queue.send(b"x"))
        seen = await peer.next_send()
        assert seen.request.number == 2
        seen.stored()
        await sending


@async_test
async def test_a_cluster_that_changes_is_asked_again_with_the_same_number() -> None:
    async with connected() as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send(b"x"))
        for code in (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.UNREACHABLE, ErrorCode.NOT_PRIMARY):
            (await peer.next_send()).refuse(code)
        seen = await peer.next_send()
        assert (seen.request.number, Batch(seen.body).bodies()) == (1, [b"x"])
        seen.stored(4)
        assert (await sending).sequence == 4


@async_test
async def test_a_cluster_that_cannot_take_it_for_the_whole_timeout_is_given_up() -> None:
    async with connected(timeout=0.2) as (peer, client):
        sending = asyncio.ensure_future(client.queue("orders").send(b"x"))
        tries = 0
        while not sending.done():
            with contextlib.suppress(TimeoutError):
                (await asyncio.wait_for(peer.next_send(), 0.5)).refuse(
                    ErrorCode.NOT_ENOUGH_REPLICAS, "too few"
                )
                tries += 1
        with pytest.raises(PenstockError, match="too few"):
            await sending
        assert tries >= 2


@async_test
async def test_a_queue_made_again_is_looked_up_once_more_and_no_number_comes_twice() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        sending = asyncio.ensure_future(queue.send(b"x"))
        (await peer.next_send()).stored()
        await sending
        peer.queues["orders"] = 9
        sending = asyncio.ensure_future(queue.send(b"y"))
        (await peer.next_send()).refuse(ErrorCode.QUEUE_NOT_FOUND)
        seen = await peer.next_send()
        assert (seen.request.queue_id, seen.request.number) == (9, 3)
        seen.stored()
        await sending
        assert peer.lookups == 2


@async_test
async def test_a_queue_that_is_gone_is_said_so() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        await queue.describe()
        del peer.queues["orders"]
        sending = asyncio.ensure_future(queue.send(b"y"))
        (await peer.next_send()).refuse(ErrorCode.QUEUE_NOT_FOUND, "gone")
        with pytest.raises(PenstockError, match="no queue 'orders'"):
            await sending
        with pytest.raises(PenstockError, match="no queue 'missing'"):
            await client.queue("missing").send(b"z")
        assert peer.quiet()


@async_test
async def test_unanswered_batches_never_span_more_numbers_than_the_server_remembers() -> None:
    async with connected() as (peer, client):
        queue = client.queue("orders")
        tasks = [asyncio.ensure_future(queue.send(b"x")) for _ in range(NUMBERS_IN_FLIGHT + 50)]
        seen = [await peer.next_send() for _ in range(NUMBERS_IN_FLIGHT)]
        # Answers to all but the first do not help: it could still have to be sent again.
        for one in seen[1:]:
            one.stored()
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        await queue.describe()  # a round trip: whatever was to be sent has arrived
        assert peer.quiet()
        seen[0].stored()
        for _ in range(50):
            (await peer.next_send()).stored()
        await asyncio.gather(*tasks)


@async_test
async def test_all_that_a_message_can_carry_travels_in_columns() -> None:
    async with connected() as (peer, client):
        message = OutgoingMessage(
            "text",
            {"kind": "test", "size": 3},
            delay=1.5,
            ttl=60,
            priority=9,
            group="g",
            deduplication_id=b"\xff",
        )
        sending = asyncio.ensure_future(client.queue("orders").send_batch([message, b"plain"]))
        seen = await peer.next(Send)
        batch = Batch(seen.body)
        batch.check()
        assert batch.bodies() == [b"text", b"plain"]
        assert list(batch.priorities()) == [9, 0]
        assert batch.names(8) == [b"g", b""]
        assert batch.names(16) == [b"\xff", b""]
        seen.stored()
        await sending

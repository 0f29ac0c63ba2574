"""The client against a real server: every call does what it says."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

import penstock
from penstock import ErrorCode, OutgoingMessage, PeekFilter, PenstockError, Queue, Settlement
from penstock.wire.messages import DeleteQueue
from tests.client.lossy_wire import lossy_wire
from tests.client.peer import async_test
from tests.client.real import restartable, served


async def bodies_of(queue: Queue) -> list[bytes]:
    return [message.body async for message in queue.peek()]


@async_test
async def test_queues_come_change_and_go() -> None:
    async with served() as (_, client):
        orders = await client.create_queue(
            "orders", visibility_timeout=5, dead_letter_queue="dead", max_receives=3
        )
        again = await client.create_queue(
            "orders", visibility_timeout=5, dead_letter_queue="dead", max_receives=3
        )
        assert again is orders
        with pytest.raises(PenstockError) as caught:
            await client.create_queue("orders", visibility_timeout=6)
        assert caught.value.code is ErrorCode.QUEUE_EXISTS
        changed = await client.alter_queue("orders", retention=3_600, max_receives=None)
        assert (changed.settings.retention_ms, changed.settings.max_receives) == (3_600_000, None)
        for number in range(120):
            await client.create_queue(f"many-{number:03}")
        names = [description.name async for description in client.list_queues("many-")]
        assert names == [f"many-{number:03}" for number in range(120)]
        assert [description.name async for description in client.list_queues("o")] == ["orders"]
        await client.delete_queue("orders")
        with pytest.raises(PenstockError, match="orders"):
            await orders.send(b"x")
        node = await client.describe_node()
        assert node.queues in (121, 122), "with the record of what was asked, if it is there already"
        assert node.version == penstock.__version__


@async_test
async def test_a_deletion_that_is_sent_again_leaves_alone_what_was_made_since() -> None:
    async with served() as (server, other):
        await other.create_queue("orders")
        port = int(server.url.rpartition(":")[2])
        async with lossy_wire(port, DeleteQueue) as (wire, url), penstock.connect(url) as client:
            deleting = asyncio.ensure_future(client.delete_queue("orders"))
            await wire.has_lost.wait()
            orders = await other.create_queue("orders")
            await orders.send(b"acknowledged")
            wire.cut()
            await deleting
            assert len(wire.seen) == 2, "it was sent again"
        assert await bodies_of(orders) == [b"acknowledged"]


@async_test
async def test_what_no_program_has_seen_is_no_dead_letter() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders", dead_letter_queue="dead", max_receives=2)
        await queue.send_batch([b"%d" % number for number in range(50)])
        seen: set[bytes] = set()
        for _ in range(4):  # consumers that close with most of what was sent ahead
            async with queue.consume(credit=100, batch_messages=20) as messages:
                async for message in messages:
                    seen.add(message.body)
                    await message.release()
                    break
        dead = (await client.describe_queue("dead")).statistics.ready
        assert dead <= len(seen), "a dead letter was received by somebody"
        assert all(one.receive_count == 0 for one in [m async for m in queue.peek()] if one.body not in seen)


@async_test
async def test_a_message_goes_through_with_all_it_carries() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders")
        sent = await queue.send(
            "grüße", attributes={"kind": "test", "n": 3, "raw": b"\x00"}, priority=4, group="g", ttl=60
        )
        assert not sent.duplicate
        (message,) = await queue.receive(wait=5)
        assert (message.sequence, message.sent_ms) == (sent.sequence, sent.sent_ms)
        assert (message.text(), message.priority, message.group) == ("grüße", 4, "g")
        assert message.attributes == {"kind": "test", "n": 3, "raw": b"\x00"}
        assert message.receive_count == 1
        assert message.first_received_at is not None
        await message.delete()
        statistics = (await queue.describe()).statistics
        assert (statistics.ready, statistics.leased, statistics.deleted_total) == (0, 0, 1)


@async_test
async def test_batches_deduplicate_and_say_so() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders")
        first = await queue.send(b"first", deduplication_id="a")
        sent = await queue.send_batch(
            [
                OutgoingMessage(b"again", deduplication_id="a"),
                b"new",
                OutgoingMessage(b"b", deduplication_id="b"),
            ]
        )
        assert [one.duplicate for one in sent] == [True, False, False]
        assert sent[0].sequence == first.sequence
        assert await bodies_of(queue) == [b"first", b"new", b"b"]


@async_test
async def test_a_long_poll_is_woken_by_a_send_and_ends_empty_without_one() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders")
        assert len(await queue.receive(wait=0.01)) == 0
        receiving = asyncio.ensure_future(queue.receive(wait=20))
        while (await queue.describe()).statistics.waiting_receivers == 0:
            pass
        await queue.send(b"wake up")
        assert (await receiving).bodies() == [b"wake up"]


@async_test
async def test_release_extend_and_stale_receipts() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders", visibility_timeout=30)
        await queue.send_batch([b"a", b"b", b"c"])
        held = await queue.receive(3)
        await held[0].release()
        await held[1].extend(60)
        await held[2].release(delay=600)
        (again,) = await queue.receive(3)
        assert (again.body, again.receive_count) == (b"a", 2)
        with pytest.raises(PenstockError, match="too late to delete message 1") as caught:
            await held[0].delete()
        assert caught.value.code is ErrorCode.STALE_RECEIPT
        assert await held.delete() == Settlement(1, 0, [])  # the other two are settled
        assert await queue.delete_batch([again, *held]) == Settlement(1, 2, [3])  # two are gone by now
        assert (await queue.describe()).statistics.delayed == 1


@async_test
async def test_dead_letters_can_be_read_filtered_and_sent_back() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders", max_receives=1, dead_letter_queue="dead")
        dead = client.queue("dead")
        await queue.send_batch([b"%d" % number for number in range(5)])
        await (await queue.receive(5)).release()
        waiting = dead.consume_batches()
        letters = await anext(waiting)
        assert [letter.body for letter in letters] == [b"0", b"1", b"2", b"3", b"4"]
        why = letters[1].dead_letter
        assert why is not None
        assert (why.reason, why.source, why.sequence, why.receive_count) == ("max-receives", "orders", 2, 1)
        await letters.release()
        await waiting.aclose()
        chosen = PeekFilter(body_contains=b"3", reason="max-receives", source="orders")
        assert [letter.body async for letter in dead.peek(filter=chosen)] == [b"3"]
        told: list[int] = []
        assert await dead.redrive(filter=chosen, on_progress=told.append) == 1
        assert told == [1]
        assert await dead.redrive("orders", max_messages=2, rate=1_000) == 2
        back = deque[bytes]()
        async for message in queue.consume():
            back.append(message.body)
            await message.delete()
            if len(back) == 3:
                break
        assert sorted(back) == [b"0", b"1", b"3"]
        assert await dead.redrive(sequences=[99]) == 0
        assert await dead.purge() == 2


@async_test
async def test_peek_goes_through_everything_in_any_state() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders")
        for _ in range(3):
            await queue.send_batch([b"x"] * 900)
        await queue.send(b"later", delay=600)
        await queue.receive(1)
        states = [message.state async for message in queue.peek()]
        assert (len(states), states[0], states[1], states[-1]) == (2_701, "leased", "ready", "delayed")
        assert [message.sequence async for message in queue.peek(2_699, limit=2)] == [2_699, 2_700]


@async_test
async def test_what_a_producer_sends_a_consumer_gets_once_and_in_order() -> None:
    count = 5_000
    async with served() as (_, client):
        queue = await client.create_queue("orders")
        async with queue.producer(batch_messages=64, in_flight=4) as producer:
            ticket = await producer.send(b"0")
            await producer.send_many(b"%d" % number for number in range(1, count))
        assert (await ticket).sequence == 1
        got: list[bytes] = []
        deletes: list[asyncio.Future[Settlement]] = []
        async with queue.consume_batches(credit=500, batch_messages=100) as consumer:
            async for batch in consumer:
                got += batch.bodies()
                deletes.append(batch.delete())
                if len(got) == count:
                    break
            assert sum([(await delete).done for delete in deletes]) == count
        assert got == [b"%d" % number for number in range(count)]
        statistics = (await queue.describe()).statistics
        assert (statistics.ready, statistics.leased, statistics.waiting_receivers) == (0, 0, 0)


@async_test
async def test_leaving_a_consumer_gives_back_what_was_sent_ahead() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders")
        await queue.send_batch([b"x"] * 500)
        async with queue.consume(credit=400, batch_messages=100) as consumer:
            for _ in range(3):
                await (await anext(consumer)).delete()
        statistics = (await queue.describe()).statistics
        assert (statistics.ready, statistics.leased, statistics.deleted_total) == (497, 0, 3)


@async_test
async def test_the_heartbeat_keeps_a_message_beyond_its_timeout() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders", visibility_timeout=1.2)
        await queue.send(b"slow work")
        async with queue.consume(heartbeat=True) as consumer:
            message = await anext(consumer)
            assert len(await queue.receive(wait=1.6)) == 0
            await message.delete()


@async_test
async def test_priorities_delays_and_fifo_groups_arrive_as_they_should() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("fifo", ordering="fifo")
        await queue.send_batch(
            [OutgoingMessage(b"%d" % number, group=f"g{number % 2}") for number in range(6)]
        )
        first = await queue.receive(1)
        other = await queue.receive(1)
        assert {first[0].group, other[0].group} == {"g0", "g1"}
        await first.delete()
        await other.delete()
        delayed = await client.create_queue("delayed", delay=0.05)
        await delayed.send(b"later")
        assert len(await delayed.receive()) == 0
        assert len(await delayed.receive(wait=10)) == 1


@async_test
async def test_a_full_queue_refuses_and_a_producer_says_which_messages() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("small", max_messages=3)
        async with queue.producer(batch_messages=2) as producer:
            await producer.send_many([b"1", b"2", b"3", b"4"])
            with pytest.raises(penstock.ProducerError) as caught:
                await producer.flush()
        assert caught.value.code is ErrorCode.QUEUE_FULL
        assert [failure.messages for failure in caught.value.failures] == [[b"3", b"4"]]


@async_test
async def test_a_queue_made_again_is_found_by_old_handles() -> None:
    async with served() as (server, client):
        queue = await client.create_queue("orders")
        await queue.send(b"old")
        held = await queue.receive()
        async with penstock.connect(server.url) as other:
            await other.delete_queue("orders")
            await other.create_queue("orders")
        assert (await queue.send(b"new")).sequence == 1
        assert (await queue.receive()).bodies() == [b"new"]
        assert await held.delete() == Settlement(0, 1, [])


@async_test
async def test_nothing_is_lost_or_doubled_when_the_server_restarts() -> None:
    count = 3_000
    async with restartable() as server, penstock.connect(server.url) as client:
        queue = await client.create_queue("orders", visibility_timeout=60)

        async def produce() -> None:
            async with queue.producer(batch_messages=10, in_flight=8) as producer:
                for number in range(count):
                    await producer.send(b"%d" % number)

        got: list[bytes] = []

        async def consume() -> None:
            async for batch in queue.consume_batches(credit=300, batch_messages=50):
                got.extend(batch.bodies())
                await batch.delete()
                if len(set(got)) == count:
                    return

        producing, consuming = asyncio.ensure_future(produce()), asyncio.ensure_future(consume())
        for restart in range(1, 4):
            while len(got) < restart * 500:
                await queue.describe()
            await server.stop()
            await server.start()
        await producing
        await consuming
        # A delivery whose delete was under way may come twice; nothing else may, and nothing is missing.
        assert set(got) == {b"%d" % number for number in range(count)}
        statistics = (await queue.describe()).statistics
        assert statistics.sent_total == count


@async_test
async def test_many_clients_share_a_queue_fairly_and_completely() -> None:
    async with served() as (server, client):
        queue = await client.create_queue("orders")
        seen: set[bytes] = set()

        async def work(name: int) -> None:
            async with penstock.connect(server.url, name=f"worker {name}") as worker:
                async for message in worker.queue("orders").consume(credit=20, batch_messages=5):
                    assert message.body not in seen
                    seen.add(message.body)
                    await message.delete()
                    if len(seen) >= 300:
                        finished.set()

        finished = asyncio.Event()
        workers = [asyncio.ensure_future(work(name)) for name in range(4)]
        await asyncio.gather(*(queue.send(b"%d" % number) for number in range(300)))
        await finished.wait()
        for worker in workers:
            worker.cancel()
        await asyncio.wait(workers)
        assert len(seen) == 300

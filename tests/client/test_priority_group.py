"""Priority groups against a real server: by weight, whatever the number of consumers, and settled as usual."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter

import pytest

import penstock
from penstock import Client, ErrorCode, PenstockError, PriorityGroup, Settlement
from tests.client.peer import async_test
from tests.client.real import restartable, served, served_in_a_thread


async def filled(client: Client, **counts: int) -> None:
    """Queues with so many messages each."""
    for name, count in counts.items():
        queue = await client.create_queue(name)
        if count:
            await queue.send_batch([f"{name} {number}" for number in range(count)])


async def waiting_on(client: Client, name: str) -> int:
    return (await client.describe_queue(name)).statistics.waiting_receivers


@async_test
async def test_messages_come_by_weight_and_know_their_queue() -> None:
    async with served() as (_, client):
        await filled(client, high=100, low=100)
        group = PriorityGroup(client, {"low": 1, "high": 8})
        messages = await group.receive(18)
        assert [message.queue_name for message in messages] == ["high"] * 16 + ["low"] * 2
        assert messages[0].text() == "high 0"
        assert messages[-1].text() == "low 1"
        assert [message.text() for message in messages[15:17]] == ["high 15", "low 0"]
        assert messages.bodies()[16] == b"low 0"
        with pytest.raises(IndexError):
            messages[18]
        await messages[0].delete()
        await messages[-1].release()
        await messages[1].extend(60)
        assert await messages.delete() == Settlement(16, 0, [])
        assert (await client.queue("high").describe()).statistics.deleted_total == 16
        assert (await client.queue("low").describe()).statistics.ready == 99


@async_test
async def test_a_wait_ends_with_the_first_message_of_any_queue() -> None:
    async with served() as (_, client):
        await filled(client, high=0, low=0)
        group = PriorityGroup(client, {"high": 8, "low": 1})
        assert len(await group.receive()) == 0
        assert len(await group.receive(wait=0.01)) == 0
        waiting = asyncio.create_task(group.receive(wait=30))
        while not await waiting_on(client, "low"):
            pass
        await client.queue("low").send("at last")
        (message,) = await waiting
        assert (message.queue_name, message.text()) == ("low", "at last")


@async_test
async def test_a_cancelled_receive_stands_in_no_line_any_more() -> None:
    async with served() as (_, client):
        await filled(client, high=0, low=0)
        waiting = asyncio.create_task(PriorityGroup(client, {"high": 8, "low": 1}).receive(wait=30))
        while not await waiting_on(client, "low"):
            pass
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await waiting_on(client, "high"), await waiting_on(client, "low")) == (0, 0)


@async_test
async def test_a_queue_that_is_gone_is_named_and_one_made_again_is_found() -> None:
    async with served() as (server, client):
        await filled(client, high=1, low=1)
        group = PriorityGroup(client, {"high": 8, "low": 1})
        await (await group.receive()).delete()
        async with penstock.connect(server.url) as other:
            await other.delete_queue("high")
            with pytest.raises(PenstockError, match="'high'") as caught:
                await group.receive()
            assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND
            await (await other.create_queue("high")).send("again")
        assert [message.text() for message in await group.receive()] == ["again"]


@async_test
async def test_consumers_share_the_turns_and_the_lowest_never_starves() -> None:
    async with served() as (server, client):
        await filled(client, high=900, middle=900, low=900)
        weights = {"high": 6, "middle": 3, "low": 1}
        order: list[str] = []

        async def work(worker: Client, batch_messages: int) -> None:
            async with PriorityGroup(worker, weights).consume(batch_messages=batch_messages) as consumer:
                async for message in consumer:
                    order.append(message.queue_name)
                    await message.delete()
                    if len(order) >= 1_000:
                        return

        async with penstock.connect(server.url) as other:
            await asyncio.gather(work(client, 10), work(client, 1), work(other, 7))
        served_by = Counter(order[:1_000])
        # 3 consumers may hold up to 10 messages each that the others did not see go by.
        assert abs(served_by["high"] - 600) <= 30
        assert abs(served_by["middle"] - 300) <= 30
        assert abs(served_by["low"] - 100) <= 30
        gaps = [index for index, name in enumerate(order) if name == "low"]
        assert max(later - earlier for earlier, later in itertools.pairwise(gaps)) <= 100


@async_test
async def test_leaving_gives_back_what_was_not_handed_out() -> None:
    async with served() as (_, client):
        await filled(client, high=5, low=5)
        async with PriorityGroup(client, {"high": 8, "low": 1}).consume() as consumer:
            async for message in consumer:
                await message.delete()
                break
        statistics = [(await client.describe_queue(name)).statistics for name in ("high", "low")]
        assert [(one.ready, one.leased) for one in statistics] == [(4, 0), (5, 0)]
        with pytest.raises(StopAsyncIteration):
            await anext(consumer)


@async_test
async def test_a_consumer_that_waits_can_be_ended_and_a_cancelled_turn_taken_again() -> None:
    async with served() as (_, client):
        await filled(client, high=0, low=0)
        consumer = PriorityGroup(client, {"high": 8, "low": 1}).consume()
        impatient = asyncio.ensure_future(anext(consumer))
        while not await waiting_on(client, "low"):
            pass
        impatient.cancel()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        while await waiting_on(client, "low"):
            pass
        await client.queue("low").send("one")
        assert (await anext(consumer)).text() == "one"
        waiting = [asyncio.ensure_future(anext(consumer)) for _ in range(2)]
        while not await waiting_on(client, "low"):
            pass
        await consumer.aclose()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in ended] == [StopAsyncIteration] * 2


@async_test
async def test_a_wait_goes_on_after_a_restart_of_the_server() -> None:
    async with restartable() as server, penstock.connect(server.url) as client:
        await filled(client, high=0, low=0)
        consumer = PriorityGroup(client, {"high": 8, "low": 1}).consume()
        waiting = asyncio.ensure_future(anext(consumer))
        while not await waiting_on(client, "low"):
            pass
        await server.stop()
        await server.start()
        await client.queue("low").send("after")
        assert (await waiting).text() == "after"
        await consumer.aclose()


@async_test
async def test_leases_are_kept_by_a_heartbeat() -> None:
    async with served() as (_, client):
        await filled(client, high=1, low=0)
        group = PriorityGroup(client, {"high": 8, "low": 1})
        async with group.consume(visibility_timeout=1, heartbeat=True) as consumer:
            message = await anext(consumer)
            assert len(await group.receive(wait=2.5)) == 0, "nobody else got it for more than its timeout"
            await message.delete()


@pytest.mark.parametrize("weights", [{}, {"high": 0}, {f"queue-{n}": 1 for n in range(65)}, {"high": 1_001}])
def test_groups_that_cannot_be_are_refused(weights: dict[str, int]) -> None:
    async def attempt() -> None:
        async with served() as (_, client):
            PriorityGroup(client, weights)

    with pytest.raises(PenstockError) as caught:
        asyncio.run(attempt())
    assert caught.value.code is ErrorCode.BAD_REQUEST


def test_the_blocking_twin() -> None:
    with served_in_a_thread() as url, penstock.connect_blocking(url) as client:
        for name in ("high", "low"):
            client.create_queue(name).send_batch([name] * 20)
        group = penstock.BlockingPriorityGroup(client, {"high": 8, "low": 1})
        messages = group.receive(9)
        assert [message.queue_name for message in messages] == ["high"] * 8 + ["low"]
        assert messages[-1].text() == "low"
        assert len(messages[2:4]) == 2
        messages[0].delete()
        assert messages.delete().done == 8
        with group.consume(batch_messages=9) as consumer:
            taken = []
            for message in consumer:
                taken.append(message.queue_name)
                message.delete()
                if len(taken) == 9:
                    break
        assert Counter(taken) == {"high": 8, "low": 1}

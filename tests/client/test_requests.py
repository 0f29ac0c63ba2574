"""Requests and replies against a real server: each request gets its own reply, late ones go, queues do not pile up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

import penstock
from penstock import Client, ErrorCode, Message, PenstockError, Queue
from penstock.client.replies.requester import SETTINGS
from tests.client.peer import async_test
from tests.client.real import restartable, served, served_in_a_thread

CORRELATION_ID = "penstock.correlation-id"
REPLY_TO = "penstock.reply-to"


async def reply_queues(client: Client) -> list[str]:
    return [description.name async for description in client.list_queues("reply-")]


@contextlib.asynccontextmanager
async def echoing(queue: Queue) -> AsyncIterator[None]:
    """Somebody who replies with the body of each request."""

    async def work() -> None:
        async for message in queue.consume():
            await message.reply(message.body, attributes=None)

    task = asyncio.create_task(work())
    try:
        yield
    finally:
        task.cancel()


@async_test
async def test_a_request_gets_the_reply_with_all_it_carries_and_the_message_is_gone() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("work")
        asking = asyncio.create_task(queue.request("2 + 2", attributes={"user": "ada"}, priority=3))
        (message,) = await queue.receive(wait=20)
        assert (message.text(), message.priority, message.attributes["user"]) == ("2 + 2", 3, "ada")
        assert message.reply_to == message.attributes[REPLY_TO]
        assert await message.reply("4", attributes={"exact": True})
        reply = await asking
        assert (reply.body, reply.text(), reply.outcome, reply.error) == (b"4", "4", "succeeded", None)
        assert reply.attributes == {"exact": True}
        assert reply.correlation_id == message.attributes[CORRELATION_ID]
        assert reply.raise_for_outcome() is reply
        assert (await queue.describe()).statistics.deleted_total == 1


@async_test
async def test_a_failure_is_a_reply_that_can_be_raised() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("work")
        asking = asyncio.create_task(queue.request("1 / 0"))
        (message,) = await queue.receive(wait=20)
        with pytest.raises(PenstockError, match="outcome='failed'"):
            await message.reply(error="but it succeeded?")
        with pytest.raises(PenstockError, match="perhaps"):
            await message.reply(outcome="perhaps")  # type: ignore[arg-type]  # what is wrong is the test
        await message.reply("details", outcome="failed", error="division by zero", delete=False)
        reply = await asking
        assert (reply.outcome, reply.error, reply.body) == ("failed", "division by zero", b"details")
        with pytest.raises(PenstockError, match="division by zero") as caught:
            reply.raise_for_outcome()
        assert caught.value.code is ErrorCode.REQUEST_FAILED
        assert (await queue.describe()).statistics.leased == 1, (
            "delete=False leaves the message to its receiver"
        )


@async_test
async def test_many_requests_share_one_queue_and_each_gets_its_own_reply() -> None:
    async with served() as (server, client), penstock.connect(server.url) as worker:
        queue = await client.create_queue("work")
        asking = [asyncio.create_task(queue.request(str(number))) for number in range(300)]
        received: list[Message] = []
        while len(received) < 300:
            received += await worker.queue("work").receive(100, wait=20)
        for message in reversed(received):  # not in the order of asking
            await message.reply(message.body * 2)
        assert [reply.text() for reply in await asyncio.gather(*asking)] == [str(n) * 2 for n in range(300)]
        (name,) = await reply_queues(client)
        description = await client.describe_queue(name)
        assert description.settings == SETTINGS
        assert SETTINGS.idle_expiry_ms is not None


@async_test
async def test_a_request_without_reply_times_out_and_a_late_reply_is_dropped() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("work")
        with pytest.raises(PenstockError) as caught:
            await queue.request("anybody?", timeout=0.05)
        (message,) = await queue.receive()
        assert caught.value.code is ErrorCode.NO_REPLY
        assert str(message.attributes[CORRELATION_ID]) in caught.value.message
        assert "'work'" in caught.value.message
        assert await message.reply("too late")
        async with echoing(queue):
            assert (await queue.request("another")).body == b"another"
        (name,) = await reply_queues(client)
        while (statistics := (await client.describe_queue(name)).statistics).deleted_total < 2:
            pass
        assert statistics.ready == statistics.leased == 0


@async_test
async def test_a_closed_client_takes_its_reply_queue_with_it_and_fails_who_waits() -> None:
    async with served() as (server, client):
        queue = await client.create_queue("work")
        other = await penstock.connect(server.url)
        asking = asyncio.create_task(other.queue("work").request("too late"))
        (message,) = await queue.receive(wait=20)
        await other.close()
        with pytest.raises(PenstockError, match="closed"):
            await asking
        assert await reply_queues(client) == []
        assert not await message.reply("hello?"), "nobody waits any more"
        assert (await queue.describe()).statistics.deleted_total == 1


@async_test
async def test_a_reply_queue_that_is_gone_is_made_again() -> None:
    async with served() as (server, client), penstock.connect(server.url) as operator:
        queue = await client.create_queue("work")
        async with echoing(queue):
            assert (await queue.request("one")).text() == "one"
            (name,) = await reply_queues(operator)
            for number in range(3):
                await operator.delete_queue(name)
                while await reply_queues(operator) != [name]:
                    pass
                assert (await queue.request(f"again {number}")).text() == f"again {number}"


@async_test
async def test_requests_survive_a_restart_of_the_server() -> None:
    async with restartable() as server, penstock.connect(server.url) as client:
        queue = await client.create_queue("work")
        async with echoing(queue):
            await queue.request("warm")
        asking = asyncio.create_task(queue.request("through the restart"))
        (message,) = await queue.receive(wait=20)
        await server.stop()
        await server.start()
        await message.reply("still there")
        assert (await asking).text() == "still there"
        async with echoing(queue):
            assert (await queue.request("after")).text() == "after"


@async_test
async def test_any_client_may_reply_that_sends_the_correlation_id() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("work")
        for attributes, outcome, error in (
            ({}, "succeeded", None),
            ({"penstock.outcome": "failed"}, "failed", None),
            ({"penstock.error": "no"}, "failed", "no"),
        ):
            asking = asyncio.create_task(queue.request("plain"))
            (message,) = await queue.receive(wait=20)
            address = client.queue(str(message.attributes[REPLY_TO]))
            await address.send("what is this")  # no correlation id: dropped
            correlation_id = message.attributes[CORRELATION_ID]
            await address.send("by hand", attributes={CORRELATION_ID: correlation_id, **attributes})
            reply = await asking
            assert (reply.text(), reply.outcome, reply.error) == ("by hand", outcome, error)
            await message.delete()


@async_test
async def test_what_cannot_be_is_refused() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("work")
        with pytest.raises(PenstockError, match="reserved"):
            await queue.request("x", attributes={"penstock.mine": 1})
        with pytest.raises(PenstockError, match="timeout"):
            await queue.request("x", timeout=0)
        with pytest.raises(PenstockError) as caught:
            await client.queue("nowhere").request("x")
        assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND
        await queue.send("an ordinary message")
        (message,) = await queue.receive()
        assert message.reply_to is None
        with pytest.raises(PenstockError, match="requests no reply"):
            await message.reply("to whom?")


@async_test
async def test_a_cancelled_request_leaves_nothing_behind() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("work")
        asking = asyncio.create_task(queue.request("never mind"))
        (message,) = await queue.receive(wait=20)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await message.reply("for nobody")
        async with echoing(queue):
            assert (await queue.request("next")).text() == "next"


def test_the_blocking_twin() -> None:
    with served_in_a_thread() as url, penstock.connect_blocking(url) as client:
        queue = client.create_queue("work")
        with pytest.raises(PenstockError) as caught:
            queue.request("one", timeout=0.05)
        assert caught.value.code is ErrorCode.NO_REPLY
        (message,) = queue.receive()
        assert message.reply_to
        assert message.reply("late", outcome="failed", error="too late")
        assert queue.describe().statistics.deleted_total == 1

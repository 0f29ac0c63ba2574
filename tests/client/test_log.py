"""Reading a retained log with the client, against a real server."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

import penstock
from penstock import Client, ErrorCode, LoggedMessages, OutgoingMessage, PenstockError, Queue, SentMessage
from tests.client.peer import async_test
from tests.client.real import restartable, served


async def a_log(client: Client, messages: int = 0, batch: int = 7) -> Queue:
    """A log with the messages 1, 2, 3, … in it."""
    queue = await client.create_queue("events", consumption="log")
    bodies = [str(number).encode() for number in range(1, messages + 1)]
    for first in range(0, messages, batch):
        await queue.send_batch(bodies[first : first + batch])
    return queue


def numbers(slices: list[LoggedMessages]) -> list[int]:
    return [int(body) for one in slices for body in one.bodies()]


@async_test
async def test_a_log_is_read_again_and_again() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 100)).log()
        assert await log.bounds() == (1, 101)
        for _ in range(2):
            read = [(message.sequence, int(message.text())) async for message in log.messages()]
            assert read == [(number, number) for number in range(1, 101)]
        assert [message.sequence async for message in log.messages(start=98)] == [98, 99, 100]
        assert [message.sequence async for message in log.messages(start=40, limit=3)] == [40, 41, 42]
        assert [message.sequence async for message in log.messages(start="end")] == []
        assert [message.sequence async for message in log.messages(limit=0)] == []


@pytest.mark.parametrize("slice_bytes", [1, 40, 200, 10_000])
@pytest.mark.parametrize("in_flight", [1, 2, 5])
def test_slices_follow_each_other_however_they_are_cut(slice_bytes: int, in_flight: int) -> None:
    async def read() -> None:
        async with served() as (_, client):
            queue = await a_log(client, 60)
            await queue.send_batch([b"%d" % number + b" " * number for number in range(61, 160)])
            for start in (1, 5, 61, 100):
                batches = queue.log().batches(start=start, slice_bytes=slice_bytes, in_flight=in_flight)
                slices = [one async for one in batches]
                assert numbers(slices) == list(range(start, 160))
                assert [one.first for one in slices[1:]] == [one.next for one in slices[:-1]]
                assert sum(map(len, slices)) == 160 - start
                assert all(len(one) for one in slices)

    asyncio.run(read())


@async_test
async def test_one_slice_at_a_time() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 20)).log()
        first = await log.read(3, max_messages=10)
        assert (first.first, first.next, first.end, len(first)) == (3, 13, 21, 10)
        assert first[0].sequence == 3
        assert first[-1].body == b"12"
        assert [message.sequence for message in first[2:4]] == [5, 6]
        with pytest.raises(IndexError):
            first[10]
        assert len(await log.read(21)) == 0
        waiting = asyncio.ensure_future(log.read(21, wait=20))
        await client.queue("events").send(b"21")
        assert (await waiting).bodies() == [b"21"]


@async_test
async def test_a_message_has_all_that_it_was_sent_with() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("events", consumption="log")
        sent = await queue.send_batch(
            [OutgoingMessage("grüße", {"kind": "test", "n": 3}, priority=4, group="g"), b"plain"]
        )
        first, second = [message async for message in queue.log().messages()]
        assert (first.sequence, first.sent_ms) == (sent[0].sequence, sent[0].sent_ms)
        assert (first.text(), first.priority, first.group) == ("grüße", 4, "g")
        assert first.attributes == {"kind": "test", "n": 3}
        assert (second.body, second.group, second.attributes) == (b"plain", None, {})
        assert second.sent_at == datetime.fromtimestamp(sent[1].sent_ms / 1000, UTC)
        assert second.queue_name == "events"


@async_test
async def test_a_log_in_the_order_of_the_servers_clock_has_its_stamps() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("events", consumption="log", ordering="clock")
        await queue.send(b"one")
        await queue.send(b"two")
        first, second = [message async for message in queue.log().messages()]
        assert first.timestamp_id is not None
        assert second.timestamp_id is not None
        assert first.timestamp_id < second.timestamp_id


@async_test
async def test_places_are_found_by_time() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("events", consumption="log")
        early = await queue.send(b"early")
        late: SentMessage = early
        while late.sent_ms == early.sent_ms:  # the clock ticks once a millisecond
            late = await queue.send(b"late")
        log = queue.log()
        at = datetime.fromtimestamp(late.sent_ms / 1000, UTC)
        assert await log.find(at) == late.sequence
        assert await log.find(at - timedelta(days=1)) == early.sequence
        assert await log.find(at + timedelta(days=1)) == late.sequence + 1
        assert await log.find(timedelta(days=1)) == early.sequence
        assert [message.sequence async for message in log.messages(from_time=at)] == [late.sequence]


@async_test
async def test_a_follower_sees_what_is_sent_later() -> None:
    async with served() as (_, client):
        queue = await a_log(client, 5)
        seen: list[int] = []
        async with queue.log().messages(start=4, follow=True) as messages:
            async for message in messages:
                seen.append(int(message.body))
                if len(seen) == 12:
                    break
                if seen[-1] >= 5:  # everything before was read: it has to wait for this one
                    await queue.send(str(seen[-1] + 1))
        assert seen == list(range(4, 16))


@async_test
async def test_a_follower_survives_a_restart() -> None:
    async with restartable() as server, penstock.connect(server.url) as client:
        queue = await a_log(client, 5)
        messages = queue.log().messages(follow=True)
        seen = [int((await anext(messages)).body) for _ in range(5)]
        following = asyncio.ensure_future(anext(messages))
        await server.stop()
        await server.start()
        await queue.send(b"6")
        assert [*seen, int((await following).body)] == [1, 2, 3, 4, 5, 6]
        await messages.aclose()


@async_test
async def test_a_limit_holds_for_followers_too() -> None:
    async with served() as (_, client):
        queue = await a_log(client, 3)
        reading = asyncio.ensure_future(
            asyncio.wait_for(anext(queue.log().batches(start=4, follow=True, limit=2)), 20)
        )
        await queue.send_batch([b"4", b"5", b"6"])
        assert (await reading).bodies() == [b"4", b"5"]


@async_test
async def test_what_is_gone_is_said_and_not_skipped() -> None:
    async with served() as (_, client):
        queue = await a_log(client, 10)
        log = queue.log()
        await queue.purge()
        await queue.send(b"11")
        for reading in (anext(log.messages(start=3)), log.read(3)):
            with pytest.raises(penstock.OffsetGone) as caught:
                await reading
            assert (caught.value.wanted, caught.value.begin) == (3, 11)
            assert caught.value.code is ErrorCode.OFFSET_GONE
        assert [m.sequence async for m in log.messages(start=3, when_gone="earliest")] == [11]
        assert [m.sequence async for m in log.messages(start=3, when_gone="earliest", limit=5)] == [11]
        assert [m.sequence async for m in log.messages()] == [11]


@async_test
async def test_a_queue_and_its_log() -> None:
    async with served() as (_, client):
        queue = await client.create_queue("orders", consumption="both")
        await queue.send_batch([b"one", b"two"])
        await (await queue.receive(wait=5)).delete()
        assert [message.body async for message in queue.log().messages()] == [b"one", b"two"]


@async_test
async def test_mistakes_are_explained() -> None:
    async with served() as (_, client):
        plain = await client.create_queue("plain")
        with pytest.raises(PenstockError, match="no log") as caught:
            await plain.log().bounds()
        assert caught.value.code is ErrorCode.UNSUPPORTED
        log = (await a_log(client, 3)).log()
        with pytest.raises(PenstockError, match="no message 9 yet: the next one will be 4"):
            await anext(log.messages(start=9))
        with pytest.raises(PenstockError, match="not both"):
            log.messages(start=1, from_time=timedelta(seconds=1))
        with pytest.raises(PenstockError, match="'beginning' or 'end'"):
            log.messages(start=-1)
        with pytest.raises(PenstockError, match="when_gone"):
            log.messages(when_gone="never")  # type: ignore[arg-type]  # what is wrong is the test
        with pytest.raises(PenstockError, match="slice_bytes"):
            log.batches(slice_bytes=0)
        with pytest.raises(PenstockError, match="in_flight"):
            log.batches(in_flight=0)
        with pytest.raises(PenstockError, match="leave the loop"):
            log.messages(group="g", limit=3)


@async_test
async def test_a_reader_that_is_closed_has_ended() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 3)).log()
        messages = log.messages(start="end", follow=True)
        waiting = asyncio.ensure_future(anext(messages, None))
        await log.bounds()  # by now the reader has asked
        await messages.aclose()
        assert await waiting is None
        assert [message async for message in messages] == []

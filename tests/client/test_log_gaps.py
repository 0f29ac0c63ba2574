"""Reading a log whose numbers have gaps of millions, as after failovers of an `async` queue: every message once, none missed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import Client, Queue
from penstock.model.batch import encode_parts
from penstock.model.records import NumbersSkipped
from penstock.queue.decisions.decision import PendingRecord
from penstock.runtime.embedded import EmbeddedServer
from penstock.wire.log_messages import FindOffset, LogBounds, LoggedBatch, LogSlice, ReadLog
from tests.client.peer import Seen, async_test, connected
from tests.client.real import served

WIDE = 1 << 24
HUGE = 1 << 36


def leave_out(server: EmbeddedServer, name: str, first: int) -> None:
    """The next message of a queue gets this number."""
    node: Any = server.broker._node
    partition = node._parts.catalogue.named(name)
    node._parts.write(partition, [PendingRecord(NumbersSkipped(first, 1))])
    server.broker._driver.wake()


async def a_log_with_gaps(server: EmbeddedServer, client: Client) -> tuple[Queue, list[int]]:
    """Messages 1 to 100, 50 behind the first gap, 30 behind the second; each is its number."""
    queue = await client.create_queue("events", consumption="log")
    numbers: list[int] = []
    for first, count in ((1, 100), (WIDE, 50), (HUGE, 30)):
        if numbers:
            leave_out(server, "events", first)
        mine = list(range(first, first + count))
        for start in range(0, count, 7):
            await queue.send_batch([b"%d" % number for number in mine[start : start + 7]])
        numbers += mine
    return queue, numbers


@pytest.mark.parametrize("slice_bytes", [1, 40, 10_000])
@pytest.mark.parametrize("in_flight", [1, 4])
def test_every_message_is_read_once_however_slices_are_cut(slice_bytes: int, in_flight: int) -> None:
    async def read() -> None:
        async with served() as (server, client):
            queue, numbers = await a_log_with_gaps(server, client)
            for start in (1, 95, 101, WIDE - 1, WIDE, WIDE + 49, WIDE + 50, HUGE - 1, HUGE + 29, HUGE + 30):
                batches = queue.log().batches(start=start, slice_bytes=slice_bytes, in_flight=in_flight)
                slices = [one async for one in batches]
                found = [int(body) for one in slices for body in one.bodies()]
                assert found == [number for number in numbers if number >= start]
                for one in slices:
                    assert [message.sequence for message in one] == list(range(one.first, one.next))

    asyncio.run(read())


@async_test
async def test_limits_and_stops_count_messages() -> None:
    async with served() as (server, client):
        queue, numbers = await a_log_with_gaps(server, client)
        log = queue.log()

        async def read(**terms: Any) -> list[int]:
            return [message.sequence async for message in log.messages(slice_bytes=60, **terms)]

        for start in (1, 90, 101, WIDE - 5, WIDE + 45, HUGE - 1):
            following = [number for number in numbers if number >= start]
            for limit in (0, 1, 10, 60, 1_000):
                assert await read(start=start, limit=limit) == following[:limit]
            for stop in (start, 100, 101, WIDE // 2, WIDE, WIDE + 10, WIDE + 50, HUGE, HUGE + 5):
                if stop >= start:
                    assert await read(start=start, stop=stop) == [n for n in following if n < stop]
        assert await read(start=95, limit=20, stop=WIDE + 3) == [*range(95, 101), *range(WIDE, WIDE + 3)]
        (part,) = await log.partitions()
        assert (part.begin, part.end, part.gaps) == (1, HUGE + 30, ((101, WIDE), (WIDE + 50, HUGE)))
        assert part.messages == len(numbers)
        for messages in (1, 30, 31, 80, 100, 180, 500):
            wanted = numbers[-messages:]
            assert await log.newest(messages) == await log.newest(messages, 0) == {0: wanted[0]}
            assert await read(start=await log.newest(messages)) == wanted
        one = await log.read(WIDE - 7, max_messages=3)
        assert (one.first, one.next, one.end, len(one)) == (WIDE, WIDE + 3, HUGE + 30, 3)


@async_test
async def test_who_follows_is_not_held_up_by_a_gap_that_comes_meanwhile() -> None:
    async with served() as (server, client):
        queue = await client.create_queue("events", consumption="log")
        await queue.send_batch([b"1", b"2"])
        messages = queue.log().messages(follow=True, limit=5)
        found = [(await anext(messages)).sequence for _ in range(2)]
        waiting = asyncio.ensure_future(anext(messages))
        assert (await queue.describe()).name == "events"  # by now it waits at the end
        leave_out(server, "events", WIDE)
        await queue.send_batch([b"3"])
        found.append((await waiting).sequence)
        leave_out(server, "events", HUGE)
        await queue.send_batch([b"4", b"5", b"6"])
        found += [message.sequence async for message in messages]
        assert found == [1, 2, WIDE, HUGE, HUGE + 1]


@async_test
async def test_a_group_reads_on_behind_a_gap_and_counts_what_it_has_left() -> None:
    async with served() as (server, client):
        queue, numbers = await a_log_with_gaps(server, client)
        log = queue.log()
        await log.commit_offsets(
            "billing", {0: 104}
        )  # of before a failover: among the numbers that are left out
        group = await log.describe_group("billing")
        assert (group.offset, group.lag_messages) == (104, 80)
        async with log.join("billing", follow=False) as reader:
            found = [message.sequence async for message in reader.messages()]
        assert found == numbers[100:]
        group = await log.describe_group("billing")
        assert (group.offset, group.lag_messages, group.lag_ms) == (HUGE + 30, 0, 0)
        leave_out(server, "events", 2 * HUGE)
        async with asyncio.timeout(5), log.join("billing", follow=False) as reader:
            assert [message.sequence async for message in reader.messages()] == [], "nobody waits in a gap"
        moved = await log.seek("billing", start=WIDE - 1)
        assert moved.lag_messages == 80


# -- request by request --------------------------------------------------------------------------------------


def give(seen: Seen[ReadLog], first: int, count: int, end: int) -> None:
    """Answers with one batch from a number on, wherever was asked for; none: with where to go on."""
    batch = encode_parts([b"%d" % number for number in range(first, first + count)]) if count else b""
    heads = [LoggedBatch(first, count, 1_000, len(batch))] if count else []
    seen.answer(LogSlice(heads, first + count, end), bytes(batch))


@async_test
async def test_what_was_asked_for_in_a_gap_is_forgotten_whichever_answer_comes_first() -> None:
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        async with connected() as (peer, client):
            batches = client.queue("orders").log().batches(slice_bytes=60, in_flight=3)
            begun = asyncio.ensure_future(batches.__aenter__())
            (await peer.next(FindOffset)).answer(LogBounds(1, WIDE + 20, 1, [(11, WIDE)]))
            await begun
            first = asyncio.ensure_future(anext(batches))
            give(await peer.next(ReadLog), 1, 10, WIDE + 20)
            assert (await first).next == 11
            asked = [await peer.next(ReadLog) for _ in range(3)]
            assert all(11 <= one.request.start < WIDE for one in asked)
            second = asyncio.ensure_future(anext(batches))
            for place in order:  # the server knows what lies behind, however it is asked
                give(asked[place], WIDE, 5, WIDE + 20)
            assert [int(body) for body in (await second).bodies()] == list(range(WIDE, WIDE + 5))
            rest = asyncio.ensure_future(anext(batches))
            while not rest.done():
                asking = asyncio.ensure_future(peer.next(ReadLog))
                await asyncio.wait([rest, asking], return_when=asyncio.FIRST_COMPLETED)
                if not asking.done():
                    asking.cancel()
                    break
                again = asking.result()
                assert again.request.start >= WIDE + 5, "nothing is asked for in the gap any more"
                give(again, again.request.start, min(again.request.max_messages, 5), WIDE + 20)
            assert (await rest).first == WIDE + 5
            await batches.aclose()

"""What the reader of a log asks a server for, request by request, with a scripted peer in the server's place."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from penstock import Client, ErrorCode, LogBatches, PenstockError
from penstock.model.batch import encode_parts
from penstock.wire.log_messages import (
    CommitOffset,
    FindOffset,
    GroupMembership,
    JoinGroup,
    LeaveGroup,
    LogBounds,
    LoggedBatch,
    LogSlice,
    ReadLog,
)
from penstock.wire.messages import Done
from tests.client.peer import Peer, Seen, async_test, connected


def give(seen: Seen[ReadLog], counts: Sequence[int], end: int) -> None:
    """Answers with batches of so many messages, each message its number."""
    first, heads, body = seen.request.start, [], b""
    for count in counts:
        batch = encode_parts([b"%03d" % number for number in range(first, first + count)])
        heads.append(LoggedBatch(first, count, 1_000, len(batch)))
        body += batch
        first += count
    seen.answer(LogSlice(heads, first, end), body)


async def reading(peer: Peer, client: Client, end: int, **options: object) -> LogBatches:
    """A reader of a log of so many messages, about to ask for the first."""
    batches = client.queue("orders").log().batches(**options)  # type: ignore[arg-type]  # as the caller names them
    begun = asyncio.ensure_future(batches.__aenter__())
    (await peer.next(FindOffset)).answer(LogBounds(1, end, 1))
    return await begun


@async_test
async def test_ranges_are_asked_for_ahead_and_handed_out_in_order() -> None:
    async with connected() as (peer, client):
        batches = await reading(peer, client, 101, slice_bytes=100, in_flight=3)
        first = asyncio.ensure_future(anext(batches))
        asked = await peer.next(ReadLog)
        assert (asked.request.start, asked.request.wait_ms) == (1, 0)
        assert peer.quiet()  # how much fits is known with the first answer only
        give(asked, [10], 101)
        assert (await first).first == 1
        ahead = [await peer.next(ReadLog) for _ in range(3)]
        ranges = [(one.request.start, one.request.max_messages) for one in ahead]
        size = ranges[0][1]
        assert size >= 10
        assert ranges == [(11, size), (11 + size, size), (11 + 2 * size, size)]
        for one in reversed(ahead):  # however they come
            give(one, [one.request.max_messages], 101)
        found = [await anext(batches) for _ in range(3)]
        assert [one.first for one in found] == [start for start, _ in ranges]
        await batches.aclose()


@async_test
async def test_the_rest_of_a_range_comes_before_the_next_one() -> None:
    async with connected() as (peer, client):
        batches = await reading(peer, client, 41, slice_bytes=10_000, in_flight=2)
        first = asyncio.ensure_future(anext(batches))
        give(await peer.next(ReadLog), [10], 41)
        await first
        asked = await peer.next(ReadLog)
        assert (asked.request.start, asked.request.max_messages) == (11, 30)
        give(asked, [7], 41)  # larger messages, so fewer of them
        rest = await peer.next(ReadLog)
        assert (rest.request.start, rest.request.max_messages) == (18, 23)
        give(rest, [23], 41)
        assert [(one.first, len(one)) async for one in batches] == [(11, 7), (18, 23)]
        assert peer.quiet()


@async_test
async def test_reads_are_asked_again_on_a_new_connection() -> None:
    async with connected() as (peer, client):
        batches = await reading(peer, client, 11, follow=True)
        first = asyncio.ensure_future(anext(batches))
        give(await peer.next(ReadLog), [10], 11)
        await first
        waiting = asyncio.ensure_future(anext(batches))
        asked = await peer.next(ReadLog)
        assert asked.request.start == 11
        assert asked.request.wait_ms > 0
        peer.cut()
        again = await peer.next(ReadLog)
        assert again.request == asked.request
        give(again, [], 12)  # nothing came in time, though something has come by now: it asks on
        give(await peer.next(ReadLog), [2], 13)
        assert (await waiting).bodies() == [b"011", b"012"]
        await batches.aclose()


@pytest.mark.parametrize("counts", [[], [100]])
def test_an_answer_that_contradicts_itself_is_noticed(counts: list[int]) -> None:
    async def run() -> None:
        async with connected() as (peer, client):
            batches = await reading(peer, client, 41, slice_bytes=10_000)
            first = asyncio.ensure_future(anext(batches))
            give(await peer.next(ReadLog), [10], 41)
            await first
            give(await peer.next(ReadLog), counts, 41)
            with pytest.raises(PenstockError) as caught:
                await anext(batches)
            assert caught.value.code is ErrorCode.INTERNAL

    asyncio.run(run())


@async_test
async def test_a_member_renews_its_lease_and_fences_what_it_asks() -> None:
    async with connected() as (peer, client):
        reader = client.queue("orders").log().join("billing", lease=1, member="me", auto_commit=None)
        joining = asyncio.ensure_future(reader.join())
        joined = await peer.next(JoinGroup)
        assert (joined.request.group, joined.request.member, joined.request.lease_ms) == (
            "billing",
            "me",
            1_000,
        )
        joined.answer(GroupMembership(7, [(0, 5)], 1, 1_000))
        await joining
        messages = reader.messages()
        first = asyncio.ensure_future(anext(messages))
        asked = await peer.next(ReadLog)
        assert (asked.request.start, asked.request.group, asked.request.member, asked.request.generation) == (
            5,
            "billing",
            "me",
            7,
        )
        give(asked, [2], 7)
        assert (await first).sequence == 5
        await peer.next(ReadLog)  # waits at the end
        renewed = await peer.next(JoinGroup)  # without being asked to
        assert renewed.request == joined.request
        renewed.answer(
            GroupMembership(8, [(0, 5)], 2, 1_000)
        )  # somebody joined: another number, the same share
        committing = asyncio.ensure_future(reader.commit())
        commit = await peer.next(CommitOffset)
        assert (commit.request.offset, commit.request.generation) in ((6, 7), (6, 8))
        if commit.request.generation == 7:
            commit.refuse(ErrorCode.NOT_A_MEMBER)
            commit = await peer.next(CommitOffset)
            assert commit.request.generation == 8
        commit.answer(Done())
        assert await committing
        closing = asyncio.ensure_future(reader.close())
        (await peer.next(LeaveGroup)).answer(Done())
        await closing

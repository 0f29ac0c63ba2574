"""Groups of readers with the client, against a real server: shares, commits, takeovers, seeking."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import penstock
from penstock import Client, ErrorCode, GroupReader, PenstockError
from penstock.wire.log_messages import LeaveGroup
from penstock.wire.messages import Done
from tests.client.peer import async_test
from tests.client.real import restartable, served
from tests.client.test_log import a_log


async def take(reader: GroupReader, count: int) -> list[int]:
    """The next messages; the last of them is still being worked on."""
    messages = reader.messages()
    return [int((await anext(messages)).body) for _ in range(count)]


async def throw_out(client: Client, reader: GroupReader) -> None:
    """The group forgets the member, as if its lease had ended."""
    description = await client.describe_queue("events")
    await client._link.ask(LeaveGroup(description.queue_id, reader.group, reader.member), Done)


@async_test
async def test_groups_are_at_different_places() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 30)).log()
        async with log.join("billing") as billing:
            assert await take(billing, 10) == list(range(1, 11))
            assert await billing.commit()
            assert (billing.position, billing.committed) == (11, 11)
        async with log.join("audit", start=25) as audit:
            assert await take(audit, 2) == [25, 26]
            assert await audit.commit()
        async with log.join("recent", from_time=timedelta(hours=1)) as recent:
            assert await take(recent, 1) == [1]
        groups = {group.name: (group.offset, group.lag_messages) async for group in log.list_groups()}
        assert groups == {"audit": (27, 4), "billing": (11, 20), "recent": (1, 30)}
        async with log.join("billing", start="end") as billing:  # where a new group would begin
            assert await take(billing, 1) == [11]


@async_test
async def test_what_is_finished_is_committed_without_being_told() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 10)).log()
        async with log.join("billing", auto_commit=0.01) as reader:
            messages = reader.messages()
            for _ in range(4):
                await anext(messages)
            while (await log.describe_group("billing")).offset < 4:
                pass  # the test's own time limit ends the wait
            assert (await log.describe_group("billing")).offset == 4  # which is still being worked on
            with pytest.raises(RuntimeError):
                async with reader:
                    raise RuntimeError("the fourth could not be worked on")
        async with log.join("billing", auto_commit=None) as reader:
            assert await take(reader, 3) == [4, 5, 6]
        assert (await log.describe_group("billing")).offset == 4
        async for message in log.messages(group="billing"):
            last = message.sequence
        assert last == 10
        assert (await log.describe_group("billing")).lag_messages == 0


@async_test
async def test_commits_may_name_what_is_done_with() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 20)).log()
        async with log.join("billing", auto_commit=None) as reader:
            messages = reader.messages()
            found = [await anext(messages) for _ in range(5)]
            assert await reader.commit(found[1])
            assert (await log.describe_group("billing")).offset == 3
            assert await reader.commit(found[0])  # done with already
            assert (await log.describe_group("billing")).offset == 3
            (later,) = await log.read(20)
            with pytest.raises(PenstockError, match="was not delivered by this reader"):
                await reader.commit(later)
        async with log.join("billing", auto_commit=None) as reader:
            piece = await anext(reader.batches())
            assert piece.first == 3
            assert await reader.commit(piece)
            assert (await log.describe_group("billing")).offset == piece.next


@async_test
async def test_members_stand_by_and_take_over() -> None:
    async with served() as (server, client), penstock.connect(server.url) as other:
        log = (await a_log(client, 10)).log()
        async with log.join("billing") as first:
            assert await take(first, 3) == [1, 2, 3]
            async with other.queue("events").log().join("billing", member="second") as second:
                assert second.standing_by
                assert second.members == 2
                waiting = asyncio.ensure_future(take(second, 3))
                # The first goes on where it was, though the group has changed.
                assert await take(first, 2) == [4, 5]
                assert await first.commit()
                assert not waiting.done()
                assert (await log.describe_group("billing")).members[1:] == ["second"]
                await first.close()
                assert await waiting == [6, 7, 8]
                assert not second.standing_by


@async_test
async def test_a_member_that_was_thrown_out_joins_again() -> None:
    async with served() as (_, client):
        queue = await a_log(client, 10)
        log = queue.log()
        async with log.join("billing", auto_commit=None) as reader:
            messages = reader.messages()
            seen = [int((await anext(messages)).body) for _ in range(10)]
            assert await reader.commit()
            waiting = asyncio.ensure_future(anext(messages))
            await log.bounds()
            await throw_out(client, reader)
            await queue.send(b"11")
            assert [*seen, int((await waiting).body)] == list(range(1, 12))
            await throw_out(client, reader)
            assert await reader.commit()  # nobody else had the share meanwhile
            assert (await log.describe_group("billing")).offset == 12


@async_test
async def test_what_another_member_has_done_is_not_committed_over() -> None:
    async with served() as (server, client), penstock.connect(server.url) as other:
        log = (await a_log(client, 10)).log()
        async with log.join("billing", auto_commit=None) as first:
            messages = first.messages()
            assert (await anext(messages)).sequence == 1
            await throw_out(client, first)
            async with other.queue("events").log().join("billing", auto_commit=None) as second:
                assert await take(second, 5) == [1, 2, 3, 4, 5]
                assert await second.commit()
                assert not await first.commit()
                assert first.standing_by
            assert (await anext(messages)).sequence == 6


@async_test
async def test_a_group_is_moved_under_its_reader() -> None:
    async with served() as (_, client):
        queue = await a_log(client, 10)
        log = queue.log()
        async with log.join("billing", auto_commit=None) as reader:
            messages = reader.messages()
            for _ in range(5):
                await anext(messages)
            moved = await log.seek("billing", start=9)
            assert (moved.offset, moved.lag_messages) == (9, 2)
            assert not await reader.commit()
            assert (await anext(messages)).sequence == 9
            await reader.seek(start="beginning")
            assert (await anext(messages)).sequence == 1
            await reader.seek(from_time=timedelta(hours=1))
            assert (await anext(messages)).sequence == 1
            await reader.seek(start="end")
            await queue.send(b"11")
            assert (await anext(messages)).sequence == 11


@async_test
async def test_a_reader_survives_a_restart() -> None:
    async with restartable() as server, penstock.connect(server.url) as client:
        queue = await a_log(client, 5)
        log = queue.log()
        async with log.join("billing", auto_commit=None) as reader:
            messages = reader.messages()
            seen = [int((await anext(messages)).body) for _ in range(3)]
            assert await reader.commit()
            seen += [int((await anext(messages)).body) for _ in range(2)]
            waiting = asyncio.ensure_future(anext(messages))
            await server.stop()
            await server.start()
            await queue.send(b"6")
            assert [*seen, int((await waiting).body)] == [1, 2, 3, 4, 5, 6]
            assert await reader.commit()
            assert (await log.describe_group("billing")).offset == 7


@async_test
async def test_a_group_whose_place_is_gone() -> None:
    async with served() as (_, client):
        queue = await a_log(client, 5)
        log = queue.log()
        async with log.join("billing") as reader:
            assert await take(reader, 1) == [1]
        await queue.purge()
        await queue.send(b"6")
        async with log.join("billing") as reader:
            with pytest.raises(penstock.OffsetGone) as caught:
                await take(reader, 1)
            assert caught.value.begin == 6
        async with log.join("billing", when_gone="earliest") as reader:
            assert await take(reader, 1) == [6]
            assert await reader.commit()
        assert (await log.describe_group("billing")).offset == 7


@async_test
async def test_groups_are_found_and_forgotten() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 3)).log()
        for number in range(120):
            async with log.join(f"group-{number:03}"):
                pass
        assert [group.name async for group in log.list_groups()] == [f"group-{n:03}" for n in range(120)]
        assert (await log.describe_group("group-119")).name == "group-119"
        with pytest.raises(PenstockError, match="no group 'group-12'"):
            await log.describe_group("group-12")
        async with log.join("group-000"):
            with pytest.raises(PenstockError, match="members"):
                await log.delete_group("group-000")
        await log.delete_group("group-000")
        assert (await anext(log.list_groups())).name == "group-001"
        with pytest.raises(PenstockError, match="group-000"):
            await log.seek("group-000", start="end")
        with pytest.raises(PenstockError, match="give a start"):
            await log.seek("group-001")


@async_test
async def test_a_queue_that_is_deleted_ends_its_readers() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 1)).log()
        async with log.join("billing") as reader:
            messages = reader.messages()
            await anext(messages)
            await client.delete_queue("events")
            with pytest.raises(PenstockError) as caught:
                await anext(messages)
            assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND


@async_test
async def test_mistakes_are_explained() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 1)).log()
        for mistake, arguments in (("lease", {"lease": 0.1}), ("auto_commit", {"auto_commit": 0})):
            with pytest.raises(PenstockError, match=mistake):
                log.join("billing", **arguments)
        with pytest.raises(PenstockError, match="name of a group"):
            log.join("")
        plain = await client.create_queue("plain")
        with pytest.raises(PenstockError, match="log"):
            async with plain.log().join("billing"):
                pass


@async_test
async def test_whoever_leaves_the_loop_and_comes_back_goes_on_there() -> None:
    async with served() as (_, client):
        log = (await a_log(client, 10)).log()
        async with log.join("billing", auto_commit=None) as reader:
            assert await take(reader, 3) == [1, 2, 3]
            assert await take(reader, 2) == [4, 5]
            assert await reader.commit()
            assert await take(reader, 1) == [6]
        assert (await log.describe_group("billing")).offset == 6

"""Logs of several partitions through a front end: their partitions, reading, offsets, and groups that share them."""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import penstock
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import number_of, partition_of
from tests.runtime.cluster.link.harness import small_cluster
from tests.runtime.cluster.link.test_gateway import connected
from tests.runtime.harness import async_test

BATCHES = 12
BODIES = {b"%d-%d" % (batch, number) for batch in range(BATCHES) for number in range(10)}


async def a_log(client: penstock.Client, partitions: int = 3) -> penstock.Queue:
    """A log of so many partitions with messages in each."""
    queue = await client.create_queue("clicks", consumption="log", partitions=partitions)
    for batch in range(BATCHES):
        await queue.send_batch([b"%d-%d" % (batch, number) for number in range(10)])
    return queue


async def taken(reader: penstock.GroupReader, count: int) -> list[penstock.LoggedMessage]:
    """The next messages of a member; the last is still being worked on."""
    messages = reader.messages()
    return [await anext(messages) for _ in range(count)]


@async_test
async def test_every_partition_is_known_and_read_by_range(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        log = (await a_log(client)).log()
        parts = await log.partitions()
        assert [part.partition for part in parts] == [0, 1, 2]
        assert all(part.begin == number_of(part.partition, 1) for part in parts)
        assert sum(part.end - part.begin for part in parts) == len(BODIES)
        found: list[bytes] = []
        for part in parts:
            assert (part.begin, part.end) == tuple(await log.bounds(part.partition))
            one = await log.read(part.begin + 3, max_messages=4)
            assert (one.partition, one.first, one.next, one.end) == (
                part.partition,
                part.begin + 3,
                part.begin + 7,
                part.end,
            )
            middle = part.begin + 5
            for start, stop in ((part.begin, middle), (middle, part.end)):
                async for piece in log.batches(start=start, stop=stop):
                    assert start <= piece.first < piece.next <= stop
                    found += piece.bodies()
        assert len(found) == len(BODIES)
        assert set(found) == BODIES
        one_only = [message async for message in log.messages(partition=2)]
        assert [message.sequence for message in one_only] == list(range(parts[2].begin, parts[2].end))
        assert {message.partition for message in one_only} == {2}
        with pytest.raises(PenstockError, match="has 3 partitions"):
            await log.bounds(3)


@async_test
async def test_all_partitions_are_read_as_one_log_in_the_order_of_time(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        queue = await a_log(client)
        log = queue.log()
        messages = [message async for message in log.messages()]
        assert {message.body for message in messages} == BODIES
        assert len(messages) == len(BODIES)
        times = [message.sent_at for message in messages]
        assert times == sorted(times)
        for partition in range(3):
            numbers = [one.sequence for one in messages if one.partition == partition]
            assert numbers == sorted(numbers)
        assert [one.sequence async for one in log.messages(limit=17)] == [
            one.sequence for one in messages[:17]
        ]
        count = 0
        async for piece in log.batches(limit=55, slice_bytes=200):
            count += len(piece)
        assert count == 55
        newest = [one async for one in log.messages(start=await log.newest(7))]
        assert sorted(one.sent_at for one in newest)[-7:] == times[-7:]
        assert len(newest) == 7
        parts = await log.partitions()
        start = {0: parts[0].begin + 1, 2: parts[2].end - 1}
        stop = {0: parts[0].begin + 3}
        some = [one.sequence async for one in log.messages(start=start, stop=stop)]
        assert sorted(some) == [parts[0].begin + 1, parts[0].begin + 2, parts[2].end - 1]
        following = log.messages(start="end", follow=True)
        async with following:
            await queue.send(b"new")
            assert (await anext(following)).body == b"new"


@async_test
async def test_places_are_found_by_time_in_every_partition(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        log = (await a_log(client)).log()
        parts = await log.partitions()
        assert await log.find_everywhere(timedelta(hours=1)) == {one.partition: one.begin for one in parts}
        later = datetime.now(UTC) + timedelta(hours=1)
        assert await log.find_everywhere(later) == {one.partition: one.end for one in parts}
        assert [await log.find(later, partition) for partition in range(3)] == [one.end for one in parts]
        last = [one async for one in log.messages()][-1]
        found = await log.find(last.sent_at, last.partition)
        assert partition_of(found) == last.partition
        assert found <= last.sequence


@async_test
async def test_offsets_of_a_group_without_members(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        log = (await a_log(client)).log()
        parts = await log.partitions()
        assert await log.group_offsets("spark") == {}
        wanted = {0: parts[0].begin + 4, 2: parts[2].end}
        await log.commit_offsets("spark", wanted)
        assert await log.group_offsets("spark") == wanted
        await log.commit_offsets("spark", {0: parts[0].begin + 2, 1: parts[1].begin + 1})
        assert await log.group_offsets("spark") == {**wanted, 1: parts[1].begin + 1}
        with pytest.raises(PenstockError, match="is of partition 1, not 0"):
            await log.commit_offsets("spark", {0: parts[1].begin})
        described = await log.describe_group("spark")
        assert [place.lag_messages for place in described.partitions] == [
            parts[0].end - parts[0].begin - 4,
            parts[1].end - parts[1].begin - 1,
            0,
        ]
        assert described.lag_messages == sum(place.lag_messages for place in described.partitions)
        moved = await log.seek("spark", start={2: parts[2].begin})
        assert [(place.partition, place.offset) for place in moved.partitions] == [(2, parts[2].begin)]
        await log.seek("spark", from_time=timedelta(hours=1))
        assert await log.group_offsets("spark") == {one.partition: one.begin for one in parts}
        await log.seek("spark", start="end")
        assert await log.group_offsets("spark") == {one.partition: one.end for one in parts}
        async with log.join("spark") as reader:
            with pytest.raises(PenstockError) as refused:
                await log.commit_offsets("spark", {0: parts[0].end})
            assert refused.value.code is ErrorCode.NOT_A_MEMBER
            assert reader.shares == [0, 1, 2]
            with pytest.raises(PenstockError, match="members"):
                await log.delete_group("spark")
        await log.delete_group("spark")
        assert [group async for group in log.list_groups()] == []


@async_test
async def test_members_share_the_partitions_and_take_over(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client, connected(cluster) as other:
        queue = await a_log(client, 4)
        log, same = queue.log(), other.queue("clicks").log()
        async with log.join("billing", auto_commit=None) as first:
            assert first.shares == [0, 1, 2, 3]
            async with same.join("billing", auto_commit=None) as second:
                assert len(second.shares) == 2
                seen: set[bytes] = set()
                wanted = sum(
                    part.end - part.begin
                    for part in await log.partitions()
                    if part.partition in second.shares
                )
                for message in await taken(second, wanted):
                    seen.add(message.body)
                    assert message.partition in second.shares
                assert await second.commit()
                rest = await taken(first, len(BODIES) - wanted)
                assert await first.commit()
                assert not set(first.shares) & set(second.shares)
                assert seen | {message.body for message in rest} == BODIES
                group = await log.describe_group("billing")
                assert {place.reader for place in group.partitions} == {first.member, second.member}
                assert (group.lag_messages, len(group.members)) == (0, 2)
            # The second has left: the first has everything again, and nothing comes twice.
            await queue.send_batch([b"after-%d" % number for number in range(8)])
            for _ in range(8):
                await queue.send(b"single")
            bodies = [message.body for message in await taken(first, 16)]
            assert bodies.count(b"single") == 8
            assert len(set(bodies)) == 9
            assert first.shares == [0, 1, 2, 3]


@async_test
async def test_what_was_not_committed_is_read_again_and_nothing_is_skipped(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        log = (await a_log(client)).log()
        async with log.join("billing", auto_commit=None) as reader:
            begun = await taken(reader, 35)
            assert await reader.commit(begun[4])  # of its partition, everything up to it
            assert set(reader.positions) == {0, 1, 2}
        offsets = await log.group_offsets("billing")
        done = begun[4].partition
        assert offsets[done] == begun[4].sequence + 1
        assert all(offset == number_of(one, 1) for one, offset in offsets.items() if one != done)
        async with log.join("billing", follow=False) as reader:
            again = [message async for message in reader]
        assert len(again) == len(BODIES) - 5
        assert (await log.describe_group("billing")).lag_messages == 0


@async_test
async def test_a_seek_by_time_moves_a_member_that_reads(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        log = (await a_log(client)).log()
        async with log.join("billing") as reader:
            assert len({message.body for message in await taken(reader, len(BODIES))}) == len(BODIES)
            await reader.seek(from_time=timedelta(hours=1))
            assert {message.body for message in await taken(reader, len(BODIES))} == BODIES


@async_test
async def test_a_tail_from_the_command_line_is_of_all_partitions_or_of_one(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        await a_log(client)
        everything, last, one = await asyncio.gather(
            _printed(client, "tail", "clicks", "--from", "beginning", "--body"),
            _printed(client, "tail", "clicks", "--limit", "5", "--body"),
            _printed(client, "tail", "clicks", "--partition", "1", "--limit", "3", "--json"),
        )
        assert {body.encode() for body in everything.split()} == BODIES
        assert len(last.split()) == 5
        assert [partition_of(json.loads(line)["sequence"]) for line in one.splitlines()] == [1, 1, 1]


@async_test
async def test_a_group_is_shown_and_moved_from_the_command_line(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster, connected(cluster) as client:
        log = (await a_log(client)).log()
        parts = await log.partitions()
        await log.commit_offsets("billing", {part.partition: part.begin + 2 for part in parts})
        told, table = await asyncio.gather(
            _printed(client, "group", "show", "clicks", "billing", "--json"),
            _printed(client, "group", "show", "clicks", "billing"),
        )
        assert json.loads(told)["lag_messages"] == len(BODIES) - 6
        assert [place["partition"] for place in json.loads(told)["partitions"]] == [0, 1, 2]
        assert str(parts[2].begin + 2) in table
        moved = await _printed(client, "group", "seek", "clicks", "billing", "--to", "end")
        assert f"message {parts[2].end} of partition 2" in moved
        assert (await log.describe_group("billing")).lag_messages == 0


async def _printed(client: penstock.Client, *arguments: str) -> str:
    """What a command prints, as a process of its own, about the cluster that a client is connected to."""
    url = f"penstock://{client._link._address}"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "penstock.cli.main", *arguments, "--url", url), stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, arguments
    return output.decode()

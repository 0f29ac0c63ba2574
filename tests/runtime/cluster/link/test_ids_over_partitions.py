"""One deduplication id, one message, also where its groups lie in different partitions, and whatever dies in between."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from penstock.model.batch import encode_parts
from penstock.model.partition_numbers import partition_of
from penstock.model.settings import QueueSettings
from penstock.routing.batch_parts import ordinal_of
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import (
    ClaimedIds,
    ClaimIds,
    CreateQueue,
    FindIds,
    FoundIds,
    QueueDescription,
    Send,
    SendResult,
)
from tests.runtime.cluster.link.harness import small_cluster
from tests.runtime.cluster.link.test_partitions import described
from tests.runtime.engine.linked_node import ask, asked
from tests.runtime.harness import async_test

PARTITIONS = 3
Given = TypeVar("Given", ClaimedIds, FoundIds)


def groups_apart() -> Iterator[bytes]:
    """One group for each partition."""
    for wanted in range(PARTITIONS):
        yield next(
            name for number in range(100) if ordinal_of(name := b"group-%d" % number, PARTITIONS) == wanted
        )


GROUPS = list(groups_apart())


async def made(link: ClusterLink, **settings: object) -> int:
    wanted = msgspec.convert({"partitions": PARTITIONS, "ordering": "fifo", **settings}, QueueSettings)
    answer = (await ask(link, CreateQueue("orders", wanted))).answer
    assert isinstance(answer, QueueDescription)
    return answer.queue_id


async def sent(link: ClusterLink, queue_id: int, rows: list[tuple[bytes, bytes, bytes]]) -> SendResult:
    """Messages as (body, group, id)."""
    bodies, groups, ids = ([row[column] for row in rows] for column in range(3))
    body = encode_parts(bodies, groups=groups, deduplication_ids=ids)
    answer = (await ask(link, Send(queue_id), body)).answer
    assert isinstance(answer, SendResult)
    return answer


async def stored(link: ClusterLink) -> int:
    """How many messages the queue has."""
    return (await described(link)).statistics.ready


@async_test
async def test_the_same_id_in_other_groups_is_stored_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link, other = await cluster.link(), await cluster.link()
        queue_id = await made(link)
        await described(other)
        first = await sent(link, queue_id, [(b"a", GROUPS[0], b"x")])
        for group in GROUPS:
            again = await sent(other, queue_id, [(b"a", group, b"x")])
            assert (again.runs, again.duplicates) == (first.runs, [0])
        assert await stored(link) == 1


@async_test
async def test_a_batch_of_old_and_new_ids_is_answered_in_its_order(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link)
        first = await sent(link, queue_id, [(b"a", GROUPS[1], b"x")])
        rows = [
            (b"b", GROUPS[0], b"new"),
            (b"a", GROUPS[2], b"x"),  # sent to another partition before
            (b"b", GROUPS[1], b"new"),  # comes earlier in the batch, for another partition
            (b"c", GROUPS[0], b"c"),
            (b"c", GROUPS[0], b"c"),  # comes earlier, for the same
            (b"d", GROUPS[2], b""),
        ]
        result = await sent(link, queue_id, rows)
        numbers = [first + step for first, count in result.runs for step in range(count)]
        assert result.duplicates == [1, 2, 4]
        assert numbers[1] == first.runs[0][0]
        assert numbers[2] == numbers[0]
        assert numbers[4] == numbers[3]
        assert [partition_of(numbers[place]) for place in (0, 3, 5)] == [0, 0, 2]
        assert await stored(link) == 4
        whole = await sent(link, queue_id, [(b"a", GROUPS[0], b"x"), (b"b", GROUPS[2], b"new")])
        assert whole.duplicates == [0, 1]
        assert await stored(link) == 4


@async_test
async def test_many_who_send_the_same_at_once_store_it_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        links = [await cluster.link() for _ in range(3)]
        queue_id = await made(links[0])
        for link in links:
            await described(link)
        for number in range(10):
            identifier = b"x-%d" % number
            sends = []
            for link, group in zip(links, GROUPS, strict=True):
                body = encode_parts([b"a"], groups=[group], deduplication_ids=[identifier])
                sends.append(asked(link, Send(queue_id), body)[1])
            answers = [outcome.answer for outcome in await asyncio.gather(*sends)]
            runs = [answer.runs for answer in answers if isinstance(answer, SendResult)]
            assert len(runs) == 3
            assert runs[0] == runs[1] == runs[2]
        assert await stored(links[0]) == 10


@async_test
async def test_a_claim_that_came_to_nothing_does_not_lose_the_message(tmp_path: Path) -> None:
    """A front end claimed an id and died before it sent anything; what it sends late is refused."""
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link)
        home = await _partition(link, ordinal_of(b"x", PARTITIONS))
        claimed = await _asked(link, home, ClaimIds(home, [b"x"], [0], [0]), ClaimedIds)
        assert claimed.owners == [0]
        result = await sent(link, queue_id, [(b"a", GROUPS[1], b"x")])
        assert result.duplicates == []
        assert partition_of(result.runs[0][0]) == 1
        # The late one asks again, as every send does that was refused, and learns where it was sent.
        again = await sent(link, queue_id, [(b"a", GROUPS[0], b"x")])
        assert (again.runs, again.duplicates) == (result.runs, [0])
        assert await stored(link) == 1


@async_test
async def test_who_barred_an_id_and_died_holds_nobody_up(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link)
        home = await _partition(link, ordinal_of(b"x", PARTITIONS))
        claimed = await _asked(link, home, ClaimIds(home, [b"x"], [0], [0]), ClaimedIds)
        owner = await _partition(link, 0)
        found = await _asked(link, owner, FindIds(owner, [b"x"], claimed.versions), FoundIds)
        assert found.sequences == [0]
        result = await sent(link, queue_id, [(b"a", GROUPS[0], b"x")])
        assert result.duplicates == []
        assert await stored(link) == 1
        # A bar of an older claim is not raised again, and a younger one is not lifted by an older claim.
        assert (await _asked(link, owner, FindIds(owner, [b"x"], claimed.versions), FoundIds)).sequences == [
            result.runs[0][0]
        ]


@async_test
async def test_ids_that_have_their_group_in_them_are_not_asked_about(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link)
        for group in GROUPS:
            result = await sent(link, queue_id, [(b"a", group, b"\0" + group)])
            assert result.duplicates == []
            assert (await sent(link, queue_id, [(b"a", group, b"\0" + group)])).duplicates == [0]
        for node in cluster.nodes.values():
            for partition in node.leads:
                assert not node._parts.catalogue.partitions[partition].window.claims.rows


async def _partition(link: ClusterLink, ordinal: int) -> int:
    entry = link.map.ready("orders")
    assert entry is not None
    return entry.partitions[ordinal]


async def _asked(link: ClusterLink, partition: int, request: ClaimIds | FindIds, kind: type[Given]) -> Given:
    """What a partition itself says, past the front end."""
    answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    link.calls.start(Ask(request, partition=partition), answered.set_result)
    outcome = await answered
    assert isinstance(outcome, Reply)
    assert isinstance(outcome.answer, kind)
    return outcome.answer

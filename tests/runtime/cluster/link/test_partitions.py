"""Queues of several partitions through the link: they look like one queue."""

from __future__ import annotations

from pathlib import Path

import msgspec

from penstock.model.batch import Batch, Buffer, encode_parts
from penstock.model.runs import count_of
from penstock.model.settings import QueueSettings
from penstock.routing.numbers import inward
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.wire.messages import (
    Count,
    CreateQueue,
    Delete,
    DeliveredBatch,
    Delivery,
    DescribeQueue,
    FindOffset,
    GroupDelivery,
    LogBounds,
    LogSlice,
    Peek,
    Peeked,
    Purge,
    QueueDescription,
    ReadLog,
    Receipt,
    Receive,
    ReceiveAny,
    Release,
    Send,
    SendResult,
    Settled,
    WeightedQueue,
)
from tests.runtime.cluster.link.harness import small_cluster
from tests.runtime.engine.linked_node import ask, asked
from tests.runtime.harness import async_test, until


async def made(link: ClusterLink, name: str = "orders", **settings: object) -> int:
    """The id of a new queue."""
    wanted = msgspec.convert({"partitions": 3, **settings}, QueueSettings)
    answer = (await ask(link, CreateQueue(name, wanted))).answer
    assert isinstance(answer, QueueDescription)
    return answer.queue_id


async def sent(link: ClusterLink, queue_id: int, bodies: list[bytes], **columns: list[bytes]) -> SendResult:
    """What became of a batch."""
    answer = (await ask(link, Send(queue_id), encode_parts(bodies, **columns))).answer  # type: ignore[arg-type]  # as the caller names them
    assert isinstance(answer, SendResult)
    return answer


def bodies_of(batches: list[DeliveredBatch], body: Buffer) -> list[bytes]:
    """The bodies of a delivery."""
    found, offset = [], 0
    for batch in batches:
        found += Batch(body[offset : offset + batch.size]).bodies()
        offset += batch.size
    return found


async def described(link: ClusterLink, name: str = "orders") -> QueueDescription:
    """A queue as it is now."""
    answer = (await ask(link, DescribeQueue(name))).answer
    assert isinstance(answer, QueueDescription)
    return answer


@async_test
async def test_batches_are_spread_and_all_come_out_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link)
        results = [await sent(link, queue_id, [b"%d-%d" % (n, m) for m in range(4)]) for n in range(6)]
        assert {inward(result.runs[0][0])[0] for result in results} == {0, 1, 2}
        assert (await described(link)).statistics.ready == 24
        found: list[bytes] = []
        for _ in range(40):
            reply = await ask(link, Receive(queue_id, 3))
            assert isinstance(reply.answer, Delivery)
            if not reply.answer.batches:
                break
            found += bodies_of(reply.answer.batches, reply.body)
            runs = [(batch.first, batch.count) for batch in reply.answer.batches]
            settled = (await ask(link, Delete([Receipt(reply.answer.token, runs)]))).answer
            assert isinstance(settled, Settled)
            assert settled.outcomes[0].done == count_of(runs)
        assert sorted(found) == sorted(b"%d-%d" % (n, m) for n in range(6) for m in range(4))
        statistics = (await described(link)).statistics
        assert (statistics.ready, statistics.leased, statistics.deleted_total) == (0, 0, 24)


@async_test
async def test_a_receive_that_waits_hears_of_every_partition(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link, other = await cluster.link(), await cluster.link()
        queue_id = await made(link)
        await described(other)
        for number in range(6):
            _, waiting = asked(link, Receive(queue_id, wait_ms=20_000))
            await until(lambda: all(_waiters(node) == 1 for node in cluster.nodes.values()))
            await sent(other, queue_id, [b"%d" % number])
            reply = await waiting
            assert isinstance(reply.answer, Delivery)
            assert bodies_of(reply.answer.batches, reply.body) == [b"%d" % number]
            await until(lambda: all(_waiters(node) == 0 for node in cluster.nodes.values()))


def _waiters(node: object) -> int:
    parts = node._parts  # type: ignore[attr-defined]  # a real node, looked into
    return sum(parts.waiting.count(partition) for partition in node.leads)  # type: ignore[attr-defined]  # a real node, looked into


@async_test
async def test_what_comes_too_late_is_given_back_as_if_it_had_never_been_received(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link, other = await cluster.link(), await cluster.link()
        queue_id = await made(link)
        await described(other)
        _, waiting = asked(link, Receive(queue_id, wait_ms=20_000))
        await until(lambda: all(_waiters(node) == 1 for node in cluster.nodes.values()))
        sends = [asked(other, Send(queue_id), encode_parts([b"%d" % number]))[1] for number in range(3)]
        for send in sends:
            await send
        first = (await waiting).answer
        assert isinstance(first, Delivery)
        found = [count_of([(batch.first, batch.count) for batch in first.batches])]
        for _ in range(2):
            reply = await ask(link, Receive(queue_id, wait_ms=20_000))
            assert isinstance(reply.answer, Delivery)
            assert all(batch.receive_counts in (1, [1]) for batch in reply.answer.batches)
            found.append(sum(batch.count for batch in reply.answer.batches))
        assert found == [1, 1, 1]


@async_test
async def test_the_same_id_is_found_wherever_it_is_sent(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link, other = await cluster.link(), await cluster.link()
        queue_id = await made(link)
        await described(other)
        identifiers = [b"id-%d" % number for number in range(20)]
        first = await sent(link, queue_id, identifiers, deduplication_ids=identifiers)
        again = await sent(other, queue_id, identifiers[::-1], deduplication_ids=identifiers[::-1])
        numbers = [number for start, count in first.runs for number in range(start, start + count)]
        repeated = [number for start, count in again.runs for number in range(start, start + count)]
        assert repeated == numbers[::-1]
        assert again.duplicates == list(range(20))
        assert (await described(link)).statistics.ready == 20


@async_test
async def test_receipts_of_several_partitions_are_settled_together(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link)
        for number in range(3):
            await sent(link, queue_id, [b"%d" % number])
        receipts = []
        for _ in range(3):
            reply = await ask(link, Receive(queue_id, wait_ms=5_000))
            assert isinstance(reply.answer, Delivery)
            receipts.append(Receipt(reply.answer.token, [(reply.answer.batches[0].first, 1)]))
        assert {inward(receipt.runs[0][0])[0] for receipt in receipts} == {0, 1, 2}
        settled = (await ask(link, Release(receipts))).answer
        assert isinstance(settled, Settled)
        assert [outcome.done for outcome in settled.outcomes] == [1, 1, 1]
        stale = (await ask(link, Release(receipts))).answer
        assert isinstance(stale, Settled)
        assert [outcome.stale for outcome in stale.outcomes] == [receipt.runs for receipt in receipts]


@async_test
async def test_a_queue_is_peeked_page_by_page_and_purged(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link)
        for number in range(9):
            await sent(link, queue_id, [b"%d" % number])
        found: list[bytes] = []
        start: int | None = 0
        while start is not None:
            reply = await ask(link, Peek(queue_id, start, 2))
            assert isinstance(reply.answer, Peeked)
            found += bodies_of(reply.answer.batches, reply.body)
            start = reply.answer.next
        assert sorted(found) == [b"%d" % number for number in range(9)]
        everything = await ask(link, Peek(queue_id, 0, 100))
        assert isinstance(everything.answer, Peeked)
        assert len(bodies_of(everything.answer.batches, everything.body)) == 9
        purged = (await ask(link, Purge(queue_id))).answer
        assert isinstance(purged, Count)
        assert purged.messages == 9
        assert (await described(link)).statistics.ready == 0


@async_test
async def test_several_queues_are_received_from_by_weight(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        heavy, light = await made(link, "heavy", partitions=2), await made(link, "light", partitions=1)
        for _ in range(4):
            await sent(link, heavy, [b"heavy"] * 20)
        await sent(link, light, [b"light"] * 80)
        asked_for = ReceiveAny([WeightedQueue(heavy, 3), WeightedQueue(light, 1)], 20)
        reply = await ask(link, asked_for)
        assert isinstance(reply.answer, GroupDelivery)
        taken: dict[int, int] = {}
        bodies: list[bytes] = []
        offset = 0
        for delivery in reply.answer.deliveries:
            for batch in delivery.batches:
                taken[delivery.queue_id] = taken.get(delivery.queue_id, 0) + batch.count
                bodies += Batch(reply.body[offset : offset + batch.size]).bodies()
                offset += batch.size
        assert taken == {heavy: 15, light: 5}
        assert (bodies.count(b"heavy"), bodies.count(b"light")) == (15, 5)
        await ask(link, Purge(light))
        await ask(link, Purge(heavy))
        _, waiting = asked(link, msgspec.structs.replace(asked_for, wait_ms=20_000))
        await sent(link, light, [b"late"])
        late = (await waiting).answer
        assert isinstance(late, GroupDelivery)
        assert [delivery.queue_id for delivery in late.deliveries] == [light]


@async_test
async def test_each_partition_has_a_log_of_its_own(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        queue_id = await made(link, consumption="log")
        for number in range(6):
            await sent(link, queue_id, [b"%d" % number])
        found: list[bytes] = []
        for partition in range(3):
            bounds = (await ask(link, FindOffset(queue_id, None, partition))).answer
            assert isinstance(bounds, LogBounds)
            assert inward(bounds.begin)[0] == partition
            reply = await ask(link, ReadLog(queue_id, bounds.begin))
            assert isinstance(reply.answer, LogSlice)
            assert reply.answer.next == bounds.end
            offset = 0
            for batch in reply.answer.batches:
                found += Batch(reply.body[offset : offset + batch.size]).bodies()
                offset += batch.size
        assert sorted(found) == [b"%d" % number for number in range(6)]

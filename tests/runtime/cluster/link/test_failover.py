"""Partitions that move, nodes that are lost, metadata that is away: what clients of the link notice of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from penstock.cluster.layout.entries import decode_queue, encode, node_key, partition_key, queue_key
from penstock.metadata.store.interface import Change, Entry, Listing, StoreUnavailableError
from penstock.metadata.store.memory import MemoryStore
from penstock.model.batch import Batch, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.steps.step import Ask, Outcome
from penstock.wire.messages import (
    CreateQueue,
    Delete,
    DeleteQueue,
    Delivery,
    DescribeQueue,
    QueueDescription,
    Receipt,
    Receive,
    Send,
    SendResult,
    Settled,
)
from tests.runtime.cluster.link.harness import SmallCluster, small_cluster
from tests.runtime.engine.linked_node import ask, asked
from tests.runtime.harness import async_test, until


async def made(link: ClusterLink, name: str = "orders", **settings: object) -> QueueDescription:
    """A new queue."""
    answer = (await ask(link, CreateQueue(name, msgspec.convert(settings, QueueSettings)))).answer
    assert isinstance(answer, QueueDescription)
    return answer


async def only_partition(cluster: SmallCluster, name: str = "orders") -> int:
    """The id of the one partition of a queue."""
    entry = await cluster.store.get(queue_key(name))
    assert entry is not None
    (partition,) = decode_queue(entry.value).partitions
    return partition


def leader(cluster: SmallCluster, partition: int) -> str:
    """Who leads a partition."""
    (name,) = [name for name, node in cluster.nodes.items() if partition in node.leads]
    return name


def other(cluster: SmallCluster, name: str) -> str:
    """Another node."""
    return next(node for node in cluster.nodes if node != name)


@async_test
async def test_a_planned_move_is_not_noticed(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        link = await cluster.link()
        queue = await made(link)
        partition = await only_partition(cluster)
        before = leader(cluster, partition)
        sends = []
        for number in range(60):
            sends.append(asked(link, Send(queue.queue_id), encode_parts([b"%d" % number]))[1])
            if number == 20:
                await cluster.move(partition, other(cluster, before))
        for send in sends:
            assert isinstance((await send).answer, SendResult)
        assert leader(cluster, partition) != before


@async_test
async def test_a_stale_map_is_looked_up_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        deaf = _DeafStore(cluster.store)
        first = await cluster.link()
        queue = await made(first)
        stale = await cluster.link(deaf)
        partition = await only_partition(cluster)
        await cluster.move(partition, other(cluster, leader(cluster, partition)))
        await until(lambda: first.map.partitions[partition].serving == 2)
        assert stale.map.partitions[partition].epoch == 1
        reply = await ask(stale, Send(queue.queue_id), encode_parts([b"a"]))
        assert isinstance(reply.answer, SendResult)
        assert stale.map.partitions[partition].epoch == 2


@async_test
async def test_a_send_waits_for_a_new_primary_and_keeps_its_order(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        link = await cluster.link()
        queue = await made(link, ordering="fifo")
        partition = await only_partition(cluster)
        target = other(cluster, leader(cluster, partition))
        cluster.nodes[target].serves = False
        await cluster.move(partition, target)
        await until(lambda: link.map.partitions[partition].epoch == 2)
        sends = [
            asked(link, Send(queue.queue_id), encode_parts([b"%d" % number], groups=[b"g"]))[1]
            for number in range(20)
        ]
        await asyncio.sleep(0)
        assert not any(send.done() for send in sends)
        cluster.nodes[target].serves = True
        entry, version = await cluster.partition(partition)
        await cluster.store.put(partition_key(partition), encode(entry), version)
        for send in sends:
            assert isinstance((await send).answer, SendResult)
        reply = await ask(link, Receive(queue.queue_id, 20))
        assert isinstance(reply.answer, Delivery)
        bodies = []
        offset = 0
        for batch in reply.answer.batches:
            bodies += Batch(reply.body[offset : offset + batch.size]).bodies()
            offset += batch.size
        assert bodies == [b"%d" % number for number in range(20)]


@async_test
async def test_a_lost_connection_doubles_nothing(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one",)) as cluster:
        link = await cluster.link()
        queue = await made(link)
        server = cluster.nodes["one"].server.broker._server
        sends = []
        for number in range(40):
            sends.append(asked(link, Send(queue.queue_id), encode_parts([b"%d" % number]))[1])
            if number % 10 == 9:
                await asyncio.wait(sends, return_when=asyncio.FIRST_COMPLETED)
                for connection in list(server.connections.values()):
                    connection.abort()
        numbers = [(await send).answer for send in sends]
        assert len({answer.runs[0][0] for answer in numbers if isinstance(answer, SendResult)}) == 40
        described = (await ask(link, DescribeQueue("orders"))).answer
        assert isinstance(described, QueueDescription)
        assert described.statistics.ready == 40


@async_test
async def test_a_receive_that_waits_goes_on_at_the_new_primary(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        link = await cluster.link()
        queue = await made(link)
        partition = await only_partition(cluster)
        old = leader(cluster, partition)
        _, waiting = asked(link, Receive(queue.queue_id, wait_ms=20_000))
        rooms = cluster.nodes[old]._parts.waiting
        await until(lambda: rooms.count(partition) == 1)
        await cluster.move(partition, other(cluster, old))
        await until(lambda: leader(cluster, partition) != old)
        await ask(link, Send(queue.queue_id), encode_parts([b"a"]))
        reply = await waiting
        assert isinstance(reply.answer, Delivery)
        assert Batch(reply.body).bodies() == [b"a"]
        settled = (await ask(link, Delete([Receipt(reply.answer.token, [(1, 1)])]))).answer
        assert isinstance(settled, Settled)
        assert settled.outcomes[0].done == 1


@async_test
async def test_a_node_that_says_nothing_is_not_waited_for_once_another_leads(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        link = await cluster.link()
        queue = await made(link)
        partition = await only_partition(cluster)
        old = cluster.nodes[leader(cluster, partition)]
        old.silent = True
        sends = [asked(link, Send(queue.queue_id), encode_parts([b"%d" % number]))[1] for number in range(5)]
        await until(lambda: old.unanswered == 5)
        await cluster.move(partition, other(cluster, old.name))
        numbers = [answer.runs for send in sends if isinstance(answer := (await send).answer, SendResult)]
        assert numbers == [[(number, 1)] for number in range(1, 6)]


@async_test
async def test_a_refusal_after_a_lost_answer_does_not_say_that_nothing_is_stored(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        link = await cluster.link()
        queue = await made(link, max_messages=1)
        partition = await only_partition(cluster)
        old = cluster.nodes[leader(cluster, partition)]
        old.silent = True
        _, send = asked(link, Send(queue.queue_id), encode_parts([b"one", b"too many"]))
        await until(lambda: old.unanswered == 1)
        await cluster.move(partition, other(cluster, old.name))
        with pytest.raises(PenstockError) as refused:
            await send
        assert refused.value.code is ErrorCode.UNREACHABLE
        with pytest.raises(PenstockError) as refused:
            await ask(link, Send(queue.queue_id), encode_parts([b"one", b"too many"]))
        assert refused.value.code is ErrorCode.QUEUE_FULL


@async_test
async def test_a_queue_made_anew_is_another_one(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        link = await cluster.link()
        stale = await cluster.link(_DeafStore(cluster.store))
        first = await made(link)
        assert (await ask(stale, DescribeQueue("orders"))).answer is not None
        partition = await only_partition(cluster)
        await ask(link, DeleteQueue("orders"))
        await cluster.store.delete(partition_key(partition))  # what the manager does
        await cluster.store.delete(queue_key("orders"))
        for node in cluster.nodes.values():
            node.leads.discard(partition)
        second = await made(link)
        assert second.queue_id > first.queue_id
        for one in (link, stale):
            with pytest.raises(PenstockError) as gone:
                await ask(one, Send(first.queue_id), encode_parts([b"old"]))
            assert gone.value.code is ErrorCode.QUEUE_NOT_FOUND
        seen = (await ask(stale, DescribeQueue("orders"))).answer
        assert isinstance(seen, QueueDescription)
        assert seen.queue_id == second.queue_id
        await ask(link, Send(second.queue_id), encode_parts([b"new"]))
        described = (await ask(link, DescribeQueue("orders"))).answer
        assert isinstance(described, QueueDescription)
        assert described.statistics.ready == 1


@async_test
async def test_patience_has_an_end_that_says_to_try_again(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one", "two")) as cluster:
        link = await cluster.link()
        await made(link)
        partition = await only_partition(cluster)
        entry, version = await cluster.partition(partition)
        nobody = msgspec.structs.replace(entry, primary=None, epoch=2)
        await cluster.store.put(partition_key(partition), encode(nobody), version)
        await until(lambda: link.map.leader(partition) is None)
        described = (await ask(link, DescribeQueue("orders"))).answer  # the queue is found nevertheless
        assert isinstance(described, QueueDescription)
        assert described.damage is not None
        assert "no node serves it" in described.damage
        told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        link.calls.start(
            Ask(Send(partition), encode_parts([b"a"]), partition, patience_ms=100), told.set_result
        )
        late = await told
        assert isinstance(late, PenstockError)
        assert late.retryable
        assert "partition 0 of queue 'orders'" in late.message


@async_test
async def test_a_node_whose_entry_is_gone_is_still_asked(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one",)) as cluster:
        link = await cluster.link()
        queue = await made(link)
        await cluster.store.delete(node_key("one"))
        await until(lambda: not link.map.nodes)
        assert (await ask(link, Send(queue.queue_id), encode_parts([b"a"]))).answer is not None


@async_test
async def test_a_front_end_that_has_not_heard_of_a_queue_does_not_say_that_its_messages_are_gone(
    tmp_path: Path,
) -> None:
    async with small_cluster(tmp_path, ("one",)) as cluster:
        store = _DeafStore(cluster.store)
        first, deaf = await cluster.link(), await cluster.link(store)
        queue = await made(first)
        await ask(first, Send(queue.queue_id), encode_parts([b"a"]))
        delivery = (await ask(first, Receive(queue.queue_id))).answer
        assert isinstance(delivery, Delivery)
        delete = Delete([Receipt(delivery.token, [(1, 1)])])
        store.away = True
        for is_away in (True, False):
            store.away = is_away
            with pytest.raises(PenstockError) as refused:
                await ask(deaf, delete)
            assert refused.value.retryable
        settled = (await ask(deaf, delete)).answer
        assert isinstance(settled, Settled)
        assert (settled.outcomes[0].done, settled.outcomes[0].gone) == (1, 0)


@async_test
async def test_while_the_metadata_is_away_known_queues_go_on_and_nothing_is_made(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ("one",)) as cluster:
        store = _DeafStore(cluster.store)
        first = await cluster.link()
        queue = await made(first)
        link = await cluster.link(store)
        store.away = True
        assert (await ask(link, DescribeQueue("orders"))).answer is not None
        assert (await ask(link, Send(queue.queue_id), encode_parts([b"a"]))).answer is not None
        for request in (CreateQueue("more", QueueSettings()), DescribeQueue("more")):
            with pytest.raises(PenstockError) as refused:
                await ask(link, request)
            assert refused.value.code is ErrorCode.METADATA_UNAVAILABLE
            assert refused.value.retryable


class _DeafStore:
    """A store whose changes are never told of, and which can be away."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.away = False

    async def get(self, key: str) -> Entry | None:
        self._check()
        return await self._store.get(key)

    async def list(self, prefix: str) -> Listing:
        self._check()
        return await self._store.list(prefix)

    async def put(self, key: str, value: bytes, version: int | None = None, lease: int | None = None) -> int:
        self._check()
        return await self._store.put(key, value, version, lease)

    async def watch(self, prefix: str, after: int) -> AsyncGenerator[Change, None]:
        await asyncio.Event().wait()
        yield Change("", None, 0)

    def _check(self) -> None:
        if self.away:
            raise StoreUnavailableError("it is away")

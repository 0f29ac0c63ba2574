"""Queues of one partition through the link: every request reaches the node that leads, and looks as on one server."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cluster.layout.entries import node_key
from penstock.model.batch import Batch, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.wire.messages import (
    AlterQueue,
    CreateQueue,
    Delete,
    DeleteQueue,
    Delivery,
    DescribeQueue,
    ListQueues,
    QueueDescription,
    QueueList,
    ReadClock,
    Receipt,
    Receive,
    Send,
    SendResult,
    Settled,
)
from tests.runtime.cluster.link.harness import small_cluster
from tests.runtime.engine.linked_node import ask, asked
from tests.runtime.harness import async_test, until


@async_test
async def test_a_message_goes_in_and_out(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        made = (await ask(link, CreateQueue("orders", QueueSettings()))).answer
        assert isinstance(made, QueueDescription)
        assert made.name == "orders"
        assert made.damage is None
        sent = (await ask(link, Send(made.queue_id), encode_parts([b"a", b"b"]))).answer
        assert isinstance(sent, SendResult)
        assert sent.runs == [(1, 2)]
        reply = await ask(link, Receive(made.queue_id, 10))
        given = reply.answer
        assert isinstance(given, Delivery)
        assert Batch(reply.body).bodies() == [b"a", b"b"]
        assert int.from_bytes(given.token[:8], "little") == made.queue_id
        settled = (await ask(link, Delete([Receipt(given.token, [(1, 2)])]))).answer
        assert isinstance(settled, Settled)
        assert [o.done for o in settled.outcomes] == [2]
        described = (await ask(link, DescribeQueue("orders"))).answer
        assert isinstance(described, QueueDescription)
        assert described.queue_id == made.queue_id
        assert described.statistics.ready == described.statistics.leased == 0
        assert described.statistics.deleted_total == 2


@async_test
async def test_queues_are_spread_over_the_nodes_and_listed_together(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        for number in range(6):
            await ask(link, CreateQueue(f"queue-{number}", QueueSettings()))
        assert [len(node.leads) for node in cluster.nodes.values()] == [2, 2, 2]
        listed = (await ask(link, ListQueues(limit=4))).answer
        assert isinstance(listed, QueueList)
        assert listed.more
        assert [queue.name for queue in listed.queues] == [f"queue-{number}" for number in range(4)]
        rest = (await ask(link, ListQueues(after="queue-3"))).answer
        assert isinstance(rest, QueueList)
        assert not rest.more
        assert [queue.name for queue in rest.queues] == ["queue-4", "queue-5"]
        assert (await ask(link, ReadClock())).answer is not None


@async_test
async def test_what_one_front_end_makes_another_knows_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        first, second = await cluster.link(), await cluster.link()
        made = (await ask(first, CreateQueue("orders", QueueSettings()))).answer
        seen = (await ask(second, DescribeQueue("orders"))).answer
        assert isinstance(made, QueueDescription)
        assert isinstance(seen, QueueDescription)
        assert made.queue_id == seen.queue_id
        same = (await ask(second, CreateQueue("orders", QueueSettings()))).answer
        assert isinstance(same, QueueDescription)
        assert same.queue_id == made.queue_id
        with pytest.raises(PenstockError) as other:
            await ask(second, CreateQueue("orders", QueueSettings(delay_ms=5)))
        assert other.value.code is ErrorCode.QUEUE_EXISTS


@async_test
async def test_the_same_queue_made_by_many_at_once_is_one_queue(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        links = [await cluster.link() for _ in range(4)]
        waiting = [asked(link, CreateQueue("orders", QueueSettings(partitions=3)))[1] for link in links]
        ids = {
            answer.queue_id
            for future in waiting
            if isinstance(answer := (await future).answer, QueueDescription)
        }
        assert len(ids) == 1


@async_test
async def test_many_queues_are_made_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        waiting = [asked(link, CreateQueue(f"queue-{n}", QueueSettings()))[1] for n in range(150)]
        answers = [(await future).answer for future in waiting]
        ids = [answer.queue_id for answer in answers if isinstance(answer, QueueDescription)]
        partitions = [partition for node in cluster.nodes.values() for partition in node.leads]
        assert len({*ids, *partitions}) == 300


@async_test
async def test_a_setting_is_changed_in_the_layout_and_on_the_node(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        await ask(link, CreateQueue("orders", QueueSettings()))
        altered = (await ask(link, AlterQueue("orders", {"max_message_bytes": 10}))).answer
        assert isinstance(altered, QueueDescription)
        assert altered.settings.max_message_bytes == 10
        with pytest.raises(PenstockError) as refused:
            await ask(link, Send(altered.queue_id), encode_parts([b"x" * 11]))
        assert refused.value.code is ErrorCode.MESSAGE_TOO_LARGE


@async_test
async def test_a_deleted_queue_is_gone_for_everybody(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        made = (await ask(link, CreateQueue("orders", QueueSettings()))).answer
        assert isinstance(made, QueueDescription)
        await ask(link, DeleteQueue("orders"))
        for request, body in (
            (DescribeQueue("orders"), b""),
            (DeleteQueue("orders"), b""),
            (Send(made.queue_id), encode_parts([b"a"])),
            (Receive(made.queue_id), b""),
        ):
            with pytest.raises(PenstockError) as gone:
                await ask(link, request, body)
            assert gone.value.code is ErrorCode.QUEUE_NOT_FOUND


@async_test
async def test_a_dead_letter_queue_is_made_with_its_queue(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        await ask(link, CreateQueue("orders", QueueSettings(dead_letter_queue="dead", max_receives=3)))
        dead = (await ask(link, DescribeQueue("dead"))).answer
        assert isinstance(dead, QueueDescription)
        assert dead.damage is None


@async_test
async def test_more_replicas_than_nodes_are_refused(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        with pytest.raises(PenstockError) as refused:
            await ask(link, CreateQueue("orders", QueueSettings(replicas=4)))
        assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert "4 replicas" in refused.value.message


@async_test
async def test_while_a_node_is_away_queues_are_made_on_the_others(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        await cluster.store.delete(node_key("two"))
        await until(lambda: "two" not in link.map.nodes)
        made = (await ask(link, CreateQueue("orders", QueueSettings(replicas=3)))).answer
        assert isinstance(made, QueueDescription)
        assert made.settings.replicas == 3
        (entry,) = link.map.partitions.values()
        assert sorted(entry.replicas) == ["one", "three"]
        await cluster.store.delete(node_key("one"))
        await until(lambda: "one" not in link.map.nodes)
        with pytest.raises(PenstockError) as refused:
            await ask(link, CreateQueue("more", QueueSettings(replicas=3)))
        assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        assert refused.value.retryable


@async_test
async def test_a_receive_that_waits_is_cancelled(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        made = (await ask(link, CreateQueue("orders", QueueSettings()))).answer
        assert isinstance(made, QueueDescription)
        ticket, waiting = asked(link, Receive(made.queue_id, wait_ms=60_000))
        link.cancel(ticket)
        answer = (await waiting).answer
        assert isinstance(answer, Delivery)
        assert not answer.batches

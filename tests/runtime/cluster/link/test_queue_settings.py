"""Settings of queues of a cluster: queues that are made along, and replicas that are asked for later."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from penstock.cluster.layout.entries import decode_queue, queue_key
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.wire.messages import AlterQueue, CreateQueue, DescribeQueue, QueueDescription
from tests.runtime.cluster.link.harness import SmallCluster, small_cluster
from tests.runtime.engine.linked_node import ask
from tests.runtime.harness import async_test


async def partitions_of(cluster: SmallCluster, name: str) -> list[int]:
    entry = await cluster.store.get(queue_key(name))
    assert entry is not None
    return decode_queue(entry.value).partitions


@async_test
async def test_a_sorted_queue_is_made_with_the_queue_for_its_late_messages(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        settings = msgspec.convert({"ordering": "causal", "partitions": 2}, QueueSettings)
        await ask(link, CreateQueue("events", settings))
        late = (await ask(link, DescribeQueue("events.late"))).answer
        assert isinstance(late, QueueDescription)
        assert late.settings.ordering == "best-effort"
        await ask(link, CreateQueue("events", settings))  # again, which changes nothing
        await ask(link, CreateQueue("plain", QueueSettings(ordering="fifo")))
        assert link.map.ready("plain.late") is None


@async_test
async def test_more_replicas_are_asked_for_and_sends_go_on_meanwhile(tmp_path: Path) -> None:
    async with small_cluster(tmp_path) as cluster:
        link = await cluster.link()
        await ask(link, CreateQueue("orders", QueueSettings(replicas=1, min_in_sync=1)))
        altered = (await ask(link, AlterQueue("orders", {"replicas": 3, "min_in_sync": None}))).answer
        assert isinstance(altered, QueueDescription)
        assert altered.settings.replicas == 3
        (partition,) = await partitions_of(cluster, "orders")
        entry, _ = await cluster.partition(partition)
        assert (entry.settings.replicas, entry.settings.least_in_sync) == (1, 1), "until there are more"
        with pytest.raises(PenstockError) as refused:
            await ask(link, AlterQueue("orders", {"replicas": 4}))
        assert refused.value.code is ErrorCode.NOT_ENOUGH_REPLICAS
        with pytest.raises(PenstockError, match="partitions"):
            await ask(link, AlterQueue("orders", {"partitions": 2}))

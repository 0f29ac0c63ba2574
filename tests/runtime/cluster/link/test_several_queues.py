"""Receives from several queues of a cluster, of which one fails for good."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.runtime.cluster.link.cluster_link import ClusterLink
from penstock.wire.messages import (
    CreateQueue,
    Delivery,
    QueueDescription,
    Receive,
    ReceiveAny,
    Send,
    WeightedQueue,
)
from tests.runtime.cluster.link.harness import small_cluster
from tests.runtime.engine.linked_node import ask
from tests.runtime.harness import async_test


async def made(link: ClusterLink, name: str, settings: QueueSettings) -> int:
    described = (await ask(link, CreateQueue(name, settings))).answer
    assert isinstance(described, QueueDescription)
    await ask(link, Send(described.queue_id), encode_parts([b"a", b"b"]))
    return described.queue_id


@async_test
async def test_what_the_others_gave_can_be_received_at_once(tmp_path: Path) -> None:
    async with small_cluster(tmp_path, ["one"]) as cluster:
        link = await cluster.link()
        orders = await made(link, "orders", QueueSettings(visibility_timeout_ms=3_600_000))
        log = await made(link, "log", QueueSettings(consumption="log"))
        with pytest.raises(PenstockError) as refused:
            await ask(link, ReceiveAny([WeightedQueue(orders, 1), WeightedQueue(log, 1)], 4))
        assert refused.value.code is ErrorCode.UNSUPPORTED
        given = (await ask(link, Receive(orders, 10))).answer
        assert isinstance(given, Delivery)
        (batch,) = given.batches
        assert (batch.count, batch.receive_counts) == (2, 1), "nobody has received them"

"""The description of a queue, made of what its partitions say."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.backend.admin.catalogue import Catalogue
from penstock.cluster.layout.entries import CapacityEntry, QueueEntry, capacity_key, encode, queue_key
from penstock.cluster.layout.partition_settings import settings_of_partition
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import QueueCreated
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.describing import describe
from penstock.routing.descriptions import NOTHING_KNOWN, described, summed
from penstock.steps.step import AskAll
from penstock.wire.messages import DescribeQueue, QueueDescription, QueueStatistics

counted = [
    field
    for field in QueueStatistics.__struct_fields__
    if field
    not in ("next_sequence", "oldest_sent_ms", "waiting_receivers", "watermark_us", "log_begin", "log_groups")
]
statistics = some.builds(
    QueueStatistics,
    **{
        field: some.integers(0, 1 << 40)
        for field in QueueStatistics.__struct_fields__
        if field != "oldest_sent_ms"
    },
    oldest_sent_ms=some.none() | some.integers(1, 1 << 40),
)


@given(some.lists(statistics, min_size=1, max_size=8))
def test_counts_add_up_and_the_oldest_message_is_that_of_all(parts: list[QueueStatistics]) -> None:
    whole = summed(parts)
    for field in counted:
        assert getattr(whole, field) == sum(getattr(part, field) for part in parts)
    times = [part.oldest_sent_ms for part in parts if part.oldest_sent_ms is not None]
    assert whole.oldest_sent_ms == min(times, default=None)
    assert whole.waiting_receivers == max(part.waiting_receivers for part in parts)


def test_a_partition_that_does_not_answer_leaves_a_sentence_and_no_count() -> None:
    queue = QueueEntry(name="q", queue_id=9, settings=QueueSettings(), created_ms=5, partitions=[1, 2])
    one = QueueDescription(1, "q", queue.settings, 1, msgspec.structs.replace(NOTHING_KNOWN, ready=3))
    whole = described(queue, [one, "it does not answer"])
    assert (whole.queue_id, whole.name, whole.created_ms, whole.statistics.ready) == (9, "q", 5, 3)
    assert whole.damage == "partition 1: it does not answer"
    assert described(queue, [one, one]).damage is None


@given(some.integers(1, 64), some.integers(1, 10**9))
def test_partitions_together_may_hold_what_the_queue_may(partitions: int, limit: int) -> None:
    settings = QueueSettings(partitions=partitions, max_messages=limit)
    share = settings_of_partition(settings).max_messages
    assert share is not None
    assert limit <= share * partitions < limit + partitions


def forecast_of(cluster: ClusterMap) -> str | None:
    """What is said of the queue `orders`, whose only partition does not answer."""
    context = RoutingContext(cluster, producer=1, now_ms=lambda: 0, load=lambda partition: 0.0)
    steps = describe(context, DescribeQueue("orders"))
    assert isinstance(next(steps), AskAll)
    with pytest.raises(StopIteration) as end:
        steps.send([PenstockError(ErrorCode.UNREACHABLE, "away")])
    answer = end.value.value.answer
    assert isinstance(answer, QueueDescription)
    return answer.forecast


def test_a_description_says_what_the_pipeline_warns_of() -> None:
    cluster = ClusterMap()
    queue = QueueEntry(name="orders", queue_id=1, settings=QueueSettings(), created_ms=0, partitions=[2])
    cluster.apply(queue_key("orders"), encode(queue))
    assert forecast_of(cluster) is None
    entry = CapacityEntry(
        queue="orders",
        measured_ms=0,
        messages=1,
        bytes=1,
        messages_per_hour=0.0,
        bytes_per_hour=0.0,
        limit="max-bytes",
        fill=0.85,
        full_at_ms=0,
        partitions=1,
        recommended_partitions=1,
    )
    cluster.apply(capacity_key("orders"), encode(entry))
    assert forecast_of(cluster) == "the queue orders is at 85% of its max-bytes"
    cluster.apply(capacity_key("orders"), b"no entry")
    assert forecast_of(cluster) is None


def test_a_queue_is_described_by_its_own_partition_where_the_node_has_a_later_one_of_the_name() -> None:
    """Two were made at the same moment. The other one was given up, and its partition is still there."""
    queue = QueueEntry(name="orders", queue_id=1, settings=QueueSettings(), created_ms=5, partitions=[2])
    node = Catalogue()
    for partition in (2, 8):
        node.apply(QueueCreated(partition, "orders", queue.settings, 5))
    cluster_map = ClusterMap()
    cluster_map.apply(queue_key("orders"), encode(queue))
    context = RoutingContext(cluster_map, producer=1, now_ms=lambda: 0, load=lambda _: 0.0)
    step = next(describe(context, DescribeQueue("orders")))
    assert isinstance(step, AskAll)
    (ask,) = step.asks
    assert isinstance(ask.request, DescribeQueue)
    assert node.find(ask.request.name, ask.request.queue_id).partition_id == ask.partition == 2


def test_a_queue_is_described_only_where_it_has_the_id_that_is_asked_for() -> None:
    queue = QueueEntry(name="orders", queue_id=1, settings=QueueSettings(), created_ms=5, partitions=[2])
    cluster_map = ClusterMap()
    cluster_map.apply(queue_key("orders"), encode(queue))
    context = RoutingContext(cluster_map, producer=1, now_ms=lambda: 0, load=lambda _: 0.0)
    assert isinstance(next(describe(context, DescribeQueue("orders", 1))), AskAll)
    with pytest.raises(PenstockError) as refused:
        next(describe(context, DescribeQueue("orders", 7)))
    assert refused.value.code is ErrorCode.QUEUE_NOT_FOUND

"""The description of a queue, made of what its partitions say."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from penstock.cluster.layout import QueueEntry
from penstock.cluster.shares import share_of
from penstock.model.settings import QueueSettings
from penstock.routing.descriptions import NOTHING_KNOWN, described, summed
from penstock.wire.messages import QueueDescription, QueueStatistics

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
    share = share_of(settings).max_messages
    assert share is not None
    assert limit <= share * partitions < limit + partitions

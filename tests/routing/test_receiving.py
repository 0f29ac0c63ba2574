"""Receives from queues of several partitions."""

from __future__ import annotations

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.receiving import NOTHING, receive
from penstock.steps.step import Ask, AskFirst, Reply
from penstock.wire.messages import Receive
from tests.routing.test_memory import context_of, put


@pytest.mark.parametrize("served", [0, 1])
def test_an_attempt_is_not_answered_by_another_partition_than_the_one_that_served_it(served: int) -> None:
    """Asked again, a receive gets the messages that it got before or an error, never others."""
    cluster = ClusterMap()
    put(cluster, 10)
    context = context_of(cluster)
    queue = context.queue(10)
    context.spread.received(queue, served, b"attempt", something=True)
    context.spread.received(queue, 1 - served, b"", something=True)
    steps = receive(context, Receive(10, 5, wait_ms=0, attempt=b"attempt"))
    asked = next(steps)
    assert isinstance(asked, Ask)
    assert asked.partition == 11 + served
    with pytest.raises(PenstockError, match="busy"):
        steps.throw(PenstockError(ErrorCode.OVERLOADED, "the journal is busy"))


def test_a_first_attempt_goes_on_to_the_next_partition() -> None:
    cluster = ClusterMap()
    put(cluster, 10)
    context = context_of(cluster)
    queue = context.queue(10)
    for ordinal in (0, 1):
        context.spread.received(queue, ordinal, b"", something=True)
    steps = receive(context, Receive(10, 5, wait_ms=0, attempt=b"attempt"))
    first = next(steps)
    second = steps.throw(PenstockError(ErrorCode.OVERLOADED, "the journal is busy"))
    assert isinstance(first, Ask)
    assert isinstance(second, Ask)
    assert {first.partition, second.partition} == {11, 12}


def test_where_no_partition_could_be_asked_nobody_is_told_that_there_is_nothing() -> None:
    """They may be closed because nobody uses them: whoever asks waits until they are open again, or gone."""
    cluster = ClusterMap()
    put(cluster, 10)
    context = context_of(cluster)
    queue = context.queue(10)
    for ordinal in (0, 1):
        context.spread.received(queue, ordinal, b"", something=True)
    steps = receive(context, Receive(10, 5, wait_ms=0))
    closed = PenstockError(ErrorCode.UNREACHABLE, "it is closed")
    next(steps)
    steps.throw(closed)
    together = steps.throw(closed)
    assert isinstance(together, AskFirst)
    assert {one.partition for one in together.asks} == {11, 12}
    assert all(one.patience_ms > 0 for one in together.asks)
    with pytest.raises(PenstockError, match="deleted"):
        steps.throw(PenstockError(ErrorCode.QUEUE_NOT_FOUND, "the queue was deleted"))


def test_one_partition_that_has_nothing_is_enough_for_a_receive_that_does_not_wait() -> None:
    cluster = ClusterMap()
    put(cluster, 10)
    context = context_of(cluster)
    queue = context.queue(10)
    for ordinal in (0, 1):
        context.spread.received(queue, ordinal, b"", something=True)
    steps = receive(context, Receive(10, 5, wait_ms=0))
    next(steps)
    steps.throw(PenstockError(ErrorCode.UNREACHABLE, "it is closed"))
    with pytest.raises(StopIteration) as end:
        steps.send(Reply(NOTHING))
    assert end.value.value == Reply(NOTHING)

"""Receives from several queues: what one of them gave is not kept from everybody because another one failed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.priority_receiving import receive_any
from penstock.steps.step import Ask, AskAll, Outcome, Reply, Step, Steps
from penstock.wire.messages import (
    DeliveredBatch,
    Delivery,
    GroupDelivery,
    Receipt,
    Receive,
    ReceiveAny,
    Release,
    Settled,
    WeightedQueue,
)
from tests.routing.test_memory import context_of, put

GONE = PenstockError(ErrorCode.QUEUE_NOT_FOUND, "the queue was deleted")
BUSY = PenstockError(ErrorCode.OVERLOADED, "the journal is busy")


def given(partition: int, count: int) -> Reply:
    """What a partition gives: messages from its own number on."""
    return Reply(Delivery(token(partition), 5, [DeliveredBatch(partition, count, 0, 10, 1, 0)]), b"x" * 10)


def token(partition: int) -> bytes:
    return partition.to_bytes(8, "little") + bytes(32)


def receiving(max_bytes: int | None = None) -> Steps[Reply]:
    """A receive from queues 10 and 20, of two partitions each."""
    cluster = ClusterMap()
    for number in (10, 20):
        put(cluster, number)
    queues = [WeightedQueue(10, 1), WeightedQueue(20, 1)]
    return receive_any(context_of(cluster), ReceiveAny(queues, 8, max_bytes=max_bytes))


def asks_of(step: Step) -> Sequence[Ask]:
    assert isinstance(step, AskAll)
    return step.asks


def answers(asks: Sequence[Ask], **special: Outcome) -> list[Outcome]:
    """Each partition gives all it was asked for, except those that are named."""
    found: list[Outcome] = []
    for ask in asks:
        assert isinstance(ask.request, Receive)
        usual = given(ask.partition, ask.request.max_messages)
        found.append(special.get(f"of_{ask.partition}", usual))
    return found


def finished(steps: Steps[Reply]) -> Reply:
    """The reply where one partition is busy."""
    step = next(steps)
    while True:
        try:
            step = steps.send(answers(asks_of(step), of_21=BUSY))
        except StopIteration as end:
            reply: Reply = end.value
            return reply


def test_what_the_others_gave_is_ready_again_before_a_final_error_is_told() -> None:
    steps = receiving()
    asks = asks_of(next(steps))
    assert sorted(ask.partition for ask in asks) == [11, 12, 21, 22]
    backs = asks_of(steps.send(answers(asks, of_21=GONE, of_12=BUSY)))
    assert [(back.partition, back.request) for back in sorted(backs, key=lambda back: back.partition)] == [
        (number, Release([Receipt(token(number), [(number, 2)])], unreceived=True)) for number in (11, 22)
    ]
    with pytest.raises(PenstockError, match="deleted"):
        steps.send([Reply(Settled([])), BUSY])


def test_what_came_in_an_earlier_round_is_given_back_as_well() -> None:
    steps = receiving()
    asks = asks_of(next(steps))
    again = asks_of(steps.send(answers(asks, of_11=BUSY)))
    assert {ask.partition for ask in again} <= {12, 21, 22}
    backs = asks_of(steps.send([GONE, *answers(again[1:])]))
    assert len(backs) == 3 + len(again) - 1
    with pytest.raises(PenstockError, match="deleted"):
        steps.send([Reply(Settled([]))] * len(backs))


def test_an_error_that_may_pass_keeps_nothing_from_the_receiver() -> None:
    answer = finished(receiving()).answer
    assert isinstance(answer, GroupDelivery)
    assert {delivery.queue_id for delivery in answer.deliveries} == {10, 20}


def test_what_earlier_rounds_gave_is_taken_off_the_bytes_once() -> None:
    steps = receiving(max_bytes=100)
    asks = asks_of(next(steps))
    assert [bytes_asked(ask) for ask in asks] == [25] * 4
    asks = asks_of(steps.send(answers(asks, of_21=BUSY)))
    assert [bytes_asked(ask) for ask in asks] == [70 // len(asks)] * len(asks)
    given_now = len(asks) - 1
    asks = asks_of(steps.send(answers(asks, **{f"of_{asks[0].partition}": BUSY})))
    assert [bytes_asked(ask) for ask in asks] == [(70 - 10 * given_now) // len(asks)] * len(asks)


def bytes_asked(ask: Ask) -> int | None:
    assert isinstance(ask.request, Receive)
    return ask.request.max_bytes

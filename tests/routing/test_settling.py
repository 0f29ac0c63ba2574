"""Settling what was received through another front end: gone is only what the store says is gone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.cluster.layout.entries import (
    PartitionEntry,
    QueueEntry,
    encode,
    first_partition,
    partition_key,
    queue_key,
)
from penstock.model.document import DOCUMENTS
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.queue.decisions.receipts import ReceiptSeal
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.numbers import client_token
from penstock.routing.router import route
from penstock.steps.step import AskAll, Look, Reply, Stored
from penstock.wire.messages import Delete, Receipt, ReceiptOutcome, Settled

QUEUE_ID = 77
QUEUE = QueueEntry(
    name="orders",
    queue_id=QUEUE_ID,
    settings=QueueSettings(),
    created_ms=5,
    partitions=[first_partition(QUEUE_ID)],
)
PARTITION = PartitionEntry(
    partition=first_partition(QUEUE_ID),
    queue_id=QUEUE_ID,
    queue="orders",
    ordinal=0,
    settings=QueueSettings(),
    epoch=1,
    serving=1,
    primary="a",
    replicas=["a"],
    in_sync=["a"],
)
TOKEN = client_token(QUEUE_ID, ReceiptSeal(b"s" * 32).token(first_partition(QUEUE_ID), 1))


def stored(*entries: QueueEntry | PartitionEntry | tuple[str, bytes]) -> dict[str, bytes]:
    """What a store with these entries has."""
    found: dict[str, bytes] = {}
    for entry in entries:
        if isinstance(entry, QueueEntry):
            found[queue_key(entry.name)] = encode(entry)
        elif isinstance(entry, PartitionEntry):
            found[partition_key(entry.partition)] = encode(entry)
        else:
            found[entry[0]] = entry[1]
    return found


class FrontEnd:
    """A front end that has heard of nothing yet, and the store, which may be away."""

    def __init__(self, *entries: QueueEntry | PartitionEntry | tuple[str, bytes]) -> None:
        self.map = ClusterMap()
        self.context = RoutingContext(self.map, producer=1, now_ms=lambda: 0, load=lambda _: 0.0)
        self.store = stored(*entries)
        self.away = False
        self.looked: list[str] = []
        self.asked = 0

    def delete(self) -> ReceiptOutcome:
        """Deletes message 1; a node that is asked says that it did."""
        steps = route(self.context, Delete([Receipt(TOKEN, [(1, 1)])]), b"")
        proceed: Any = steps.send
        outcome: Any = None
        while True:
            try:
                step = proceed(outcome)
            except StopIteration as end:
                answer = end.value.answer
                assert isinstance(answer, Settled)
                return answer.outcomes[0]
            proceed = steps.send
            match step:
                case Look(key) if self.away:
                    proceed = steps.throw
                    outcome = PenstockError(ErrorCode.METADATA_UNAVAILABLE, "it is away")
                case Look(key):
                    self.looked.append(key)
                    value = self.store.get(key)
                    self.map.apply(key, value)
                    outcome = Stored(value, 1 if value is not None else 0)
                case _:
                    assert isinstance(step, AskAll)
                    asks = step.asks
                    self.asked += len(asks)
                    outcome = [Reply(Settled([ReceiptOutcome(1, 0, [])])) for _ in asks]


def newer(entry: QueueEntry | PartitionEntry) -> bytes:
    """As a version writes it that this one cannot serve."""
    return msgspec.json.encode({**msgspec.to_builtins(entry), "needs": DOCUMENTS + 1})


def test_a_queue_that_was_made_through_another_front_end_is_not_gone() -> None:
    front_end = FrontEnd(QUEUE, PARTITION)
    with pytest.raises(PenstockError) as refused:
        front_end.delete()
    assert refused.value.retryable  # what may be done to it could not be asked before it was known
    assert front_end.asked == 0
    assert front_end.delete() == ReceiptOutcome(1, 0, [])


def test_a_store_that_cannot_be_asked_says_nothing_about_messages() -> None:
    front_end = FrontEnd(QUEUE, PARTITION)
    front_end.away = True
    for _ in range(2):
        with pytest.raises(PenstockError) as refused:
            front_end.delete()
        assert refused.value.retryable


def test_what_the_store_does_not_have_is_gone_and_not_looked_for_twice() -> None:
    front_end = FrontEnd()
    for _ in range(3):
        assert front_end.delete() == ReceiptOutcome(0, 1, [])
    assert len(front_end.looked) == 1


@pytest.mark.parametrize(
    "now",
    [
        msgspec.structs.replace(QUEUE, queue_id=99, partitions=[100]),
        msgspec.structs.replace(QUEUE, state="deleting"),
    ],
)
def test_messages_of_a_queue_that_was_deleted_or_made_again_are_gone(now: QueueEntry) -> None:
    assert FrontEnd(now, PARTITION).delete() == ReceiptOutcome(0, 1, [])


def test_a_queue_that_only_newer_front_ends_serve_is_not_gone() -> None:
    for front_end in (
        FrontEnd((queue_key("orders"), newer(QUEUE)), PARTITION),
        FrontEnd(QUEUE, (partition_key(PARTITION.partition), newer(PARTITION))),
    ):
        with pytest.raises(PenstockError) as refused:
            front_end.delete()
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_a_queue_that_became_too_new_for_a_front_end_is_not_gone() -> None:
    front_end = FrontEnd((queue_key("orders"), newer(QUEUE)), PARTITION)
    front_end.map.apply(queue_key("orders"), encode(QUEUE))
    front_end.map.apply(queue_key("orders"), newer(QUEUE))
    with pytest.raises(PenstockError) as refused:
        front_end.delete()
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION


def test_an_entry_that_cannot_be_read_says_nothing_about_messages() -> None:
    front_end = FrontEnd((partition_key(PARTITION.partition), b"{"))
    with pytest.raises(PenstockError) as refused:
        front_end.delete()
    assert refused.value.retryable


@pytest.mark.parametrize(
    "runs", [[(1, 2**63)], [(-1, 1)], [(1, 0)], [(1, 2**64 - 1), (1, 2**64 - 1)], [(1, 10_001)]]
)
@pytest.mark.parametrize("is_there", [True, False])
def test_what_no_receipt_can_name_is_refused_also_of_a_queue_that_is_gone(
    runs: list[tuple[int, int]], is_there: bool
) -> None:
    """The counts are answered and recorded: a sum that fits nowhere would stop the record of all requests."""
    front_end = FrontEnd(QUEUE, PARTITION) if is_there else FrontEnd()
    steps = route(front_end.context, Delete([Receipt(TOKEN, runs)]), b"")
    with pytest.raises(PenstockError) as caught:
        steps.send(None)
    assert caught.value.code is ErrorCode.BAD_REQUEST

"""What cannot be deleted: the queue that late messages of another one go to, and a queue that was not meant."""

from __future__ import annotations

import pytest

from penstock.cluster.layout.entries import QueueEntry, encode, queue_key
from penstock.model.errors import ErrorCode, PenstockError, VersionConflictError
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.router import route
from penstock.steps.step import Look, Put, Stored
from penstock.wire.messages import DeleteQueue


def entry(name: str, settings: QueueSettings, queue_id: int = 7) -> Stored:
    queue = QueueEntry(
        name=name, queue_id=queue_id, settings=settings, created_ms=1, partitions=[queue_id + 1]
    )
    return Stored(encode(queue), 3)


@pytest.mark.parametrize(
    ("owner", "needed"),
    [
        (entry("readings", QueueSettings(ordering="causal")), True),
        (entry("readings", QueueSettings()), False),
        (Stored(None, 0), False),
    ],
)
def test_the_queue_of_late_messages_goes_after_the_queue_they_are_late_for(
    owner: Stored, needed: bool
) -> None:
    context = RoutingContext(ClusterMap(), producer=1, now_ms=lambda: 0, load=lambda _: 0.0)
    steps = route(context, DeleteQueue("readings.late"), b"")
    assert next(steps) == Look(queue_key("readings"))
    if needed:
        with pytest.raises(PenstockError, match="delete 'readings' first") as caught:
            steps.send(owner)
        assert caught.value.code is ErrorCode.UNSUPPORTED
    else:
        assert steps.send(owner) == Look(queue_key("readings.late"))
        assert isinstance(steps.send(entry("readings.late", QueueSettings())), Put)


def test_only_the_queue_that_is_meant_is_deleted() -> None:
    context = RoutingContext(ClusterMap(), producer=1, now_ms=lambda: 0, load=lambda _: 0.0)
    steps = route(context, DeleteQueue("orders", 7), b"")
    assert next(steps) == Look(queue_key("orders"))
    with pytest.raises(PenstockError) as caught:
        steps.send(entry("orders", QueueSettings(), 9))
    assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND


def test_what_was_made_while_the_deletion_was_tried_stays() -> None:
    context = RoutingContext(ClusterMap(), producer=1, now_ms=lambda: 0, load=lambda _: 0.0)
    steps = route(context, DeleteQueue("orders"), b"")
    assert next(steps) == Look(queue_key("orders"))
    assert isinstance(steps.send(entry("orders", QueueSettings())), Put)
    assert steps.throw(VersionConflictError("orders has changed")) == Look(queue_key("orders"))
    with pytest.raises(PenstockError) as caught:
        steps.send(entry("orders", QueueSettings(), 9))
    assert caught.value.code is ErrorCode.QUEUE_NOT_FOUND

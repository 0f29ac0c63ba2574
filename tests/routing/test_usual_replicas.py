"""Queues whose maker knows nothing of replicas have as many as is usual in the cluster; who says something is heard."""

from __future__ import annotations

import pytest

from penstock.model.errors import PenstockError
from penstock.model.settings import QueueSettings
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.context import RoutingContext
from penstock.routing.creating import create, replicated
from penstock.wire.messages import CreateQueue

CONTEXT = RoutingContext(ClusterMap(), producer=1, now_ms=lambda: 0, load=lambda _: 0.0, replicas=3)


@pytest.mark.parametrize(
    ("asked", "replicas"),
    [
        (QueueSettings(), 3),
        (QueueSettings(replicas=2), 2),
        (QueueSettings(min_in_sync=2), 3),
        (QueueSettings(replicas=5, min_in_sync=3), 5),
        (QueueSettings(replicas=1, min_in_sync=1), 1),
    ],
)
def test_the_number_of_replicas(asked: QueueSettings, replicas: int) -> None:
    assert replicated(CONTEXT, asked).replicas == replicas


def test_asking_again_asks_for_the_same() -> None:
    assert replicated(CONTEXT, replicated(CONTEXT, QueueSettings())) == replicated(CONTEXT, QueueSettings())


def test_more_in_sync_than_there_are_replicas_is_refused() -> None:
    for asked in (QueueSettings(min_in_sync=4), QueueSettings(replicas=2, min_in_sync=3)):
        with pytest.raises(PenstockError, match="more than there are replicas"):
            next(create(CONTEXT, CreateQueue("orders", asked)))

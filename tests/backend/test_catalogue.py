"""Which queue has a name, on nodes that hold partitions of several queues that were called the same."""

from __future__ import annotations

from itertools import permutations

import pytest

from penstock.backend.catalogue import Catalogue
from penstock.model.records import QueueCreated, QueueDeleted, QueueRemoved
from penstock.model.settings import QueueSettings


def _created(*queue_ids: int) -> Catalogue:
    catalogue = Catalogue()
    for queue_id in queue_ids:
        catalogue.apply(QueueCreated(queue_id, "orders", QueueSettings(), 0))
    return catalogue


def _named(catalogue: Catalogue) -> int | None:
    partition = catalogue.named("orders")
    return partition.queue_id if partition is not None else None


@pytest.mark.parametrize("order", list(permutations((68, 72, 74))))
def test_the_newest_queue_has_the_name_in_whatever_order_its_partitions_come(order: tuple[int, ...]) -> None:
    # A queue whose making was given up leaves partitions that are placed on other nodes until they are cleared away.
    catalogue = _created(*order)
    assert _named(catalogue) == 74
    again = Catalogue()
    again.load(catalogue.dump(7))
    assert _named(again) == 74


@pytest.mark.parametrize("order", list(permutations((68, 72, 74))))
def test_deleting_one_leaves_the_name_to_the_newest_of_the_others(order: tuple[int, ...]) -> None:
    catalogue = _created(74, 68, 72)
    left = {68, 72, 74}
    for queue_id in order:
        catalogue.apply(QueueDeleted(queue_id, 0))
        left.discard(queue_id)
        assert _named(catalogue) == max(left, default=None)
        catalogue.apply(QueueRemoved(queue_id, 0))
        assert _named(catalogue) == max(left, default=None)


def test_a_partition_that_is_held_again_does_not_stand_in_its_own_way() -> None:
    catalogue = _created(68, 68)
    catalogue.apply(QueueDeleted(68, 0))
    assert _named(catalogue) is None

"""Names of queues where a node has something of several that are called the same."""

from __future__ import annotations

import itertools

import pytest

from penstock.backend.admin.catalogue import Catalogue
from penstock.model.errors import PenstockError
from penstock.model.records import QueueCreated, QueueDeleted, QueueRemoved
from penstock.model.settings import QueueSettings

SETTINGS = QueueSettings()


@pytest.mark.parametrize("made", list(itertools.permutations((2, 4, 7))))
@pytest.mark.parametrize("gone", list(itertools.permutations((2, 4, 7))))
def test_a_name_means_the_latest_queue_of_it_that_is_there(
    made: tuple[int, ...], gone: tuple[int, ...]
) -> None:
    catalogue = Catalogue()
    there: set[int] = set()
    for number in made:
        catalogue.apply(QueueCreated(number, "orders", SETTINGS, 0))
        there.add(number)
        assert catalogue.find("orders").partition_id == max(there)
    again = Catalogue()
    again.load(b"".join(catalogue.capture(1)))
    for number in gone:
        there.remove(number)
        for one in (catalogue, again):
            one.apply(QueueDeleted(number, 0))
            one.apply(QueueRemoved(number, 0))
            named = one.named("orders")
            assert (named.partition_id if named is not None else None) == max(there, default=None)
    assert not catalogue._namesakes


def test_a_queue_that_waits_to_be_removed_is_without_a_name_after_a_restart_too() -> None:
    catalogue = Catalogue()
    catalogue.apply(QueueCreated(2, "orders", SETTINGS, 0))
    catalogue.apply(QueueDeleted(2, 0))
    again = Catalogue()
    again.load(b"".join(catalogue.capture(1)))
    assert again.deleting == {2}
    assert again.named("orders") is None
    assert 2 in again.partitions


def test_a_queue_is_found_by_its_id_only_under_its_own_name() -> None:
    catalogue = Catalogue()
    for number, name in ((2, "orders"), (3, "invoices"), (7, "orders")):
        catalogue.apply(QueueCreated(number, name, SETTINGS, 0))
    assert catalogue.find("orders", 2).partition_id == 2
    catalogue.apply(QueueDeleted(2, 0))
    for number in (2, 3, 9):
        with pytest.raises(PenstockError, match="there is no queue 'orders'"):
            catalogue.find("orders", number)

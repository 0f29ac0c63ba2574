"""The office of the manager: a node that hears nothing of the store's changes does not stand for it."""

from __future__ import annotations

from penstock.cluster.manager.office import LEASE_MS, ManagerOffice
from penstock.cluster.membership.store_requests import Ask


def test_a_node_is_deaf_from_the_first_time_that_it_hears_nothing() -> None:
    office = ManagerOffice("a", 0)
    office.hears(100, hears=False)
    office.hears(LEASE_MS, hears=False)
    assert office.tick(100 + LEASE_MS) == [], "it hears nothing for a whole lease"
    office.hears(101 + LEASE_MS, hears=True)
    assert [type(effect) for effect in office.tick(101 + LEASE_MS)] == [Ask]

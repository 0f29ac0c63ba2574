"""A candidate for the manager: a node that hears nothing of the store's changes does not stand."""

from __future__ import annotations

from penstock.cluster.manager.candidate import LEASE_MS, ManagerCandidate
from penstock.cluster.membership.store_requests import Ask


def test_a_node_is_deaf_from_the_first_time_that_it_hears_nothing() -> None:
    candidate = ManagerCandidate("a", 0)
    candidate.hears(100, hears=False)
    candidate.hears(LEASE_MS, hears=False)
    assert candidate.tick(100 + LEASE_MS) == [], "it hears nothing for a whole lease"
    candidate.hears(101 + LEASE_MS, hears=True)
    assert [type(effect) for effect in candidate.tick(101 + LEASE_MS)] == [Ask]

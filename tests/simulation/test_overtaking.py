"""Overtaking: found wherever a message was still there, and nowhere else; compared with looking at every pair."""

from __future__ import annotations

from itertools import groupby
from random import Random

import pytest

from penstock.model.settings import QueueSettings
from penstock.ordering.timestamp_id import BEFORE_ALL
from penstock.simulation.checkers.overtaking import overtakings
from penstock.simulation.message_history import DeliveredMessage, QueueLife, Settlement

_LIFE = QueueLife(1, "q", [QueueSettings(ordering="fifo")], 0)


def _delivery(sequence: int, lease: int, place: int, done_ms: int | None = None) -> DeliveredMessage:
    granted_ms = lease * 10
    delivery = DeliveredMessage(
        _LIFE,
        None,
        None,
        sequence,
        lease,
        b"",
        place,
        granted_ms,
        granted_ms,
        granted_ms,
        0,
        1,
        0,
        0,
        None,
        BEFORE_ALL,
    )
    if done_ms is not None:
        delivery.settlements.append(Settlement("delete", done_ms, 0, done_ms, "done"))
    return delivery


def _found(deliveries: list[DeliveredMessage]) -> set[tuple[int, int]]:
    """(lease, sequence) of those that overtook somebody, or were overtaken inside of their lease."""
    return {
        (
            found.delivery.lease,
            found.other.sequence if found.other.lease == found.delivery.lease else found.delivery.sequence,
        )
        for found in overtakings([(delivery.sequence, delivery) for delivery in deliveries])
    }


def _by_pairs(deliveries: list[DeliveredMessage]) -> bool:
    for lease, group in groupby(sorted(deliveries, key=lambda d: d.lease), key=lambda d: d.lease):
        places = {delivery.sequence: delivery.place for delivery in group}
        for sequence, place in places.items():
            for other in deliveries:
                if other.sequence >= sequence or places.get(other.sequence, 2**60) < place:
                    continue
                if other.sequence in places or other.lease > lease:
                    return True
                if any(settlement.asked_ms > lease * 10 for settlement in other.settlements):
                    return True
    return False


def test_in_order_is_in_order() -> None:
    assert (
        _found([_delivery(1, 1, 0, 15), _delivery(2, 1, 1), _delivery(2, 2, 0, 25), _delivery(3, 3, 0)])
        == set()
    )


def test_a_predecessor_that_comes_later_was_overtaken() -> None:
    assert _found([_delivery(2, 1, 0), _delivery(1, 2, 0)]) == {(1, 2)}


def test_a_predecessor_that_is_settled_later_was_overtaken() -> None:
    assert _found([_delivery(1, 1, 0, 25), _delivery(2, 2, 0)]) == {(2, 2)}


def test_the_order_inside_of_a_lease_counts() -> None:
    assert _found([_delivery(2, 1, 0), _delivery(1, 1, 1)]) == {(1, 1)}


@pytest.mark.parametrize("seed", range(60))
def test_it_agrees_with_looking_at_every_pair(seed: int) -> None:
    random = Random(seed)
    waiting = list(range(1, 200))
    deliveries: list[DeliveredMessage] = []
    for lease in range(1, 40):
        taken = waiting[: random.randint(1, 9)]
        if random.random() < 0.01:
            random.shuffle(taken)
        for place, sequence in enumerate(taken):
            done = random.random() < 0.7
            late = random.random() < 0.002
            deliveries.append(
                _delivery(sequence, lease, place, lease * 10 + (15 if late else 5) if done else None)
            )
            if done:
                waiting.remove(sequence)
        if random.random() < 0.01:
            random.shuffle(waiting)
    assert bool(_found(deliveries)) == _by_pairs(deliveries)

"""Finds deliveries that overtook an existing message, among messages that have one order.

That a message existed shows afterwards: it was delivered again from the same place, or it was settled. Long lines have
thousands of messages and of leases, so each lease is compared with the messages between its own.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple, TypeVar

from penstock.ordering.timestamp_id import TimestampId
from penstock.simulation.message_history import DeliveredMessage

_BLOCK = 64


class Overtaking(NamedTuple):
    """A delivery, and one that should have come first."""

    delivery: DeliveredMessage
    other: DeliveredMessage


class _Maxima:
    """The maximum of any range of numbers."""

    def __init__(self, values: list[int]) -> None:
        self._values = values
        self._blocks = [max(values[start : start + _BLOCK]) for start in range(0, len(values), _BLOCK)]

    def between(self, start: int, stop: int) -> int:
        low, high = -(-start // _BLOCK), stop // _BLOCK
        if low >= high:
            return max(self._values[start:stop], default=-1)
        return max(
            *self._blocks[low:high],
            max(self._values[start : low * _BLOCK], default=-1),
            max(self._values[high * _BLOCK : stop], default=-1),
        )


Key = TypeVar("Key", int, TimestampId)


def overtakings(line: Sequence[tuple[Key, DeliveredMessage]]) -> Iterator[Overtaking]:
    """Deliveries of one line with their order keys, in the order of delivery."""
    keys = sorted({key for key, _ in line})
    ranks = {key: rank for rank, key in enumerate(keys)}
    deliveries: list[list[DeliveredMessage]] = [[] for _ in keys]
    leases: dict[int, list[tuple[int, DeliveredMessage]]] = {}
    for key, delivery in line:
        deliveries[ranks[key]].append(delivery)
        leases.setdefault(delivery.lease, []).append((ranks[key], delivery))
    last_lease = _Maxima([max(delivery.lease for delivery in same) for same in deliveries])
    last_done = _Maxima([max(map(_last_done_ms, same)) for same in deliveries])
    for lease, together in sorted(leases.items()):
        together.sort(key=lambda pair: pair[1].place)
        passed: dict[int, DeliveredMessage] = {}
        following, later_lease, later_done = 0, -1, -1
        for rank, delivery in together:
            if rank < following:  # after one of its own lease that it should precede
                successor = passed[following - 1]
                if rank not in passed:
                    yield Overtaking(successor, delivery)
                continue
            later_lease = max(later_lease, last_lease.between(following, rank))
            later_done = max(later_done, last_done.between(following, rank))
            following = rank + 1
            passed[rank] = delivery
            if later_lease > lease or later_done > delivery.granted_at_most_ms:
                other = _still_there(deliveries[:rank], passed, lease, delivery.granted_at_most_ms)
                yield Overtaking(delivery, other)


def _still_there(
    predecessors: Sequence[list[DeliveredMessage]], passed: Container[int], lease: int, granted_ms: int
) -> DeliveredMessage:
    return next(
        delivery
        for rank, same in enumerate(predecessors)
        if rank not in passed
        for delivery in same
        if delivery.lease > lease or _last_done_ms(delivery) > granted_ms
    )


def _last_done_ms(delivery: DeliveredMessage) -> int:
    """When it was last settled with success: it was there then."""
    return max((s.asked_ms for s in delivery.settlements if s.result == "done"), default=-1)

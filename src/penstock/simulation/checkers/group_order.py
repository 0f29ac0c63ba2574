"""Strict order: in a FIFO group nothing is delivered past a predecessor that is still there.

That it was still there shows afterwards: it was delivered again from the same place, or somebody settled it.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.history import DeliveredMessage, History, QueueLife
from penstock.simulation.violation import Violation

NAME = "fifo"


def check(history: History) -> Iterator[Violation]:
    """Messages that overtook another of their group."""
    for life in history.lives.values():
        if life.fifo:
            yield from _check_queue(life, history)


def _check_queue(life: QueueLife, history: History) -> Iterator[Violation]:
    leases: dict[int, list[DeliveredMessage]] = {}
    groups: dict[bytes, dict[int, list[DeliveredMessage]]] = {}
    for delivery in history.deliveries:
        if delivery.life is life and delivery.message is not None:
            leases.setdefault(delivery.lease, []).append(delivery)
            places = groups.setdefault(delivery.message.group, {})
            places.setdefault(delivery.sequence, []).append(delivery)
    for lease, together in sorted(leases.items()):
        places_here = {delivery.sequence: delivery.place for delivery in together}
        for delivery in together:
            assert delivery.message is not None
            group = delivery.message.group
            for sequence, others in groups[group].items():
                if sequence >= delivery.sequence or places_here.get(sequence, 2**60) < delivery.place:
                    continue
                if any(_was_there(other, lease, delivery.granted_at_most_ms) for other in others):
                    yield Violation(
                        NAME,
                        delivery.arrived_ms,
                        f"{delivery.sequence} of queue {life.name!r} was delivered (lease {lease}) past {sequence} "
                        f"of the same group {group!r}",
                    )
                    break


def _was_there(other: DeliveredMessage, lease: int, granted_ms: int) -> bool:
    """Whether a delivery of the predecessor proves that it was still in the queue when the lease was granted."""
    return other.lease > lease or any(
        settlement.result == "done" and settlement.asked_ms > granted_ms for settlement in other.settlements
    )

"""Strict order: in a group nothing is delivered past a predecessor that is still there.

Predecessors are those with smaller sequence numbers; on a queue that sorts by its producers' stamps, those that left
the window before, as the records say. That one was still there shows afterwards: it was delivered again from the same
place, or somebody settled it.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.emission import replay
from penstock.simulation.history import DeliveredMessage, History, QueueLife
from penstock.simulation.violation import Violation

NAME = "fifo"


def check(history: History) -> Iterator[Violation]:
    """Messages that overtook another of their group."""
    by_life: dict[int, list[DeliveredMessage]] = {}
    for delivery in history.deliveries:
        if delivery.message is not None and delivery.life.strict:
            by_life.setdefault(delivery.life.queue_id, []).append(delivery)
    for queue_id, deliveries in by_life.items():
        life = history.lives[queue_id]
        if life.damaged_ms is None or not life.sorted:
            yield from _check_queue(life, deliveries, history)


def _ranks(life: QueueLife, history: History) -> dict[int, int] | None:
    """The place of each message in the order; None: it is the sequence number."""
    if not life.sorted:
        return None
    emission = replay(history.records.get(life.queue_id, []), causal=life.settings[0].ordering == "causal")
    return {sequence: rank for rank, sequence in enumerate(emission.order)}


def _check_queue(
    life: QueueLife, deliveries: list[DeliveredMessage], history: History
) -> Iterator[Violation]:
    ranks = _ranks(life, history)
    leases: dict[int, list[DeliveredMessage]] = {}
    groups: dict[bytes, dict[int, list[DeliveredMessage]]] = {}
    for delivery in deliveries:
        assert delivery.message is not None
        if ranks is not None and delivery.sequence not in ranks:
            yield Violation(
                NAME,
                delivery.arrived_ms,
                f"{delivery.sequence} of queue {life.name!r} was delivered before it had left the window",
            )
            return
        leases.setdefault(delivery.lease, []).append(delivery)
        places = groups.setdefault(delivery.message.group, {})
        rank = delivery.sequence if ranks is None else ranks[delivery.sequence]
        places.setdefault(rank, []).append(delivery)
    for lease, together in sorted(leases.items()):
        places_here = {delivery.sequence: delivery.place for delivery in together}
        for delivery in together:
            assert delivery.message is not None
            group = delivery.message.group
            rank = delivery.sequence if ranks is None else ranks[delivery.sequence]
            for other_rank, others in groups[group].items():
                sequence = others[0].sequence
                if other_rank >= rank or places_here.get(sequence, 2**60) < delivery.place:
                    continue
                if any(was_there(other, lease, delivery.granted_at_most_ms) for other in others):
                    yield Violation(
                        NAME,
                        delivery.arrived_ms,
                        f"{delivery.sequence} of queue {life.name!r} was delivered (lease {lease}) past {sequence} "
                        f"of the same group {group!r}",
                    )
                    break


def was_there(other: DeliveredMessage, lease: int, granted_ms: int) -> bool:
    """Whether a delivery of the predecessor proves that it was still in the queue when the lease was granted."""
    return other.lease > lease or any(
        settlement.result == "done" and settlement.asked_ms > granted_ms for settlement in other.settlements
    )

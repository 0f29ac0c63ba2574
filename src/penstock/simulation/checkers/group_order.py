"""Strict order: in a group no message is delivered before a predecessor that still exists.

Predecessors are those with smaller sequence numbers; on a queue sorted by its producers' stamps, those that left the
window before, according to the records.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.checkers.overtaking import overtakings
from penstock.simulation.emission import replay
from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage, QueueLife
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
    groups: dict[bytes, list[tuple[int, DeliveredMessage]]] = {}
    for delivery in deliveries:
        assert delivery.message is not None
        rank = delivery.sequence if ranks is None else ranks.get(delivery.sequence)
        if rank is None:
            yield Violation(
                NAME,
                delivery.arrived_ms,
                f"{delivery.sequence} of queue {life.name!r} was delivered before it had left the window",
            )
            return
        groups.setdefault(delivery.message.group, []).append((rank, delivery))
    for group, line in groups.items():
        for delivery, other in overtakings(line):
            yield Violation(
                NAME,
                delivery.arrived_ms,
                f"{delivery.sequence} of queue {life.name!r} was delivered (lease {delivery.lease}) past "
                f"{other.sequence} of the same group {group!r}",
            )

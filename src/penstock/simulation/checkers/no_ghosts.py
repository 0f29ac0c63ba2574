"""I2: no ghosts, no resurrection; bytes out are the bytes in.

A ghost is a message that was never sent, or was refused, or appears in a queue to which it was never sent or moved, such
as the next queue of the same name. A resurrection is a message that comes back after a delete or a purge was acknowledged.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.routing.numbers import inward
from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage, QueueLife, SentMessage
from penstock.simulation.violation import Violation

NAME = "I2"


def check(history: History) -> Iterator[Violation]:
    """Ghosts and resurrections."""
    yield from _ghosts(history)
    for life, sequence, deliveries in history.by_place():
        yield from _resurrected_in_place(life, sequence, deliveries)
    for message in history.messages.values():
        yield from _resurrected_elsewhere(message, history)
    yield from _seen_again(history)


def _ghosts(history: History) -> Iterator[Violation]:
    for delivery in history.deliveries:
        where = f"{delivery.sequence} of queue {delivery.life.name!r} (id {delivery.life.queue_id})"
        message = delivery.message
        if delivery.problem is not None:
            if not history.flips:  # else it is I10's
                yield Violation(NAME, delivery.arrived_ms, f"{where} was delivered with {delivery.problem}")
        elif message is not None and message.fate == "refused":
            yield Violation(NAME, delivery.arrived_ms, f"{where} was delivered although its send was refused")
        elif message is not None and message.life is not delivery.life and delivery.source is None:
            yield Violation(
                NAME,
                delivery.arrived_ms,
                f"{where} is message {message.number}, which was sent to queue {message.life.name!r} "
                f"(id {message.life.queue_id}) and never moved",
            )
    for sighting in history.sightings:
        if sighting.problem is not None and not history.flips:
            where = f"{sighting.sequence} of queue {sighting.life.name!r}"
            yield Violation(NAME, sighting.seen_ms, f"a peek saw {where} with {sighting.problem}")
    if not history.flips:
        yield from exchanged(history, NAME)


def exchanged(history: History, checker: str) -> Iterator[Violation]:
    """Whole messages under the number of another one."""
    for delivery in history.deliveries:
        message = delivery.message
        if (
            message is not None
            and message.fate == "stored"
            and message.life is delivery.life
            and message.sequence != delivery.sequence
            and delivery.source is None
        ):
            where = f"{message.sequence} of queue {message.life.name!r} (id {message.life.queue_id})"
            yield Violation(
                checker,
                delivery.arrived_ms,
                f"message {message.number} was stored as {where} and delivered as {delivery.sequence}",
            )


def _resurrected_in_place(
    life: QueueLife, sequence: int, deliveries: list[DeliveredMessage]
) -> Iterator[Violation]:
    ended: tuple[int, str] | None = None
    gone_ms: int | None = None
    for delivery in deliveries:
        where = f"{sequence} of queue {life.name!r} (id {life.queue_id})"
        if ended is not None:
            yield Violation(NAME, delivery.arrived_ms, f"{where} was delivered again after its {ended[1]}")
        elif gone_ms is not None and delivery.granted_at_least_ms > gone_ms:
            yield Violation(
                NAME, delivery.arrived_ms, f"{where} was delivered after the node had said it was gone"
            )
        deletes = [s for s in delivery.settlements if s.kind == "delete"]
        if sum(s.result == "done" for s in deletes) > 1:
            yield Violation(NAME, delivery.arrived_ms, f"{where} was deleted twice under one lease")
        for settlement in deletes:
            if settlement.result == "done":
                ended = (settlement.asked_ms, f"delete under lease {delivery.lease} was acknowledged")
            elif (
                settlement.result in ("gone", "done-or-gone")
                and settlement.answered_ms is not None
                # For clients that know of a deletion, everything in the queue is gone.
                and (life.deletion_asked_ms is None or settlement.answered_ms < life.deletion_asked_ms)
            ):
                gone_ms = min(gone_ms or settlement.answered_ms, settlement.answered_ms)
        yield from _purged(life, delivery, where)


def _purged(life: QueueLife, delivery: DeliveredMessage, where: str) -> Iterator[Violation]:
    message = delivery.message
    if message is None or message.life is not life or message.fate != "stored" or delivery.source is not None:
        return
    if life.dead_letter_queues():
        return  # one that was on its way there is not purged, and comes back if it cannot arrive
    for purge in life.purges:
        if (
            purge.answered_ms is not None
            and inward(delivery.sequence)[0] not in purge.undone
            and message.answered_ms <= purge.asked_ms
            and delivery.granted_at_least_ms > purge.answered_ms
        ):
            yield Violation(NAME, delivery.arrived_ms, f"{where} was delivered after the queue was purged")


def _places(message: SentMessage) -> Iterator[tuple[int, int]]:
    """The known places of a message: where it was stored, even if it was not received there, and where it was delivered."""
    if message.fate == "stored":
        yield message.life.queue_id, message.sequence
    for delivery in message.deliveries:
        yield delivery.life.queue_id, delivery.sequence


def _deleted_ms(message: SentMessage, history: History, life: QueueLife | None = None) -> int | None:
    """When a client was certainly told that it is deleted, from one queue if one is given; None also if it may be in two
    places."""
    if history.moves_lost and not history.moves_lost.isdisjoint(_places(message)):
        return None
    times = [
        settlement.answered_ms
        for delivery in message.deliveries
        if life is None or delivery.life is life
        for settlement in delivery.settlements
        if settlement.kind == "delete" and settlement.result == "done" and settlement.answered_ms is not None
    ]
    return min(times, default=None)


def _resurrected_elsewhere(message: SentMessage, history: History) -> Iterator[Violation]:
    deleted_ms = _deleted_ms(message, history)
    if deleted_ms is None:
        return
    for delivery in message.deliveries:
        if delivery.granted_at_least_ms > deleted_ms:
            yield Violation(
                NAME,
                delivery.arrived_ms,
                f"message {message.number} was deleted and delivered afterwards as {delivery.sequence} of queue "
                f"{delivery.life.name!r}",
            )


def _seen_again(history: History) -> Iterator[Violation]:
    for sighting in history.sightings:
        if sighting.message is None:
            continue
        # On its way it may have arrived, and may be deleted there, before its source knows that.
        life = sighting.life if sighting.state == "moving" else None
        deleted_ms = _deleted_ms(sighting.message, history, life)
        if deleted_ms is not None and sighting.asked_ms > deleted_ms:
            yield Violation(
                NAME,
                sighting.seen_ms,
                f"message {sighting.message.number} was deleted and seen afterwards, {sighting.state}, as "
                f"{sighting.sequence} of queue {sighting.life.name!r}",
            )

"""I6: a message that moves to or from a dead-letter queue is always in exactly one place."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.checkers.endings import dies_properly, ending_of
from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage, MovedFrom, QueueLife
from penstock.simulation.violation import Violation

NAME = "I6"


def check(history: History) -> Iterator[Violation]:
    """Messages that never arrived, arrived twice, or stayed where they left."""
    for message in history.messages.values():
        if (
            message.fate == "stored"
            and message.life.settings[0].has_queue
            and ending_of(message, history) is None
            and dies_properly(message, history)
        ):
            yield Violation(
                NAME,
                message.answered_ms,
                f"message {message.number}, {message.sequence} of queue {message.life.name!r}, was due to move to "
                f"{message.life.dead_letter_queues()} and is in neither place",
            )
    if history.whereabouts is not None:
        for sentence in (*history.whereabouts.dropped(), *history.whereabouts.doubled()):
            yield Violation(NAME, history.ended_ms, sentence)
    yield from _both(history)
    for delivery in history.deliveries:
        yield from _too_often(delivery, history)
        yield from _first_home(delivery)


def _both(history: History) -> Iterator[Violation]:
    arrivals: dict[tuple[int, int], list[DeliveredMessage]] = {}
    for delivery in history.deliveries:
        source = delivery.source
        if source is not None and (source.queue_id, source.sequence) not in history.moves_lost:
            arrivals.setdefault((source.queue_id, source.sequence), []).append(delivery)
    for (queue_id, sequence), found in sorted(arrivals.items()):
        where = f"{sequence} of queue {queue_id}"
        places = sorted({(delivery.life.queue_id, delivery.sequence) for delivery in found})
        if len(places) > 1:
            yield Violation(NAME, found[-1].arrived_ms, f"{where} arrived more than once: {places}")
    for delivery in history.deliveries:
        for moved in arrivals.get((delivery.life.queue_id, delivery.sequence), ())[:1]:
            if delivery.granted_at_least_ms > moved.sent_ms + history.skew_ms:
                yield Violation(
                    NAME,
                    delivery.arrived_ms,
                    f"{delivery.sequence} of queue {delivery.life.name!r} was delivered there after it had arrived "
                    f"as {moved.sequence} of queue {moved.life.name!r}",
                )
            elif moved.source is not None and moved.source.receive_count < delivery.receive_count:
                yield Violation(
                    NAME,
                    moved.arrived_ms,
                    f"{moved.sequence} of queue {moved.life.name!r} says {moved.source.receive_count} receives in "
                    f"its source, there were {delivery.receive_count}",
                )


def _too_often(delivery: DeliveredMessage, history: History) -> Iterator[Violation]:
    most = _most_receives(delivery.life, history)
    if most is not None and delivery.receive_count > most:
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"{delivery.sequence} of queue {delivery.life.name!r} was received {delivery.receive_count} times, it "
            f"should have moved after {most}",
        )
    source: MovedFrom | None = delivery.source
    if source is not None and source.reason == "max-receives" and source.receive_count == 0:
        yield Violation(
            NAME, delivery.arrived_ms, f"{delivery.sequence} of queue {delivery.life.name!r} died unreceived"
        )


def _first_home(delivery: DeliveredMessage) -> Iterator[Violation]:
    """A message that moved still says where it was first sent to."""
    message, source = delivery.message, delivery.source
    if message is None or source is None or message.fate != "stored":
        return
    if message.life.deletion_asked_ms is not None:
        return  # a front end that does not know the queue can only name the partition
    if source.root != (message.life.queue_id, message.sequence):
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"{delivery.sequence} of queue {delivery.life.name!r} says that its first home is {source.root}, it is "
            f"{message.sequence} of queue {message.life.queue_id}",
        )


def _most_receives(life: QueueLife, history: History) -> int | None:
    """How often a message may be received before it must move; None where it may have had nowhere to go."""
    values = [settings.max_receives for settings in life.settings]
    targets = [target for name in life.dead_letter_queues() for target in history.lives_named(name)]
    if any(value is None for value in values) or any(t.deletion_asked_ms is not None for t in targets):
        return None
    return max(value for value in values if value is not None)

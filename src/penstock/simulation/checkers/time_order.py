"""Order by time, as clients see it: a send that was acknowledged before another began is delivered first.

Server stamps: sequence numbers and stamps follow the acknowledgements, a stamp is not before its send, and no client
learns it before true time has passed it. Producer stamps: the error of an id is at most what its producer states, it is
returned unchanged, and no message is delivered before a smaller id that comes later: on a `clock` queue of any producer,
on a `causal` one of the same session.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.simulation.checkers.overtaking import overtakings
from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage, QueueLife, SentMessage
from penstock.simulation.violation import Violation

NAME = "time"


def check(history: History) -> Iterator[Violation]:
    """Messages out of order, and stamps that are not true."""
    stored: dict[int, list[SentMessage]] = {}
    for message in history.messages.values():
        if message.fate == "stored":
            stored.setdefault(message.life.queue_id, []).append(message)
        if history.clocks_are_true:
            yield from _true_stamp(message)
    for queue_id, messages in stored.items():
        life = history.lives[queue_id]
        if life.settings[0].server_stamped:
            yield from _acknowledged_first(life, messages)
    for delivery in history.deliveries:
        yield from _same_stamp(delivery)
    yield from _delivered_in_order(history)


def _true_stamp(message: SentMessage) -> Iterator[Violation]:
    who = f"message {message.number} of queue {message.life.name!r}"
    if message.identifier is not None and message.uncertainty_us is not None:
        off_us = abs(message.identifier.time_us - message.made_us)
        if off_us > message.uncertainty_us:
            yield Violation(
                NAME,
                message.asked_ms,
                f"{who} has a stamp {off_us} µs from true time, its producer says {message.uncertainty_us} at most",
            )
    if message.stamp_us and message.life.settings[0].server_stamped:
        if message.stamp_us >= message.answered_us:
            yield Violation(
                NAME,
                message.answered_ms,
                f"{who} was acknowledged {message.stamp_us - message.answered_us} µs before its stamp had passed",
            )
        if message.stamp_us < message.began_us:
            yield Violation(
                NAME,
                message.answered_ms,
                f"{who} was stamped {message.began_us - message.stamp_us} µs before it was sent",
            )


def _acknowledged_first(life: QueueLife, messages: list[SentMessage]) -> Iterator[Violation]:
    """Sends in the order in which they began, each compared with what was acknowledged before."""
    if any(not message.stamp_us for message in messages):
        message = next(message for message in messages if not message.stamp_us)
        yield Violation(
            NAME, message.answered_ms, f"message {message.number} of queue {life.name!r} has no stamp"
        )
        return
    acknowledged = sorted(messages, key=lambda message: message.answered_us)
    place = 0
    highest: SentMessage | None = None
    for message in sorted(messages, key=lambda message: message.began_us):
        while acknowledged[place].answered_us < message.began_us:
            before = acknowledged[place]
            place += 1
            if highest is None or before.sequence > highest.sequence:
                highest = before
        if highest is not None and (
            highest.sequence > message.sequence or highest.stamp_us >= message.stamp_us
        ):
            yield Violation(
                NAME,
                message.answered_ms,
                f"{message.sequence} of queue {life.name!r} (stamp {message.stamp_us}) was sent after "
                f"{highest.sequence} (stamp {highest.stamp_us}) had been acknowledged",
            )


def _same_stamp(delivery: DeliveredMessage) -> Iterator[Violation]:
    message = delivery.message
    if message is None or message.identifier is None or delivery.identifier == message.identifier:
        return
    yield Violation(
        NAME,
        delivery.arrived_ms,
        f"{delivery.sequence} of queue {delivery.life.name!r} was stamped {message.identifier} and came out with "
        f"{delivery.identifier}",
    )


def _delivered_in_order(history: History) -> Iterator[Violation]:
    lines: dict[tuple[int, bytes, int], list[DeliveredMessage]] = {}
    for delivery in history.deliveries:
        life, message = delivery.life, delivery.message
        if life.sorted and message is not None and delivery.source is None:
            session = delivery.identifier.process if life.settings[0].ordering == "causal" else 0
            lines.setdefault((life.queue_id, message.group, session), []).append(delivery)
    for line in lines.values():
        for delivery, other in overtakings([(delivery.identifier, delivery) for delivery in line]):
            yield Violation(
                NAME,
                delivery.arrived_ms,
                f"{delivery.sequence} of queue {delivery.life.name!r} ({delivery.identifier}) was delivered past "
                f"{other.sequence} ({other.identifier})",
            )

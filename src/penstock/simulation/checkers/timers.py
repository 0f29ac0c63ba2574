"""I7: delays are never early, times to live never late, beyond a timer slot; timers survive a restart."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from penstock.model.limits import RETENTION_SLOT_MS, TIMER_SLOT_MS
from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage
from penstock.simulation.violation import Violation

NAME = "I7"

_TURN_MS = 3
"""A pump may come this much after the frames it belongs to."""
_CATCH_UP_MS = 300
"""By then everything that got too old while a node was down is gone, also where a turn takes one message."""


def check(history: History) -> Iterator[Violation]:
    """Early and late deliveries."""
    for delivery in history.deliveries:
        if delivery.message is not None and delivery.source is None:
            yield from _delay(delivery, history)
            yield from _time_to_live(delivery, history)
        yield from _retention(delivery, history)
    for life, sequence, deliveries in history.by_place():
        for earlier, later in pairwise(deliveries):
            if _was_to_die(earlier):
                continue
            for settlement in earlier.settlements:
                early_ms = (
                    settlement.asked_ms + settlement.amount_ms - later.granted_at_most_ms - history.skew_ms
                )
                if settlement.kind == "release" and settlement.result == "done" and early_ms > 0:
                    yield Violation(
                        NAME,
                        later.arrived_ms,
                        f"{sequence} of queue {life.name!r} was released for {settlement.amount_ms} ms and delivered "
                        f"{early_ms} ms early",
                    )


def _was_to_die(delivery: DeliveredMessage) -> bool:
    """Whether giving it back sent it to the dead-letter queue, for which there is no delay.

    If that queue is deleted before it arrives there, it comes back, and at once.
    """
    limits = [settings.max_receives for settings in delivery.life.settings if settings.max_receives]
    return bool(limits) and delivery.receive_count >= min(limits)


def _delay(delivery: DeliveredMessage, history: History) -> Iterator[Violation]:
    message = delivery.message
    assert message is not None
    due_ms = delivery.sent_ms + message.least_delay_ms() - history.skew_ms
    early_ms = due_ms - delivery.granted_at_most_ms
    if early_ms > 0:
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"{delivery.sequence} of queue {delivery.life.name!r} was delivered {early_ms} ms before its delay was "
            "over",
        )


def _time_to_live(delivery: DeliveredMessage, history: History) -> Iterator[Violation]:
    message = delivery.message
    assert message is not None
    late_ms = delivery.granted_at_least_ms - delivery.sent_ms - message.most_ttl_ms() - history.skew_ms
    if (
        late_ms > TIMER_SLOT_MS + _TURN_MS
        and _disk_was_well(delivery, late_ms, history)
        and not _follows_a_step(delivery, late_ms, history)
    ):
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"{delivery.sequence} of queue {delivery.life.name!r} was leased {late_ms} ms after its time to live",
        )


def _retention(delivery: DeliveredMessage, history: History) -> Iterator[Violation]:
    most_ms = max(settings.retention_ms for settings in delivery.life.settings)
    late_ms = delivery.granted_at_least_ms - delivery.sent_ms - most_ms - history.skew_ms
    if (
        late_ms > RETENTION_SLOT_MS + _TURN_MS
        and _disk_was_well(delivery, late_ms, history)
        and not _follows_a_start(delivery, late_ms, history)
        and not _follows_a_step(delivery, late_ms, history)
    ):
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"{delivery.sequence} of queue {delivery.life.name!r} was leased {late_ms} ms after its retention",
        )


def _disk_was_well(delivery: DeliveredMessage, late_ms: int, history: History) -> bool:
    """Expiry is a record: while the journal can take none, because the disk cannot keep up, it waits."""
    return history.disk_was_well(delivery.granted_at_least_ms - late_ms, delivery.granted_at_most_ms)


def _follows_a_start(delivery: DeliveredMessage, late_ms: int, history: History) -> bool:
    """Whether the node has just started: messages that expired while it was down are removed in steps, so many in a turn."""
    old_ms = delivery.granted_at_least_ms - late_ms
    return any(
        span.answered_ms is not None
        and old_ms <= span.answered_ms <= delivery.granted_at_least_ms <= span.answered_ms + _CATCH_UP_MS
        for span in history.downtimes
    )


def _follows_a_step(delivery: DeliveredMessage, late_ms: int, history: History) -> bool:
    """Whether the clock has just jumped over the time: all that is too old at once goes in steps as well."""
    old_ms = delivery.granted_at_least_ms - late_ms
    return any(
        step.before_ms
        <= old_ms
        <= step.after_ms
        <= delivery.granted_at_least_ms
        <= step.after_ms + _CATCH_UP_MS
        for step in history.clock_steps
    )

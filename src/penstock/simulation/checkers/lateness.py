"""Late messages: no message at or below the watermark is accepted as in time, and each late one is reported, once.

The records say which messages left. A late message is in `<queue>.late`, exactly once (I6 checks that too), with its
lateness and an id that it should have preceded. The watermark never goes back, also through restarts.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.ordering.timestamp_id import from_text
from penstock.simulation.checkers.endings import ending_of
from penstock.simulation.emission import Emission, replay
from penstock.simulation.history import History
from penstock.simulation.message_history import DeliveredMessage, QueueLife
from penstock.simulation.violation import Violation

NAME = "late"


def check(history: History) -> Iterator[Violation]:
    """Order that was broken silently, and late messages that were not reported."""
    emissions: dict[int, Emission] = {}
    for life in history.lives.values():
        if life.sorted and life.damaged_ms is None:
            causal = life.settings[0].ordering == "causal"
            emission = emissions[life.queue_id] = replay(
                history.records.get(life.queue_id, []), causal=causal
            )
            for at_ms, sentence in emission.problems:
                yield Violation(NAME, at_ms, f"queue {life.name!r}: {sentence}")
            yield from _books(life, emission, history)
    for delivery in history.deliveries:
        if delivery.source is not None and delivery.source.reason == "late":
            yield from _told(delivery, emissions.get(delivery.source.queue_id))
            if history.clocks_are_true:
                yield from _in_time(delivery)
    yield from _not_there(history, emissions)


def _books(life: QueueLife, emission: Emission, history: History) -> Iterator[Violation]:
    numbers = life.statistics
    if numbers is None:
        return
    if numbers.late_total != len(emission.late):
        yield Violation(
            NAME,
            history.ended_ms,
            f"queue {life.name!r} counts {numbers.late_total} late messages, there were {len(emission.late)}",
        )
    if numbers.watermark_us < life.watermark_us:
        yield Violation(
            NAME,
            history.ended_ms,
            f"the watermark of queue {life.name!r} was {life.watermark_us} and is {numbers.watermark_us}",
        )


def _told(delivery: DeliveredMessage, emission: Emission | None) -> Iterator[Violation]:
    """The lateness that a consumer of a late message sees."""
    source = delivery.source
    assert source is not None
    where = f"{delivery.sequence} of queue {delivery.life.name!r}"
    if delivery.life.name != f"{source.name}.late":
        yield Violation(NAME, delivery.arrived_ms, f"{where} is late for {source.name!r} and was put there")
    late = source.late
    if late is None:
        yield Violation(NAME, delivery.arrived_ms, f"{where} is late and nobody says how late")
        return
    if late.floor_us < delivery.identifier.time_us:
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"{where} is said to be late, and was stamped {delivery.identifier.time_us - late.floor_us} µs after "
            "what had left",
        )
    if emission is not None and emission.moved_as_late.get(source.sequence, late) != late:
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"{where} is said to be late by {late}, its record says {emission.moved_as_late[source.sequence]}",
        )
    if late.precedes is not None and emission is not None and emission.causal is False:
        oldest = min(
            (
                other.identifier
                for other in emission.late.values()
                if emission.moved_as_late.get(other.sequence) == late
            ),
            default=delivery.identifier,
        )
        if from_text(late.precedes) <= oldest:
            yield Violation(
                NAME, delivery.arrived_ms, f"{where} should have preceded {late.precedes}, which is older"
            )


def _in_time(delivery: DeliveredMessage) -> Iterator[Violation]:
    """A message that arrives within the window after its stamp, by true time, cannot be late on a `clock` queue."""
    message = delivery.message
    if message is None or message.life.settings[0].ordering != "clock" or message.fate != "stored":
        return
    window_us = message.life.least_ms("window_ms") * 1_000
    taken_us = message.answered_us - delivery.identifier.time_us
    if taken_us < window_us:
        yield Violation(
            NAME,
            delivery.arrived_ms,
            f"message {message.number} of queue {message.life.name!r} was acknowledged {taken_us} µs after its stamp, "
            f"the window is {window_us} µs, and it was late",
        )


def _not_there(history: History, emissions: dict[int, Emission]) -> Iterator[Violation]:
    """Late messages that were acknowledged and are nowhere, or were delivered as if they were not late."""
    for message in history.messages.values():
        emission = emissions.get(message.life.queue_id)
        if message.fate != "stored" or emission is None or message.sequence not in emission.late:
            continue
        who = f"message {message.number}, {message.sequence} of queue {message.life.name!r}, was late"
        if any(d.life is message.life and d.source is None for d in message.deliveries):
            yield Violation(NAME, message.answered_ms, f"{who} and was delivered all the same")
        if message.sequence not in emission.moved_as_late:
            yield Violation(NAME, message.answered_ms, f"{who} and did not move to {message.life.late_queue}")
        elif not message.deliveries and ending_of(message, history) is None:
            yield Violation(NAME, message.answered_ms, f"{who} and is not in {message.life.late_queue}")

"""Queues whose primary acknowledges alone (`async`): what a failover may lose is bounded, and counted apart.

The other promises are checked without them: a lease, a delete or an id may be lost with the suffix that held it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

from penstock.simulation.checkers import exact_endings
from penstock.simulation.checkers.endings import ending_of
from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife, SentMessage
from penstock.simulation.violation import Violation


def is_loose(life: QueueLife) -> bool:
    """Whether its primary acknowledges alone."""
    return life.settings[0].replication == "async"


def without(history: History) -> History:
    """What is left when one does not look at such queues."""
    return dataclasses.replace(
        history,
        lives={number: life for number, life in history.lives.items() if not is_loose(life)},
        messages={number: sent for number, sent in history.messages.items() if not is_loose(sent.life)},
        batches=[batch for batch in history.batches if not is_loose(batch.life)],
        deliveries=[delivery for delivery in history.deliveries if not is_loose(delivery.life)],
        sightings=[sighting for sighting in history.sightings if not is_loose(sighting.life)],
        empty_polls=[poll for poll in history.empty_polls if not is_loose(poll.life)],
    )


def lost_messages(history: History) -> list[SentMessage]:
    """Acknowledged, and never seen again although nothing ended them."""
    return [
        message
        for message in history.messages.values()
        if is_loose(message.life) and message.fate == "stored" and not ending_of(message, history)
    ]


def check(history: History, lost_records: Mapping[int, int]) -> Iterator[Violation]:
    """Wrong bytes, and losses without a failover; that each is of a moment only the witness sees.

    `lost_records` counts, by queue, what primaries had committed and their successors did not have.
    """
    for delivery in history.deliveries:
        if is_loose(delivery.life) and delivery.problem is not None:
            yield Violation(
                "I2", delivery.arrived_ms, f"a delivery of {delivery.life.name!r}: {delivery.problem}"
            )
    loose = {number: sent for number, sent in history.messages.items() if is_loose(sent.life)}
    yield from exact_endings.check(dataclasses.replace(history, messages=loose))
    by_queue: dict[int, list[SentMessage]] = {}
    for message in lost_messages(history):
        by_queue.setdefault(message.life.queue_id, []).append(message)
    for queue_id, messages in by_queue.items():
        if not lost_records.get(queue_id):
            yield Violation(
                "I1",
                messages[0].answered_ms,
                f"{len(messages)} messages of {messages[0].life.name!r} are lost, and no failover lost a record",
            )

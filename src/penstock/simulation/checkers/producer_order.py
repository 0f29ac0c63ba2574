"""Order of producers: messages that a client sends to a queue without waiting for answers are stored in the order sent.

This is promised to clients that name the batch which each one follows (ADR 30), within each partition, and for messages
whose producer was told that they are stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.partition_numbers import ORDINAL_SHIFT
from penstock.simulation.history import History
from penstock.simulation.message_history import SentBatch
from penstock.simulation.violation import Violation

NAME = "order"


def check(history: History) -> Iterator[Violation]:
    """Messages that are stored before one that their producer sent earlier."""
    last: dict[tuple[int, int, int], tuple[int, SentBatch]] = {}
    batches = [batch for batch in history.batches if batch.is_ordered and batch.life.damaged_ms is None]
    for batch in sorted(batches, key=lambda batch: (batch.life.queue_id, batch.producer, batch.number)):
        for message in batch.messages:
            if message.fate != "stored":
                continue
            place = (batch.life.queue_id, batch.producer, message.sequence >> ORDINAL_SHIFT)
            before, other = last.get(place, (0, batch))
            if message.sequence <= before:
                yield Violation(
                    NAME,
                    message.answered_ms,
                    f"batch {batch.number} of producer {batch.producer} is in queue {batch.life.name!r} at "
                    f"{message.sequence}, and batch {other.number}, which was sent before it, at {before}",
                )
            last[place] = (message.sequence, batch)

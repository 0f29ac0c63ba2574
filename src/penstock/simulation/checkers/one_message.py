"""I3: one deduplication id, one message; one (producer, number), one batch; across crashes, restarts and deletes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife, SendAnswer, SentBatch, SentMessage
from penstock.simulation.violation import Violation

NAME = "I3"


def check(history: History) -> Iterator[Violation]:
    """Batches stored twice, and ids that name two messages.

    Messages left out as duplicates have no number that is remembered. If another attempt of their batch is still in
    transit, over a connection that was lost, it may arrive when their ids are free again: then they are stored.
    """
    stray: set[int] = set()
    for batch in history.batches:
        yield from _answers(batch)
        if batch.is_ordered and batch.unanswered:
            stray.update(message.number for message in batch.messages if message.fate == "duplicate")
    for message in history.messages.values():
        if message.number not in stray:
            yield from _places(message, history.skew_ms)
    yield from _identifiers(history)


def _answers(batch: SentBatch) -> Iterator[Violation]:
    """A batch that is sent again gets the same answer, unless all of it was left out as duplicates."""
    if not batch.answers:
        return
    first = batch.answers[0]
    if len(first.duplicates) == len(batch.messages):
        return
    for answer in batch.answers[1:]:
        if batch.life.settings[0].partitions > 1 and _agree(first, answer, batch):
            continue
        if answer != first:
            yield Violation(
                NAME,
                batch.messages[0].answered_ms,
                f"batch {batch.number} of producer {batch.producer} to queue {batch.life.name!r} was answered with "
                f"{first} and then with {answer}",
            )


def _agree(first: SendAnswer, again: SendAnswer, batch: SentBatch) -> bool:
    """Whether two answers name the same positions of all stored messages, if partitions shared the batch.

    A duplicate in the first answer may have another original later. A stored message in it may be a duplicate later only
    if the id was free in between: its window had ended, and the id was sent again to another partition.
    """
    left_out = set(first.duplicates)
    if again.sent_ms >= first.sent_ms + batch.life.least_ms("deduplication_window_ms"):
        left_out.update(again.duplicates)
    one, other = _sequences(first), _sequences(again)
    return len(one) == len(other) and all(
        one[place] == other[place] for place in range(len(one)) if place not in left_out
    )


def _sequences(answer: SendAnswer) -> list[int]:
    return [number for start, count in answer.runs for number in range(start, start + count)]


def _was_free(message: SentMessage, skew_ms: int) -> bool:
    """Whether a message was stored by an attempt without an answer, and its id was free again when it was called a duplicate.

    Then the id was sent to another partition meanwhile, and the partition that stored the message is not asked any more (ADR 30).
    """
    window_ms = message.life.least_ms("deduplication_window_ms")
    return message.life.settings[0].partitions > 1 and all(
        delivery.sent_ms + window_ms <= message.sent_ms + skew_ms for delivery in message.deliveries
    )


def _places(message: SentMessage, skew_ms: int) -> Iterator[Violation]:
    """A message that did not move has one place."""
    places = sorted({(d.life.queue_id, d.sequence) for d in message.deliveries if d.source is None})
    if message.fate == "stored" and message.deliveries:
        places = sorted({*places, (message.life.queue_id, message.sequence)})
    if len(places) > 1:
        yield Violation(
            NAME,
            message.deliveries[-1].arrived_ms,
            f"message {message.number} was stored more than once: {places}",
        )
    if message.fate == "duplicate" and message.deliveries and not _was_free(message, skew_ms):
        yield Violation(
            NAME,
            message.deliveries[0].arrived_ms,
            f"message {message.number} was answered as a duplicate of {message.sequence} and delivered all the same",
        )


def _identifiers(history: History) -> Iterator[Violation]:
    stored: dict[tuple[int, bytes], list[tuple[int, int, SentMessage]]] = {}
    by_place: dict[tuple[int, int], SentMessage] = {}
    for message in history.messages.values():
        if message.fate == "stored":
            by_place[message.life.queue_id, message.sequence] = message
        times = [delivery.sent_ms for delivery in message.deliveries if delivery.source is None]
        sent_ms = message.sent_ms if message.fate == "stored" else min(times, default=None)
        if message.deduplication_id and sent_ms is not None and not message.sent_at_most:
            key = (message.life.queue_id, message.deduplication_id)
            stored.setdefault(key, []).append((sent_ms, message.number, message))
    for (queue_id, identifier), found in stored.items():
        if (queue_id, identifier) in history.claims_lost:
            continue
        found.sort()
        life = history.lives[queue_id]
        for (first_ms, _, first), (second_ms, _, second) in pairwise(found):
            # The window is measured by the clock of the first one's partition, and the second may have another.
            apart_ms = second_ms - first_ms + (history.skew_ms if life.settings[0].partitions > 1 else 0)
            if apart_ms < life.least_ms("deduplication_window_ms") and not _forgotten(
                life, first_ms - history.skew_ms, second_ms + history.skew_ms
            ):
                yield Violation(
                    NAME,
                    second_ms,
                    f"messages {first.number} and {second.number} of queue {life.name!r} have the same id "
                    f"{identifier!r} and were sent within {second_ms - first_ms} ms",
                )
    known: dict[tuple[int, bytes], set[int]] = {}
    for message in history.messages.values():
        if message.fate in ("stored", "unknown"):
            known.setdefault((message.life.queue_id, message.deduplication_id), set()).add(message.number)
    for message in history.messages.values():
        if message.fate == "duplicate":
            if not known.get((message.life.queue_id, message.deduplication_id)):
                yield Violation(
                    NAME,
                    message.answered_ms,
                    f"message {message.number} is said to be a duplicate, but nobody sent {message.deduplication_id!r} to "
                    f"queue {message.life.name!r} (id {message.life.queue_id}) before",
                )
            original = by_place.get((message.life.queue_id, message.sequence))
            if original is not None and original.deduplication_id != message.deduplication_id:
                yield Violation(
                    NAME,
                    message.answered_ms,
                    f"message {message.number} is said to be a duplicate of {original.number}, which has another id",
                )


def _forgotten(life: QueueLife, first_ms: int, second_ms: int) -> bool:
    """Whether a purge may have come between: it forgets ids."""
    return any(
        purge.asked_ms <= second_ms and (purge.answered_ms is None or purge.answered_ms >= first_ms)
        for purge in life.purges
    )

"""Writes the history: turns requests and answers, as clients see them, into their knowledge."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import TypeVar

from penstock.model.batch import DEDUPLICATION, GROUPS, PRIORITIES, STAMPS, Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.ordering.timestamp_id import TimestampId
from penstock.simulation.history import History
from penstock.simulation.message_history import (
    DeliveredMessage,
    EmptyPoll,
    Kind,
    MovedFrom,
    QueueLife,
    Result,
    SendAnswer,
    SentBatch,
    SentMessage,
    Settlement,
    Sighting,
)
from penstock.simulation.schedule import Schedule
from penstock.wire.log_messages import LoggedBatch
from penstock.wire.messages import DeliveredBatch, Delivery, Failed, Peeked, ReceiptOutcome, SendResult

Head = TypeVar("Head", DeliveredBatch, LoggedBatch)
"""A slice of a body, as its answer announces it."""
_TOKEN_IDENTITY = struct.Struct("<QQ")


def sequences_of(runs: Runs) -> list[int]:
    """The sequence numbers of runs, in their order."""
    return [sequence for first, count in runs for sequence in range(first, first + count)]


class Recorder:
    """The history and the time."""

    def __init__(self, history: History, schedule: Schedule) -> None:
        self.history = history
        self._schedule = schedule

    # -- queues ----------------------------------------------------------------------------------------------

    def queue_seen(self, queue_id: int, name: str, settings: QueueSettings) -> QueueLife:
        """A queue was described."""
        life = self.history.lives.get(queue_id)
        if life is None:
            life = QueueLife(queue_id, name, [settings], self._schedule.now_ms)
            self.history.lives[queue_id] = life
        elif settings not in life.settings:
            life.settings.append(settings)
        return life

    def damage_seen(self, life: QueueLife) -> None:
        """The node says that a queue is damaged."""
        if life.damaged_ms is None:
            life.damaged_ms = self._schedule.now_ms

    # -- sends -----------------------------------------------------------------------------------------------

    def sending(self, batch: SentBatch) -> None:
        """A batch is about to be sent, for the first time or again."""
        batch.unanswered += 1
        for message in batch.messages:
            if message.fate == "refused":
                message.fate = "unknown"

    def send_answered(self, batch: SentBatch, result: SendResult) -> None:
        """A batch is stored, or was before."""
        batch.unanswered -= 1
        batch.answers.append(SendAnswer(result.runs, result.duplicates, result.sent_ms))
        batch.heard.append((self._schedule.now_ms, self._schedule.true_us, result.stamp_us))
        again = len(batch.answers) > 1 and len(batch.answers[0].duplicates) < len(batch.messages)
        if again and batch.life.settings[0].partitions == 1:
            return  # it says the same as before, or `one_message` will say that it does not
        duplicates = set(result.duplicates)
        for index, (message, sequence) in enumerate(
            zip(batch.messages, sequences_of(result.runs), strict=False)
        ):
            if again and message.fate != "duplicate":
                continue  # the share of a partition that was all duplicates is remembered by no number
            message.fate = "duplicate" if index in duplicates else "stored"
            message.sequence = sequence
            message.sent_ms = result.sent_ms
            message.answered_ms = self._schedule.now_ms
            message.answered_us = self._schedule.true_us
            message.stamp_us = result.stamp_us

    def send_refused(self, batch: SentBatch, failed: Failed, asked_ms: int) -> None:
        """A batch was not stored, except perhaps by an earlier attempt without an answer."""
        if failed.code == ErrorCode.BAD_REQUEST and "tell whether it was stored" in failed.message:
            return  # older than the batches that are remembered: it may have been stored
        batch.unanswered -= 1
        if failed.code == ErrorCode.DISK_FULL:
            self.history.refused_as_full.append((asked_ms, self._schedule.now_ms))
        if not batch.unanswered and not batch.answers:
            for message in batch.messages:
                message.fate = "refused"

    # -- deliveries ------------------------------------------------------------------------------------------

    def delivered(
        self,
        life: QueueLife,
        delivery: Delivery,
        body: memoryview,
        asked_ms: int,
        visibility_timeout_ms: int | None,
    ) -> list[DeliveredMessage]:
        """Messages were handed out."""
        _, lease = _TOKEN_IDENTITY.unpack_from(delivery.token)
        granted_ms = None if visibility_timeout_ms is None else delivery.until_ms - visibility_timeout_ms
        if self.history.skew_ms:
            granted_ms = None  # that is by a clock which is not this one
        found: list[DeliveredMessage] = []
        for head, batch, problem in slices(delivery.batches, body):
            counts = _each(head.receive_counts, head.count)
            firsts = _each(head.first_received_ms, head.count)
            sources = _sources(head)
            for index in range(head.count):
                message, difference = self.compare(batch, index, problem)
                found.append(
                    DeliveredMessage(
                        life,
                        message,
                        difference,
                        head.first + index,
                        lease,
                        delivery.token,
                        len(found),
                        asked_ms,
                        self._schedule.now_ms,
                        granted_ms,
                        delivery.until_ms,
                        counts[index],
                        firsts[index],
                        head.sent_ms,
                        sources[index],
                        _identifier(head, batch, index),
                    )
                )
                if message is not None:
                    message.deliveries.append(found[-1])
        self.history.deliveries += found
        return found

    def peeked(self, life: QueueLife, peeked: Peeked, body: memoryview, asked_ms: int) -> list[Sighting]:
        """Messages were peeked at."""
        found: list[Sighting] = []
        for head, batch, problem in slices(peeked.batches, body):
            for index in range(head.count):
                message, difference = self.compare(batch, index, problem)
                state = head.states[index] if head.states is not None else "ready"
                found.append(
                    Sighting(
                        life,
                        message,
                        difference,
                        head.first + index,
                        state,
                        asked_ms,
                        self._schedule.now_ms,
                    )
                )
        self.history.sightings += found
        return found

    def compare(
        self, batch: Batch | None, index: int, problem: str | None
    ) -> tuple[SentMessage | None, str | None]:
        """Which message this is, and what about it is not as it was sent."""
        if batch is None:
            return None, problem
        body = bytes(batch.body(index))
        label = body.partition(b"|")[0]
        message = self.history.messages.get(int(label)) if label.isdigit() else None
        if message is None:
            return None, f"a body that nobody sent: {body[:40]!r}"
        groups, identifiers = batch.names(GROUPS), batch.names(DEDUPLICATION)
        have = {
            "body": body,
            "attributes": batch.attributes(index),
            "group": groups[index] if groups is not None else b"",
            "deduplication_id": identifiers[index] if identifiers is not None else b"",
            "priority": batch.priorities()[index] if batch.columns & PRIORITIES else 0,
        }
        for name, value in have.items():
            if value != getattr(message, name):
                return message, f"{name} {value!r:.60} instead of {getattr(message, name)!r:.60}"
        return message, None

    def polled_in_vain(self, life: QueueLife, asked_ms: int, wait_ms: int) -> None:
        """A receiver waited for nothing."""
        self.history.empty_polls.append(EmptyPoll(life, asked_ms, self._schedule.now_ms, wait_ms))

    # -- settlements -----------------------------------------------------------------------------------------

    def settling(self, messages: Sequence[DeliveredMessage], kind: Kind, amount_ms: int) -> list[Settlement]:
        """A consumer is about to settle messages."""
        asked = [Settlement(kind, self._schedule.now_ms, amount_ms) for _ in messages]
        for message, settlement in zip(messages, asked, strict=True):
            message.settlements.append(settlement)
        return asked

    def settled(
        self,
        messages: Sequence[DeliveredMessage],
        settlements: Sequence[Settlement],
        outcome: ReceiptOutcome,
        *,
        again: bool = False,
    ) -> None:
        """The outcome for the messages of one receipt; `again`: of a repeated request."""
        stale = set(sequences_of(outcome.stale))
        settled: Result = "done-or-gone"
        if not outcome.gone:
            settled = "done"
        elif not outcome.done:
            settled = "gone"
        for message, settlement in zip(messages, settlements, strict=True):
            settlement.answered_ms = self._schedule.now_ms
            settlement.again = again
            settlement.result = "stale" if message.sequence in stale else settled
            if again and settlement.kind == "release" and settlement.result == "done":
                settlement.result = "done-or-gone"  # a lease that had ended by itself gives the same answer

    def received_again(
        self,
        messages: Sequence[DeliveredMessage],
        settlements: Sequence[Settlement],
        delivery: Delivery,
        asked_ms: int,
    ) -> bool:
        """A receive was asked again under its attempt; whether it gave the same lease, or the lease is over."""
        same = bool(messages) and delivery.token == messages[0].token
        for settlement in settlements:
            settlement.answered_ms = self._schedule.now_ms
            settlement.result = "done" if same else "stale"
            settlement.amount_ms = delivery.until_ms - asked_ms if same else settlement.amount_ms
        sequences = sorted(s for b in delivery.batches for s in range(b.first, b.first + b.count))
        if same and sequences != sorted(message.sequence for message in messages):
            found = f"lease {messages[0].lease} was asked for again and gave other messages: {sequences}"
            self.history.broken_attempts.append((self._schedule.now_ms, found))
        return same

    def not_settled(
        self, settlements: Sequence[Settlement], failed: Failed | None, *, receipts: int = 1
    ) -> None:
        """A refusal, or an unknown outcome: of several receipts some may have been settled before there was no room."""
        no_room = failed is not None and failed.code in (ErrorCode.OVERLOADED, ErrorCode.DISK_FULL)
        if no_room and receipts > 1:
            failed = None
        for settlement in settlements:
            settlement.answered_ms = self._schedule.now_ms if failed is not None else None
            settlement.result = "refused" if failed is not None else "lost"


def slices(heads: Sequence[Head], body: memoryview) -> Iterator[tuple[Head, Batch | None, str | None]]:
    """The heads of an answer with the batches that its body holds."""
    start = 0
    for head in heads:
        piece = body[start : start + head.size]
        start += head.size
        try:
            batch = Batch(piece)
        except PenstockError as error:
            yield head, None, f"a batch that cannot be read: {error.message}"
            continue
        if batch.count == head.count:
            yield head, batch, None
        else:
            yield head, None, f"a batch of {batch.count} messages where {head.count} were announced"


def _identifier(head: DeliveredBatch, batch: Batch | None, index: int) -> TimestampId:
    """The stamp of a message as it is announced; the column of the batch has the times, where there is one.

    The server's own stamps (process 0) have no counters: those of one time are in the order of sequence numbers.
    """
    stamps = batch.integers(STAMPS) if batch is not None else None
    time_us = head.stamp_us if stamps is None else stamps[index]
    return TimestampId(time_us, head.process, head.counter + index if head.process else head.first + index)


def _each(values: int | list[int], count: int) -> list[int]:
    return [values] * count if isinstance(values, int) else values


def _sources(head: DeliveredBatch) -> list[MovedFrom | None]:
    origin = head.origin
    if origin is None:
        return [None] * head.count
    return [
        MovedFrom(origin.source_id, origin.source, sequence, origin.reason, count, root, origin.late)
        for sequence, count, root in zip(
            sequences_of(origin.runs), origin.receive_counts, origin.first_homes(), strict=True
        )
    ]

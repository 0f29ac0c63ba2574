"""Queues that may lose acknowledged records: those that are `async`, and those that had an unclean election.

They may lose what only losing logs had (`lost_records.py`). All other promises apply in full (`lost_answers.py`). These
checks include the lost messages: a number means one message, a lease one delivery.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from penstock.model.records import GroupChanged, Leased, decode_record
from penstock.simulation.cluster.lost_records import LostRecords
from penstock.simulation.history import History
from penstock.simulation.message_history import QueueLife, SentMessage
from penstock.simulation.violation import Violation
from penstock.simulation.whereabouts import PartitionLog

NAME = "numbers"


def is_loose(life: QueueLife) -> bool:
    """Whether its primary acknowledges alone, or may have done so for a while."""
    return any(settings.replication == "async" for settings in life.settings)


def loose_queues(history: History) -> set[int]:
    """Queues that may lose something that was acknowledged."""
    return {life.queue_id for life in history.lives.values() if is_loose(life)} | history.unclean


def lost_messages(history: History, lost: LostRecords) -> list[SentMessage]:
    """Acknowledged, and not in the log that won."""
    return [
        message
        for message in history.messages.values()
        if message.fate == "stored" and (message.life.queue_id, message.sequence) in lost.sent
    ]


def check(
    history: History, logs: Iterable[PartitionLog], lost: LostRecords, loose: Collection[int]
) -> Iterator[Violation]:
    """Wrong bytes, and numbers used twice; called before anything is removed from the history."""
    for delivery in history.deliveries:
        if delivery.life.queue_id in loose and delivery.problem is not None:
            yield Violation(
                "I2", delivery.arrived_ms, f"a delivery of {delivery.life.name!r}: {delivery.problem}"
            )
    yield from _numbers(history, lost, loose)
    yield from _leases(history, logs, lost)


def _numbers(history: History, lost: LostRecords, loose: Collection[int]) -> Iterator[Violation]:
    """Each number that any client was told means one message; two where a primary could not cut one off that has it."""
    told = [
        (message.life.queue_id, message.sequence, message, message.answered_ms)
        for message in history.messages.values()
        if message.fate == "stored"
    ]
    told += [
        (delivery.life.queue_id, delivery.sequence, delivery.message, delivery.arrived_ms)
        for delivery in history.deliveries
        if delivery.message is not None
    ]
    told += [
        (read.life.queue_id, found.offset, found.message, read.answered_ms)
        for read in history.log.reads
        for found in read.messages
        if found.message is not None
    ]
    known: dict[tuple[int, int], list[SentMessage]] = {}
    for queue_id, sequence, message, at_ms in told:
        messages = known.setdefault((queue_id, sequence), [])
        if queue_id not in loose or message in messages:
            continue
        messages.append(message)
        if len(messages) > (2 if (queue_id, sequence) in lost.doubled else 1):
            numbers = " and ".join(f"message {one.number}" for one in messages)
            yield Violation(NAME, at_ms, f"{sequence} of queue {queue_id} is {numbers}")


def _leases(history: History, logs: Iterable[PartitionLog], lost: LostRecords) -> Iterator[Violation]:
    """No lease and no generation of the log that won has the number of one that was lost."""
    for log in logs:
        if log.queue_id not in lost.queues:
            continue
        for written in log.records:
            record = decode_record(written.head)
            where = f"partition {log.partition} of queue {log.name!r}"
            if isinstance(record, Leased) and (log.queue_id, log.ordinal, record.lease) in lost.leases:
                yield Violation(
                    NAME, record.at_ms, f"{where}: lease {record.lease} was given out by two primaries"
                )
            elif (
                isinstance(record, GroupChanged)
                and (log.queue_id, record.group, record.generation) in lost.generations
            ):
                yield Violation(
                    NAME,
                    record.at_ms,
                    f"{where}: generation {record.generation} of {record.group!r} was begun by two primaries",
                )

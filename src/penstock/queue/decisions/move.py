"""Moves messages between queues so that after a crash at any point each is in exactly one of them (I6).

source: MoveStarted     the messages are neither ready nor gone here
target: Sent(origin)    they arrive; the target remembers their origin, so a repeated move adds nothing
source: MoveFinished    gone here (only after the arrival is on disk)
target: OriginsForgotten   the source will not repeat it (only after that is on disk)
"""

from __future__ import annotations

from penstock.model import limits
from penstock.model.batch import STAMPS, Batch
from penstock.model.origin import Origin
from penstock.model.records import (
    Expired,
    MoveAbandoned,
    MoveFinished,
    MoveStarted,
    OriginsForgotten,
    Sent,
)
from penstock.model.runs import Runs, count_of, normalized, pieces_of
from penstock.queue.decisions.decision import Decision, PendingRecord
from penstock.queue.decisions.stamping import late_queue
from penstock.queue.partition import Partition
from penstock.queue.state import states


def start_move(partition: Partition, runs: Runs, target: str, now_ms: int) -> Decision[int]:
    """Sends ready messages of the runs on their way (redrive); the reply is how many."""
    ready = partition.table.among(states.RUNS_IN[states.READY], normalized(runs))
    pieces = pieces_of(ready, limits.RUNS_PER_RECORD)
    return Decision(
        [PendingRecord(MoveStarted(piece, target, "redrive", now_ms)) for piece in pieces], count_of(ready)
    )


def arrive(
    partition: Partition, batch: Batch, origin: Origin, now_ms: int, stamps: tuple[int, int, int] = (0, 0, 0)
) -> list[PendingRecord]:
    """Accepts moved messages, except those that have arrived before.

    They keep their stamps, so that consumers can see their original order. On a queue that the server stamps they get the
    next stamp instead, because they are delivered after all messages that are there.
    """
    stamp_us, process, counter = stamps
    known = partition.origins.arrived(origin.source_id, origin.runs)
    if known:
        sequences = [s for first, count in origin.runs for s in range(first, first + count)]
        arrived = {s for first, count in known for s in range(first, first + count)}
        fresh = [index for index, sequence in enumerate(sequences) if sequence not in arrived]
        if not fresh:
            return []
        batch = batch.select(fresh)
        origin = origin.part(fresh)
        counter += fresh[0] if process else 0
    if partition.settings.server_stamped:
        stamp_us, process, counter = partition.commit_wait.last_us + 1, 0, 0
        batch = batch.without_stamps() if batch.columns & STAMPS else batch
    elif batch.columns & STAMPS:
        stamp_us = 0  # the column says it
    record = Sent(
        first=partition.table.next,
        count=batch.count,
        sent_ms=max(now_ms, partition.last_sent_ms),
        delay_ms=0,
        ttl_ms=0,
        producer=0,
        number=0,
        origin=origin,
        stamp_us=stamp_us,
        process=process,
        counter=counter,
    )
    return [PendingRecord(record, batch)]


def finish_move(partition: Partition, runs: Runs, now_ms: int) -> list[PendingRecord]:
    """The target has them on disk."""
    pieces = pieces_of(_moving(partition, runs), limits.RUNS_PER_RECORD)
    return [PendingRecord(MoveFinished(piece, now_ms)) for piece in pieces]


def abandon_move(partition: Partition, runs: Runs, now_ms: int) -> list[PendingRecord]:
    """The target does not exist: messages that expired are gone, all others are ready here again."""
    written: list[PendingRecord] = []
    for (_, reason), moving in list(partition.moves.items()):
        for piece in pieces_of(moving.among(normalized(runs)), limits.RUNS_PER_RECORD):
            if reason == "expired":
                written.append(PendingRecord(Expired(piece, "ttl", now_ms)))
            else:
                written.append(PendingRecord(MoveAbandoned(piece, now_ms)))
    return written


def send_late(partition: Partition, now_ms: int, most: int | None = None) -> list[PendingRecord]:
    """Starts to move late messages that a crash or a full journal left behind. `most`: the number of batches to examine."""
    sorting = partition.sorting
    if sorting is None or not sorting.late:
        return []
    target = late_queue(partition.name)
    return [
        PendingRecord(MoveStarted(batch.runs, target, "late", now_ms, batch.lateness))
        for batch in sorting.stray(partition.table, most)
    ]


def rescue(partition: Partition, now_ms: int) -> list[PendingRecord]:
    """Saves messages of a deleted queue: late messages, and delayed ones if there is a dead-letter queue.

    It may be called as often as the deletion needs: messages that already move are not found again.
    """
    late = send_late(partition, now_ms)
    target, delayed = partition.settings.dead_letter_queue, partition.table.counts[states.DELAYED]
    if target is None or not delayed:
        return late
    runs = partition.table.runs_in(states.RUNS_IN[states.DELAYED], 1, partition.table.next, delayed)
    return late + [
        PendingRecord(
            MoveStarted(runs[start : start + limits.RUNS_PER_RECORD], target, "queue-deleted", now_ms)
        )
        for start in range(0, len(runs), limits.RUNS_PER_RECORD)
    ]


def forget_origins(
    partition: Partition, source_id: int, runs: Runs, now_ms: int, epoch: int = 0, number: int = 0
) -> list[PendingRecord]:
    """The source knows that the messages arrived. In a cluster, requests up to this place are refused from now on."""
    known = partition.origins.arrived(source_id, runs)
    pieces = pieces_of(known, limits.RUNS_PER_RECORD)
    return [PendingRecord(OriginsForgotten(source_id, piece, now_ms, epoch, number)) for piece in pieces]


def end_source(partition: Partition, source_id: int, now_ms: int) -> list[PendingRecord]:
    """The source is deleted, so nothing is remembered about it."""
    pieces = pieces_of(partition.origins.of(source_id), limits.RUNS_PER_RECORD)
    records = [OriginsForgotten(source_id, piece, now_ms) for piece in pieces]
    return [
        PendingRecord(record) for record in (*records, OriginsForgotten(source_id, [], now_ms, ended=True))
    ]


def _moving(partition: Partition, runs: Runs) -> Runs:
    wanted = normalized(runs)
    return normalized(run for moving in partition.moves.values() for run in moving.among(wanted))

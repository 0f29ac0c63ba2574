"""Decides a receive, and describes the messages that were leased or peeked at."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import Extended, Leased
from penstock.model.runs import Run, count_of, normalized
from penstock.queue.decisions.budget import Budget
from penstock.queue.decisions.decision import Decision, Granted, PendingRecord
from penstock.queue.partition import Partition
from penstock.queue.ready.groups import FifoGroups
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MASK, CHUNK_MESSAGES
from penstock.queue.state.table import MessageTable


def grant(
    partition: Partition,
    max_messages: int,
    max_bytes: int,
    visibility_timeout_ms: int | None,
    now_ms: int,
    attempt: bytes = b"",
    consumer: str = "",
) -> Decision[Granted] | None:
    """Leases the next messages to one receiver; None where nothing is ready."""
    budget = Budget(max_messages, max_bytes)
    return grant_within(partition, budget, visibility_timeout_ms, now_ms, attempt, consumer)


def grant_within(
    partition: Partition,
    budget: Budget,
    visibility_timeout_ms: int | None,
    now_ms: int,
    attempt: bytes = b"",
    consumer: str = "",
) -> Decision[Granted] | None:
    """Leases what a budget, perhaps spent in part on other queues, has room for."""
    if not partition.table.counts[states.READY]:
        return None
    chosen = partition.order.choose(budget)
    if not chosen:
        return None
    if visibility_timeout_ms is None:
        visibility_timeout_ms = partition.settings.visibility_timeout_ms
    until_ms = now_ms + visibility_timeout_ms
    lease = partition.leases.next
    runs = chosen if len(chosen) == 1 else normalized(chosen)
    record = Leased(lease, runs, now_ms, until_ms, attempt, consumer)
    return Decision((PendingRecord(record),), Granted(lease, chosen, until_ms))


def repeat(
    partition: Partition, attempt: bytes, visibility_timeout_ms: int | None, now_ms: int
) -> Decision[Granted] | None:
    """The messages that the attempt got before, extended; None if it got none, or its lease ended by time."""
    known = partition.attempts.find(attempt, now_ms)
    if known is None:
        return None
    lease = partition.leases.get(known.lease)
    runs = lease.runs() if lease is not None else []
    if count_of(runs) != known.messages:
        raise PenstockError(
            ErrorCode.ATTEMPT_CHANGED,
            f"{known.messages - count_of(runs)} of the {known.messages} messages that this receive attempt was served "
            "with were deleted, given back or expired since, so it cannot be repeated; use a new attempt id",
        )
    if visibility_timeout_ms is None:
        visibility_timeout_ms = partition.settings.visibility_timeout_ms
    until_ms = now_ms + visibility_timeout_ms
    record = Extended(known.lease, runs, now_ms, until_ms)
    if partition.sorting is not None and isinstance(partition.order, FifoGroups):
        runs = partition.order.arranged(runs)
    return Decision((PendingRecord(record),), Granted(known.lease, runs, until_ms))


StoredRun = tuple[int, int, int]
"""Position, first, messages: neighbours of one stored batch, and where it is stored."""


def stored_runs(partition: Partition, runs: Iterable[Run]) -> list[StoredRun]:
    """Cuts runs where stored batches end."""
    found: list[StoredRun] = []
    chunks = partition.table.chunks
    for first, count in runs:
        end = first + count
        while first < end:
            chunk = chunks.get(first >> CHUNK_BITS)
            if chunk is None:
                break
            position, stop = chunk.piece_of(first & CHUNK_MASK)
            stop += first & ~CHUNK_MASK
            if stop > end:
                stop = end
            found.append((position, first, stop - first))
            first = stop
    return found


def received(table: MessageTable, run: Run, default_ms: int) -> tuple[int | list[int], int | list[int]]:
    """Receive counts and times of the first receive of a run, each as one number where all are the same."""
    first, count = run
    chunk = table.chunks.get(first >> CHUNK_BITS)
    if chunk is not None and chunk.attempts is not None and chunk.first_received_ms is None:
        start = first & CHUNK_MASK
        receives = chunk.attempts[start]
        stop = start + count
        if receives < 255 and stop <= CHUNK_MESSAGES and chunk.attempts.count(receives, start, stop) == count:
            return receives, default_ms
    return _compact(table.receive_counts(run)), _compact(table.first_received(run, default_ms))


def _compact(values: list[int]) -> int | list[int]:
    return values[0] if values.count(values[0]) == len(values) else values

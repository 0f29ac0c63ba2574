"""Deciding a receive, and describing what was leased or looked at."""

from __future__ import annotations

from typing import NamedTuple

from penstock.model.records import Leased
from penstock.model.runs import Run, normalized
from penstock.queue import states
from penstock.queue.chunk import CHUNK_BITS, CHUNK_MASK
from penstock.queue.decision import Decision, Granted, Written
from penstock.queue.lanes import Budget
from penstock.queue.partition import Partition


def grant(
    partition: Partition, max_messages: int, max_bytes: int, visibility_timeout_ms: int | None, now_ms: int
) -> Decision[Granted] | None:
    """Leases the next messages to one receiver; None where nothing is ready."""
    if not partition.table.counts[states.READY]:
        return None
    chosen = partition.order.choose(Budget(max_messages, max_bytes))
    if not chosen:
        return None
    if visibility_timeout_ms is None:
        visibility_timeout_ms = partition.settings.visibility_timeout_ms
    until_ms = now_ms + visibility_timeout_ms
    lease = partition.leases.next
    runs = chosen if len(chosen) == 1 else normalized(chosen)
    record = Leased(lease, runs, now_ms, until_ms)
    return Decision((Written(record),), Granted(lease, chosen, until_ms))


class StoredRun(NamedTuple):
    """Neighbouring messages of one stored batch, and where it is stored."""

    position: int
    first: int
    messages: int


def stored_runs(partition: Partition, run: Run) -> list[StoredRun]:
    """Cuts a run where stored batches end."""
    found: list[StoredRun] = []
    first, end = run[0], run[0] + run[1]
    while first < end:
        chunk = partition.table.chunks.get(first >> CHUNK_BITS)
        if chunk is None:
            break
        position, stop = chunk.piece_of(first & CHUNK_MASK)
        count = min(end, (first & ~CHUNK_MASK) + stop) - first
        found.append(StoredRun(position, first, count))
        first += count
    return found

"""Sequence numbers as SQS writes them: twenty digits, on FIFO queues only."""

from __future__ import annotations

from penstock.frontend.resolved_queue import ResolvedQueue


def sequence_number(queue: ResolvedQueue, sequence: int) -> str | None:
    """The number of a message, None on a standard queue."""
    return f"{sequence:020d}" if queue.traits.fifo else None

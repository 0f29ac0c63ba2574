"""Skips sequence numbers: the next message of a partition gets a higher number, and the numbers between are never used."""

from __future__ import annotations

from penstock.model.number_gaps import NumberGaps
from penstock.queue.log.index import LogIndex
from penstock.queue.state.chunk import CHUNK_BITS
from penstock.queue.state.table import MessageTable

GAPS_REMEMBERED = 1_000
"""And all that lie in a log which can still be read."""


def leave_out(first: int, table: MessageTable, log: LogIndex | None, gaps: NumberGaps) -> None:
    """Makes `first` the next number; changes nothing if it already is."""
    if first == table.next:
        return
    begin = table.next if log is None else log.begin
    gaps.add(table.next, first)
    gaps.forget(begin, GAPS_REMEMBERED)
    if table.capture is not None:
        table.capture.before(table.next >> CHUNK_BITS)
    chunk = table.chunks.get(table.next >> CHUNK_BITS)
    if chunk is not None and chunk.number == first >> CHUNK_BITS:
        chunk.leave_out(first - table.next)
    elif chunk is not None and not chunk.living:  # nothing more comes into it
        del table.chunks[chunk.number]
    table.next = first
    if log is not None:
        log.next = first

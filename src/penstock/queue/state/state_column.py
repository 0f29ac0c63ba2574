"""The values in which messages of one batch differ: their state bytes, by priority, group or delay, and their times to live."""

from __future__ import annotations

from array import array

from penstock.model.batch import DELAYS, PRIORITIES, TTLS, UNSET, Batch
from penstock.model.records import Sent
from penstock.queue.state import states
from penstock.queue.state.timers import SlotTimers


def state_column(
    record: Sent,
    batch: Batch,
    groups: array[int] | None,
    delay_ms: int,
    delays: SlotTimers,
    *,
    strict: bool,
) -> bytes:
    """One state byte a message; also starts their delays."""
    first, count, sent_ms = record.first, record.count, record.sent_ms
    column = bytearray(batch.priorities() if batch.columns & PRIORITIES and not strict else count)
    own_delays = batch.integers(DELAYS) if record.origin is None else None
    if own_delays is not None:
        for index, own_ms in enumerate(own_delays):
            message_delay_ms = delay_ms if own_ms == UNSET else own_ms
            if message_delay_ms:
                column[index] |= states.DELAYED
                delays.add(sent_ms + message_delay_ms, (first + index, 1))
            else:
                column[index] |= states.READY
    elif delay_ms:
        column = column.translate(states.NEW[states.DELAYED])
        delays.add(sent_ms + delay_ms, (first, count))
    else:
        column = column.translate(states.NEW[states.READY])
    if groups is not None and not strict:
        for index, group in enumerate(groups):
            if group:
                column[index] |= states.GROUPED
    return bytes(column)


def begin_times_to_live(record: Sent, batch: Batch, expiries: SlotTimers) -> None:
    """The messages of a batch that have a time to live expire when it is over."""
    ttls = batch.integers(TTLS)
    if ttls is None:
        expiries.add(record.sent_ms + record.ttl_ms, (record.first, record.count))
        return
    for sequence, own_ms in enumerate(ttls, record.first):
        ttl_ms = record.ttl_ms if own_ms == UNSET else own_ms
        if ttl_ms:
            expiries.add(record.sent_ms + ttl_ms, (sequence, 1))

"""The newest messages of a log: where each partition must be read from to get exactly those."""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.client.connection.route import Route
from penstock.client.log.logged import LoggedMessages
from penstock.client.log.start import all_bounds, bounds
from penstock.model import limits
from penstock.model.number_gaps import NumberGaps


class _Read(Protocol):
    async def __call__(self, start: int, *, max_messages: int) -> LoggedMessages:
        """A slice of the log."""


async def newest(route: Route, messages: int, read: _Read, partition: int | None = None) -> dict[int, int]:
    """By partition: the first of the newest so many messages of all partitions; the end where it has none of them.

    `partition`: of that one alone.
    """
    if partition is not None:
        only = await bounds(route, partition=partition)
        return {partition: NumberGaps(only.gaps).back(only.begin, only.end, messages)}
    parts = await all_bounds(route)
    starts = [NumberGaps(one.gaps).back(one.begin, one.end, messages) for one in parts]
    if len(parts) == 1:
        return dict(enumerate(starts))
    most = max(1, min(messages, limits.LOG_READ_MESSAGES))
    places = zip(starts, (one.end for one in parts), strict=True)
    sent = await asyncio.gather(*(_sent(read, start, end, most) for start, end in places))
    youngest = sorted((one for times in sent for one in times), reverse=True)[:messages]
    chosen = {number for _, number in youngest}
    return {
        partition: min((number for number in chosen if start <= number < one.end), default=one.end)
        for partition, (start, one) in enumerate(zip(starts, parts, strict=True))
    }


async def _sent(read: _Read, start: int, end: int, most: int) -> list[tuple[int, int]]:
    """When messages from a number on were sent, with their numbers: up to so many. A read ends at a gap in the numbers."""
    times: list[tuple[int, int]] = []
    while start < end and len(times) < most:
        found = await read(start, max_messages=most - len(times))
        if found.next <= start:
            break
        times += [
            (batch.head.sent_ms, batch.first + place)
            for batch in found.parts
            for place in range(batch.count)
            if batch.first + place < end
        ]
        start = found.next
    return times

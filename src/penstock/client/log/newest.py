"""The newest messages of a log: where each partition has to be read from to see just those."""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.client.log.logged import LoggedMessages
from penstock.client.log.place import all_bounds
from penstock.client.route import Route
from penstock.model import limits


class _Read(Protocol):
    async def __call__(self, start: int, *, max_messages: int) -> LoggedMessages:
        """A slice of the log."""


async def newest(route: Route, messages: int, read: _Read) -> dict[int, int]:
    """By partition: the first of the newest so many messages of all partitions; the end where it has none of them."""
    parts = await all_bounds(route)
    starts = [max(one.begin, one.end - messages) for one in parts]
    if len(parts) == 1:
        return dict(enumerate(starts))
    most = max(1, min(messages, limits.LOG_READ_MESSAGES))
    slices = await asyncio.gather(*(read(start, max_messages=most) for start in starts))
    youngest = sorted(
        (
            (batch.head.sent_ms, batch.first + place)
            for found, end in zip(slices, (one.end for one in parts), strict=True)
            for batch in found.parts
            for place in range(batch.count)
            if batch.first + place < end
        ),
        reverse=True,
    )[:messages]
    chosen = {number for _, number in youngest}
    return {
        partition: min((number for number in chosen if start <= number < one.end), default=one.end)
        for partition, (start, one) in enumerate(zip(starts, parts, strict=True))
    }

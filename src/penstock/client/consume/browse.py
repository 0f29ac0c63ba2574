"""Peeks at a queue, and redrives dead letters, page by page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from penstock.client.connection.call import FutureCall
from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.consume.delivered_run import DeliveredRun, parts_of
from penstock.client.consume.message import PeekedMessage
from penstock.client_core.call import unexpected
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import LARGEST_NUMBER, going_on
from penstock.model.runs import runs_of
from penstock.wire.messages import Answer, Peek, Peeked, PeekFilter, Redrive, Redriven

T = TypeVar("T")

STEPS_PER_SECOND = 10
"""A rate is kept by this many steps a second at most."""


class Page(NamedTuple):
    """Peeked messages, and where to continue (None: that was all)."""

    parts: list[DeliveredRun]
    next: int | None

    def messages(self) -> Iterator[PeekedMessage]:
        """One view after the other."""
        for part in self.parts:
            for index in range(part.count):
                yield PeekedMessage(part, index)


async def resolved(route: Route, use: Callable[[Incarnation], Awaitable[T]]) -> T:
    """Asks with the queue's present id, and again if the queue was deleted and created again."""
    incarnation = route.incarnation or await route.resolve()
    try:
        return await use(incarnation)
    except PenstockError as error:
        if error.code is not ErrorCode.QUEUE_NOT_FOUND:
            raise
        present = await route.refresh(incarnation)
        if present is None:
            raise
        return await use(present)


async def peek_page(route: Route, start: int, max_messages: int, chosen: PeekFilter | None) -> Page:
    """One page of messages from sequence number `start` on."""

    def convert(_call: FutureCall[Page], answer: Answer, body: memoryview) -> Page:
        if not isinstance(answer, Peeked):
            raise unexpected(answer)
        return Page(parts_of(route.name, answer.batches, body), answer.next)

    def ask(incarnation: Incarnation) -> asyncio.Future[Page]:
        call = FutureCall(route.link.loop, convert)
        route.link.start(call, Peek(incarnation.queue_id, start, max_messages, chosen))
        return call.future

    return await resolved(route, ask)


async def pages(
    route: Route, start: int, limit: int | None, chosen: PeekFilter | None
) -> AsyncIterator[Page]:
    """All pages from `start` on, up to `limit` messages."""
    left = limit
    place: int | None = start
    while place is not None and (left is None or left > 0):
        wanted = limits.PEEK_MESSAGES if left is None else min(left, limits.PEEK_MESSAGES)
        page = await peek_page(route, place, wanted, chosen)
        yield page
        place = page.next
        if left is not None:
            left -= sum(part.count for part in page.parts)


async def redrive(
    route: Route,
    *,
    target: str | None,
    max_messages: int | None,
    rate: float | None,
    sequences: Iterable[int] | None,
    chosen: PeekFilter | None,
    on_progress: Callable[[int], None] | None,
) -> int:
    """Moves dead letters on, step by step; returns how many are on their way."""
    if rate is not None and not rate > 0:
        raise refused(f"rate is {rate}: give messages per second, above 0")
    runs = None if sequences is None else runs_of(sorted(set(sequences)))
    description = await route.describe()
    # If a partition does not answer, its numbers are unknown: then the only end is that of the queue.
    end = description.statistics.next_sequence if description.damage is None else LARGEST_NUMBER
    partitions = description.settings.partitions
    incarnation = await route.resolve()
    loop = route.link.loop
    step = (
        limits.MOVE_MESSAGES
        if rate is None
        else max(1, min(limits.MOVE_MESSAGES, int(rate / STEPS_PER_SECOND)))
    )
    began, moved = loop.time(), 0
    start: int | None = 0
    while start is not None and end > 1 and (max_messages is None or moved < max_messages):
        wanted = step if max_messages is None else min(step, max_messages - moved)
        request = Redrive(incarnation.queue_id, target, wanted, start, runs, chosen)
        # Sent again, it would move a second step: with a limit that is one step too many.
        answer = await route.link.ask(request, Redriven, resend=max_messages is None)
        moved += answer.messages
        start = going_on(answer.next, end, partitions)
        if on_progress is not None and answer.messages:
            on_progress(moved)
        if rate is not None and start is not None:
            await asyncio.sleep(max(0.0, began + moved / rate - loop.time()))
    return moved

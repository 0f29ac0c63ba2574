"""Places in a log as people name them: a sequence number, an end of it, or a time."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from typing import Literal

from penstock.client.browse import resolved
from penstock.client.failure import refused
from penstock.client.incarnation import Incarnation
from penstock.client.log.offset_gone import OffsetGone
from penstock.client.route import Route
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import FindOffset
from penstock.wire.log_messages import LogBounds as FoundBounds

Start = int | Literal["beginning", "end"]
"""A sequence number, or an end of the log."""
Moment = datetime | timedelta
"""A time, or how long ago it was."""
WhenGone = Literal["fail", "earliest"]
"""What a reader does when the log has let go of what it wants: raise `OffsetGone`, or go on where the log begins."""


def check_place(start: Start | None, from_time: Moment | None) -> None:
    """Raises with the argument that names no place."""
    if start is not None and from_time is not None:
        raise refused("give a start or a from_time, not both")
    if isinstance(start, str):
        if start not in ("beginning", "end"):
            raise refused(f"start is {start!r}: give a sequence number, 'beginning' or 'end'")
    elif start is not None and start < 0:
        raise refused(f"start is {start!r}: give a sequence number, 'beginning' or 'end'")
    if from_time is not None and not isinstance(from_time, datetime | timedelta):
        raise refused(f"from_time is {from_time!r}: give a datetime, or a timedelta for how long ago")


def check_when_gone(when_gone: WhenGone) -> None:
    """Raises unless it is one of the two."""
    if when_gone not in ("fail", "earliest"):
        raise refused(f"when_gone is {when_gone!r}: use 'fail' or 'earliest'")


def time_ms(moment: Moment) -> int:
    """Milliseconds since 1970; a datetime without a time zone is local time."""
    if isinstance(moment, timedelta):
        return max(0, round((time.time() - moment.total_seconds()) * 1000))
    return max(0, round(moment.timestamp() * 1000))


async def bounds(route: Route, at_ms: int | None = None) -> FoundBounds:
    """Where the log begins and ends, and the first message sent at or after the time."""
    return await resolved(
        route,
        lambda incarnation: route.link.ask(FindOffset(incarnation.queue_id, at_ms), FoundBounds),
    )


async def resolve_place(
    route: Route, start: Start | None, from_time: Moment | None
) -> tuple[int, FoundBounds]:
    """The sequence number that is meant, and the bounds of the log; the beginning where nothing is named."""
    found = await bounds(route, None if from_time is None else time_ms(from_time))
    if from_time is not None:
        return found.found, found
    if start is None or start == "beginning":
        return found.begin, found
    if start == "end":
        return found.end, found
    if start > found.end:
        raise refused(
            f"the log of {route.name!r} has no message {start} yet: the next one will be {found.end}. "
            "Read from 'end' to wait for it"
        )
    return max(start, 1), found  # numbers begin at 1: 0 is the beginning of everything


async def offset_gone(route: Route, incarnation: Incarnation, wanted: int) -> OffsetGone:
    """What to tell a reader whose place is gone."""
    found = await route.link.ask(FindOffset(incarnation.queue_id), FoundBounds)
    return OffsetGone(
        f"the log of {route.name!r} no longer has message {wanted}: it begins at {found.begin}",
        wanted,
        found.begin,
    )


def is_gone(error: PenstockError) -> bool:
    """Whether the log has let go of what was asked for."""
    return error.code is ErrorCode.OFFSET_GONE

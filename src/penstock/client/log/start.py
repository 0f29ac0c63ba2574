"""Positions in a log as users name them: a sequence number, an end, or a time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.consume.browse import resolved
from penstock.client.log.offset_gone import OffsetGone
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import number_in_partition, partition_of
from penstock.wire.log_messages import FindOffset
from penstock.wire.log_messages import LogBounds as FoundBounds

PartitionStart = int | Literal["beginning", "end"]
"""Of one partition: a sequence number, or an end of its log."""
Start = PartitionStart | Mapping[int, PartitionStart]
"""The same, of the partition that the number is of, or an end of all; or a place for each of some partitions."""
Moment = datetime | timedelta
"""A time, or how long ago it was."""
WhenGone = Literal["fail", "earliest"]
"""The behaviour when the log has removed the requested messages: raise `OffsetGone`, or continue at the beginning of the log."""


def check_start(start: Start | None, from_time: Moment | None) -> None:
    """Raises with the argument that names no place."""
    if start is not None and from_time is not None:
        raise refused("give a start or a from_time, not both")
    if isinstance(start, Mapping):
        for partition, place in start.items():
            check_partition(partition)
            check_start(place, None)
            if isinstance(place, int) and partition_of(place) != partition:
                raise refused(
                    f"message {place} is of partition {partition_of(place)}, not {partition}: take numbers from "
                    "messages, or from `partitions()`"
                )
    elif isinstance(start, str):
        if start not in ("beginning", "end"):
            raise refused(f"start is {start!r}: give a sequence number, 'beginning' or 'end'")
    elif start is not None and start < 0:
        raise refused(f"start is {start!r}: give a sequence number, 'beginning' or 'end'")
    if from_time is not None and not isinstance(from_time, datetime | timedelta):
        raise refused(f"from_time is {from_time!r}: give a datetime, or a timedelta for how long ago")


def check_partition(partition: int) -> None:
    """Raises unless it can be the ordinal of a partition."""
    if partition < 0:
        raise refused(f"partition is {partition!r}: they are numbered from 0 on")


def check_when_gone(when_gone: WhenGone) -> None:
    """Raises unless it is one of the two."""
    if when_gone not in ("fail", "earliest"):
        raise refused(f"when_gone is {when_gone!r}: use 'fail' or 'earliest'")


def time_ms(moment: Moment) -> int:
    """Milliseconds since 1970; a datetime without a time zone is local time."""
    if isinstance(moment, timedelta):
        return max(0, round((time.time() - moment.total_seconds()) * 1000))
    return max(0, round(moment.timestamp() * 1000))


async def partitions_of(route: Route, *, look: bool = False) -> range:
    """The ordinals of all partitions of the queue; `look`: as the server says now."""
    if look or route.description is None:
        await route.describe()
    assert route.description is not None
    return range(route.description.settings.partitions)


async def bounds(route: Route, at_ms: int | None = None, partition: int = 0) -> FoundBounds:
    """The ends of a partition's log, and its first message sent at or after the time."""
    return await resolved(
        route,
        lambda incarnation: route.link.ask(FindOffset(incarnation.queue_id, at_ms, partition), FoundBounds),
    )


async def all_bounds(route: Route, at_ms: int | None = None) -> list[FoundBounds]:
    """The same for every partition, by ordinal."""
    partitions = await partitions_of(route, look=True)
    return await asyncio.gather(*(bounds(route, at_ms, partition) for partition in partitions))


async def resolve_place(
    route: Route, start: PartitionStart | None, from_time: Moment | None, partition: int = 0
) -> tuple[int, FoundBounds]:
    """The sequence number that is meant, and the bounds of the partition; the beginning where nothing is named."""
    found = await bounds(route, None if from_time is None else time_ms(from_time), partition)
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
    return start if number_in_partition(start) else start + 1, found  # numbers begin at 1: 0 is the beginning


async def offset_gone(route: Route, incarnation: Incarnation, wanted: int) -> OffsetGone:
    """The error for a reader whose position is gone."""
    found = await route.link.ask(
        FindOffset(incarnation.queue_id, partition=partition_of(wanted)), FoundBounds
    )
    return OffsetGone(
        f"the log of {route.name!r} no longer has message {wanted}: it begins at {found.begin}",
        wanted,
        found.begin,
    )


def is_gone(error: PenstockError) -> bool:
    """Whether the log has removed the requested messages."""
    return error.code is ErrorCode.OFFSET_GONE

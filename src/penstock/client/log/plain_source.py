"""Reads a log from some position on without a group: one partition, several, or all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from penstock.client.connection.failure import refused
from penstock.client.connection.route import Route
from penstock.client.log.logged import LoggedMessages
from penstock.client.log.merge import Merge
from penstock.client.log.read_ahead import Pace, ReadAhead
from penstock.client.log.start import (
    Moment,
    PartitionStart,
    Start,
    WhenGone,
    check_partition,
    check_start,
    check_when_gone,
    is_gone,
    offset_gone,
    partitions_of,
    resolve_place,
)
from penstock.model.errors import PenstockError
from penstock.model.partition_numbers import partition_of

Stop = int | Mapping[int, int]
"""Reading ends before this message: of its partition, or a message for each partition."""


class ReadTerms(msgspec.Struct, frozen=True):
    """What a reader without a group asks for."""

    start: Start | None
    from_time: Moment | None
    follow: bool
    limit: int | None
    when_gone: WhenGone
    pace: Pace
    partition: int | None = None
    """Only this one."""
    stop: Stop | None = None
    by_time: bool = False
    """Whether partitions are merged by the time of sending."""
    direct: bool = False
    """Whether nodes of a cluster are asked themselves."""

    def check(self) -> None:
        """Raises with the argument that cannot be."""
        check_start(self.start, self.from_time)
        check_when_gone(self.when_gone)
        self.pace.check()
        if self.limit is not None and self.limit < 0:
            raise refused(f"limit is {self.limit}: give a number of messages")
        if self.stop is not None and self.follow:
            raise refused("follow and stop exclude each other: omit one of them")
        if self.partition is not None:
            check_partition(self.partition)
        named = self.named()
        for partition, number in self.stops().items():
            if partition_of(number) != partition or (named is not None and partition not in named):
                raise refused(
                    f"stop is message {number} of partition {partition_of(number)}, which is not read"
                )

    def named(self) -> set[int] | None:
        """The partitions that the terms name; None: all of them."""
        start, partition = self.start, self.partition
        if isinstance(start, Mapping):
            found = set(start)
        elif isinstance(start, int):
            found = {partition_of(start)}
        else:
            return None if partition is None else {partition}
        if partition is not None and found != {partition}:
            raise refused(f"partition is {partition}, and start names partition {min(found, default=0)}")
        return found

    def start_of(self, partition: int) -> PartitionStart | None:
        """Where reading begins in a partition."""
        return self.start[partition] if isinstance(self.start, Mapping) else self.start

    def stops(self) -> Mapping[int, int]:
        """Where reading ends in each partition with a stop."""
        stop = self.stop
        if stop is None:
            return {}
        return stop if isinstance(stop, Mapping) else {partition_of(stop): stop}


class _ReadBounds(NamedTuple):
    """Where reading began, and how far it may go."""

    start: int
    left: int | None


class PartitionSource:
    """Reads one partition."""

    def __init__(self, route: Route, terms: ReadTerms, partition: int) -> None:
        self._route = route
        self._terms = terms
        self._partition = partition
        self._ahead: ReadAhead | None = None
        self._place = _ReadBounds(0, terms.limit)
        self._end: int | None = None
        """Where a reader that does not follow stops."""
        self._closed = False

    @property
    def epoch(self) -> int:
        """Constant, because it never begins again."""
        return 0

    @property
    def idle(self) -> bool:
        """Whether it waits where the log ends."""
        return self._ahead is not None and self._ahead.caught_up

    @property
    def standing_by(self) -> bool:
        """Never, because it reads without a group."""
        return False

    async def begin(self) -> None:
        """Finds the position; the present end of the log is the stop of a reader that does not follow."""
        if self._ahead is not None or self._closed:
            return
        terms, partition = self._terms, self._partition
        start, found = await resolve_place(self._route, terms.start_of(partition), terms.from_time, partition)
        stop = terms.stops().get(partition)
        if stop is not None and stop > found.end:
            raise refused(f"the log of {self._route.name!r} ends at {found.end}, and stop is {stop}")
        self._end = None if terms.follow else found.end if stop is None else stop
        self._read_from(_ReadBounds(start, terms.limit), found.end)

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice; raises `OffsetGone` if the log begins later, unless it should continue there."""
        while not self._closed:
            ahead = self._ahead
            if ahead is None:
                await self.begin()
                continue
            try:
                return await ahead.next()
            except PenstockError as error:
                if not is_gone(error):
                    raise
                await self._go_on_after_gap(ahead)
        return None

    def _read_from(self, place: _ReadBounds, end: int) -> None:
        incarnation = self._route.incarnation
        if incarnation is not None and not self._closed:
            self._place = place
            pace, through = self._terms.pace, None
            if self._terms.direct:
                through = self._route.direct.partition(incarnation.queue_id, self._partition)
            self._ahead = ReadAhead(
                self._route,
                incarnation,
                place.start,
                end,
                stop=self._end,
                limit=place.left,
                pace=pace,
                through=through,
            )

    async def _go_on_after_gap(self, ahead: ReadAhead) -> None:
        gone = await offset_gone(self._route, ahead.incarnation, ahead.position)
        if self._terms.when_gone == "fail":
            raise gone
        ahead.close()
        left = self._place.left
        if left is not None:
            left -= ahead.given
        self._read_from(_ReadBounds(gone.begin, left), gone.begin)

    def close(self) -> None:
        """Asks for nothing more."""
        self._closed = True
        if self._ahead is not None:
            self._ahead.close()


class PlainSource:
    """Reads the partitions of its terms, without a group."""

    def __init__(self, route: Route, terms: ReadTerms) -> None:
        terms.check()
        self.link = route.link
        self._route = route
        self._terms = terms
        self._parts: list[PartitionSource] = []
        self._merge: Merge | None = None
        self._left = terms.limit
        self.closed = False
        """Whether it has ended."""

    def epoch_of(self, number: int) -> int:
        """Constant, because it never begins again."""
        return 0

    async def begin(self) -> None:
        """Finds the positions; the present end of the log is the stop of a reader that does not follow."""
        if self._parts or self.closed:
            return
        terms = self._terms
        await self._route.resolve()
        chosen = terms.named()
        parts = [
            PartitionSource(self._route, terms, partition)
            for partition in (await partitions_of(self._route) if chosen is None else sorted(chosen))
        ]
        await asyncio.gather(*(part.begin() for part in parts))
        if not self._parts:
            self._parts = parts
            if len(parts) > 1:
                self._merge = Merge(parts, by_time=terms.by_time, follow=terms.follow)

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice; raises `OffsetGone` if the log begins later, unless it should continue there."""
        await self.begin()
        if self.closed or not self._parts or self._left == 0:
            return None
        found = await (self._merge.next() if self._merge is not None else self._parts[0].next_slice())
        if found is not None and self._left is not None:
            found = found.shortened(self._left)
            self._left -= len(found)
        return found

    def handed_out(self, following: int, epoch: int) -> None:
        """Does nothing: no progress is stored."""

    async def close(self) -> None:
        """Asks for nothing more."""
        self.closed = True
        if self._merge is not None:
            self._merge.close()
        for part in self._parts:
            part.close()

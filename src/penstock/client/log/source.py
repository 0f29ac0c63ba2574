"""Where slices of a log come from, and how they are handed out: whole, or message by message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from penstock.client.failure import refused
from penstock.client.link import Link
from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.place import (
    Moment,
    Start,
    WhenGone,
    check_place,
    check_when_gone,
    is_gone,
    offset_gone,
    resolve_place,
)
from penstock.client.log.read_ahead import Pace, ReadAhead
from penstock.client.route import Route
from penstock.model.errors import PenstockError


class Source(Protocol):
    """Gives slices in order, and is told what becomes of them."""

    @property
    def link(self) -> Link:
        """The connection it reads over."""

    @property
    def closed(self) -> bool:
        """Whether it has ended, or is about to."""

    @property
    def epoch(self) -> int:
        """Grows when reading begins anew somewhere else: what was not handed out of earlier slices is void."""

    async def begin(self) -> None:
        """Finds its place; without it the first slice does."""

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice; None at the end."""

    def handed_out(self, following: int, epoch: int) -> None:
        """The user has everything before `following` and asked for more: what was handed out before is done with."""

    async def close(self) -> None:
        """Ends it."""


class Terms(NamedTuple):
    """What a reader without a group asks for."""

    start: Start | None
    from_time: Moment | None
    follow: bool
    limit: int | None
    when_gone: WhenGone
    pace: Pace

    def check(self) -> None:
        """Raises with the argument that cannot be."""
        check_place(self.start, self.from_time)
        check_when_gone(self.when_gone)
        self.pace.check()
        if self.limit is not None and self.limit < 0:
            raise refused(f"limit is {self.limit}: give a number of messages")


class PlainSource:
    """Reads a log from some place on, for nobody but itself."""

    def __init__(self, route: Route, terms: Terms) -> None:
        terms.check()
        self.link = route.link
        self._route = route
        self._terms = terms
        self._ahead: ReadAhead | None = None
        self._began = 0
        self._left: int | None = None
        """How many messages may be read from there on; None: no limit."""
        self._end: int | None = None
        """Where a reader that does not follow stops."""
        self.closed = False
        """Whether it has ended."""

    @property
    def epoch(self) -> int:
        """It never begins anew."""
        return 0

    async def begin(self) -> None:
        """Finds the place; where the log ends now is where a reader that does not follow stops."""
        if self._ahead is None and not self.closed:
            await self._begin()

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice; raises `OffsetGone` where the log begins later, unless told to go on there."""
        while not self.closed:
            ahead = self._ahead
            if ahead is None:
                await self._begin()
                continue
            try:
                return await ahead.next()
            except PenstockError as error:
                if not is_gone(error):
                    raise
                await self._go_on_after_gap(ahead)
        return None

    async def _begin(self) -> None:
        terms, route = self._terms, self._route
        start, found = await resolve_place(route, terms.start, terms.from_time)
        self._left = terms.limit
        self._end = None if terms.follow else found.end
        self._read_from(start, found.end)

    def _read_from(self, start: int, end: int) -> None:
        incarnation = self._route.incarnation
        if incarnation is not None and not self.closed:
            last = None if self._left is None else start + self._left
            stop = min((one for one in (last, self._end) if one is not None), default=None)
            self._began = start
            self._ahead = ReadAhead(self._route, incarnation, start, end, stop=stop, pace=self._terms.pace)

    async def _go_on_after_gap(self, ahead: ReadAhead) -> None:
        gone = await offset_gone(self._route, ahead.incarnation, ahead.position)
        if self._terms.when_gone == "fail":
            raise gone
        ahead.close()
        if self._left is not None:
            self._left -= ahead.position - self._began
        self._read_from(gone.begin, gone.begin)

    def handed_out(self, following: int, epoch: int) -> None:
        """Nobody keeps account."""

    async def close(self) -> None:
        """Asks for nothing more."""
        self.closed = True
        if self._ahead is not None:
            self._ahead.close()


class Steps:
    """Goes through slices message by message. Nothing here waits: whoever uses it brings the slices."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._messages: Iterator[LoggedMessage] | None = None
        self._epoch = -1

    def take(self, found: LoggedMessages, epoch: int) -> None:
        """The next slice."""
        self._messages = iter(found)
        self._epoch = epoch

    def step(self) -> LoggedMessage | None:
        """The next message; None: bring another slice."""
        if self._messages is not None and self._epoch == self._source.epoch:
            for message in self._messages:
                self._source.handed_out(message.sequence + 1, self._epoch)
                return message
        self._messages = None
        return None

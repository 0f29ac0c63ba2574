"""Reads of a log that were sent to a server; `client_core.read_ahead` decides how far to read ahead."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.log.direct import ReadsThrough
from penstock.client.log.logged import LoggedMessages
from penstock.client_core.call import Call, unexpected
from penstock.client_core.read_ahead import (
    Arrived,
    Contradiction,
    Dropped,
    Effect,
    Question,
    RangeRead,
    ReadAnswer,
    ReadingAhead,
)
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import LogSlice, ReadLog
from penstock.wire.messages import Answer


class Claim(NamedTuple):
    """The group member for which a partition is read; empty: none."""

    group: str = ""
    member: str = ""
    generation: int = 0


NOBODY = Claim()


class Pace(NamedTuple):
    """How far to read ahead."""

    slice_bytes: int
    in_flight: int

    def check(self) -> None:
        """Raises with the argument that cannot be."""
        if not 1 <= self.slice_bytes <= limits.LOG_READ_BYTES:
            raise refused(f"slice_bytes is {self.slice_bytes}: use 1 to {limits.LOG_READ_BYTES}")
        if not 1 <= self.in_flight <= 64:
            raise refused(f"in_flight is {self.in_flight}: use 1 to 64")


class _Read(Call):
    """A range that was requested, and the future of its answer."""

    __slots__ = ("_ahead", "future", "range")

    def __init__(self, ahead: ReadAhead, asked: RangeRead, future: asyncio.Future[LoggedMessages]) -> None:
        super().__init__()
        self._ahead = ahead
        self.range = asked
        self.future = future

    def succeed(self, answer: Answer, body: memoryview) -> None:
        """A slice came."""
        if isinstance(answer, LogSlice):
            self._ahead.arrived(self, answer, body)
        else:
            self.fail(unexpected(answer))

    def fail(self, error: PenstockError) -> None:
        """The server refused."""
        if not self.future.done():
            self.future.set_exception(error)

    def abandoned(self) -> bool:
        """Whether the reader has stopped."""
        return self.future.done()


class ReadAhead:
    """Slices of a log from `start` on: to the number `stop`, about so many messages (`limit`), or without end."""

    def __init__(
        self,
        route: Route,
        incarnation: Incarnation,
        start: int,
        end: int,
        *,
        stop: int | None = None,
        limit: int | None = None,
        claim: Claim = NOBODY,
        pace: Pace,
        through: ReadsThrough | None = None,
    ) -> None:
        self.incarnation = incarnation
        self.claim = claim
        self._route = route
        self._through: ReadsThrough = route.link if through is None else through
        self._ahead = ReadingAhead(
            start,
            end,
            stop=stop,
            limit=limit,
            slice_bytes=pace.slice_bytes,
            in_flight=pace.in_flight,
        )
        self._reads: dict[RangeRead, _Read] = {}
        """Those that were asked for and not handed out yet."""
        self._closed = False

    @property
    def position(self) -> int:
        """The first message that was not handed out yet."""
        return self._ahead.position

    @property
    def given(self) -> int:
        """How many messages were handed out."""
        return self._ahead.given

    @property
    def caught_up(self) -> bool:
        """Whether everything that the log is known to have was handed out, and the next read waits for more."""
        first = self._ahead.first
        return first is not None and first.waits and not self._reads[first].future.done()

    async def next(self) -> LoggedMessages | None:
        """The next slice, never an empty one; None at `stop` and after `close`. Raises what the server refused."""
        while not self._closed:
            self._carry_out(self._ahead.plan())
            first = self._ahead.first
            if first is None:
                return None
            read = self._reads[first]
            await asyncio.wait([read.future])  # the read outlives the caller that waits for it
            if first is not self._ahead.first:
                return None  # closed meanwhile
            found = read.future.result()
            del self._reads[first]
            self._ahead.hand_out(found.next, len(found))
            self._carry_out(self._ahead.plan())
            if len(found):
                return found
        return None

    def close(self) -> None:
        """Requests nothing more; waiting calls of `next` return None."""
        self._closed = True
        for read in self._ahead.close():
            self._drop(read)

    def arrived(self, read: _Read, answer: LogSlice, body: memoryview) -> None:
        """Called by the read: keeps the slice and asks for what follows."""
        if self._closed or read.future.done():
            return
        slice_read = LoggedMessages(self._route.name, read.range.start, answer, body)
        found = ReadAnswer(
            slice_read.first,
            answer.next,
            answer.end,
            len(slice_read),
            slice_read.size_bytes,
            slice_read.batch_messages,
        )
        self._carry_out(self._ahead.arrived(read.range, found), slice_read)

    def _carry_out(self, effects: Iterable[Effect], found: LoggedMessages | None = None) -> None:
        """`found`: the answer that just arrived."""
        for effect in effects:
            match effect:
                case Question():
                    self._ask(effect)
                case Dropped(dropped):
                    self._drop(dropped)
                case Arrived(arrived, up_to):
                    if found is not None:
                        wanted = found if up_to is None else found.up_to(up_to)
                        self._reads[arrived].future.set_result(wanted)
                case Contradiction(wrong):
                    if found is not None:
                        self._reads[wrong].fail(_contradiction(wrong.start, found.next))

    def _ask(self, question: Question) -> None:
        """Sends the request; the link sends it again on a new connection."""
        asked = question.read
        read = self._reads.get(asked)
        if read is None:
            read = self._reads[asked] = _Read(self, asked, self._route.link.loop.create_future())
        request = ReadLog(
            self.incarnation.queue_id,
            asked.start,
            question.max_messages,
            question.max_bytes,
            question.wait_ms,
            *self.claim,
        )
        self._through.start(read, request)

    def _drop(self, dropped: RangeRead) -> None:
        """Drops requested ranges that are not needed any more."""
        read = self._reads.pop(dropped)
        if not read.future.cancel():
            read.future.exception()  # read the exception, so that asyncio does not warn


def _contradiction(start: int, following: int) -> PenstockError:
    return PenstockError(
        ErrorCode.INTERNAL,
        f"the server answered a read of the log from {start} with an answer that continues at {following}",
    )

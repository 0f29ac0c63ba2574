"""Reading ahead: several reads of a log on their way at once, handed out in order.

The server answers a read with as much as fits, so where the next one begins is known only with the answer. To have
several on their way all the same, the log is asked for in ranges: as many messages as should fit, judging by the
last answer. Where they did not, the rest of the range is asked for before the next range is handed out. Where the
log ends, one read without an end waits for what comes.

Numbers may have gaps, of millions: after a failover that may have lost messages. A read that begins in one is answered with what
lies behind it, so nobody goes through it range by range: what was asked for further on is forgotten, and asked for again from there.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.log.direct import ReadsThrough
from penstock.client.log.logged import LoggedMessages
from penstock.client_core.call import Call, unexpected
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import LogSlice, ReadLog
from penstock.wire.messages import Answer

WAIT_MS = 20 * limits.SECOND_MS
"""How long one read waits at the end of the log before it is asked anew."""


class Claim(NamedTuple):
    """On whose behalf a group's share is read; empty: nobody's."""

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
    """One range of the log that was asked for; it stays in line until it is handed out."""

    __slots__ = ("_ahead", "future", "left", "start", "stop", "waits")

    def __init__(
        self,
        ahead: ReadAhead,
        start: int,
        stop: int | None,
        left: int | None,
        future: asyncio.Future[LoggedMessages],
    ) -> None:
        super().__init__()
        self._ahead = ahead
        self.start = start
        self.stop = stop
        """None: as far as one answer reaches."""
        self.left = left
        """So many messages are wanted from `start` on; None: as many as there are."""
        self.future = future
        self.waits = False
        """Whether it was asked where the log ended: then nothing may come of it."""

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
        """Whether nobody reads any more."""
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
        self.position = start
        """The first message that was not handed out yet."""
        self.given = 0
        """How many messages were handed out."""
        self._route = route
        self._through: ReadsThrough = route.link if through is None else through
        self._stop = stop
        self._wanted_to = None if limit is None else start + limit
        """Before which number as many messages are as are wanted, as far as gaps are known."""
        self._pace = pace
        self._end = end
        self._planned = start
        """Everything before it was asked for."""
        self._range_messages = 0
        """How many messages should make a slice; 0: not known before the first answer."""
        self._reads: deque[_Read] = deque()
        self._endless: _Read | None = None
        """The read under way of which nobody knows where it will end."""
        self._closed = False

    @property
    def caught_up(self) -> bool:
        """Whether everything that the log is known to have was handed out, and the next read waits for more."""
        return bool(self._reads) and self._reads[0].waits and not self._reads[0].future.done()

    async def next(self) -> LoggedMessages | None:
        """The next slice, never an empty one; None at `stop` and after `close`. Raises what the server refused."""
        while not self._closed:
            self._plan()
            if not self._reads:
                return None
            read = self._reads[0]
            await asyncio.wait([read.future])  # the read outlives whoever waits for it
            if not self._reads or read is not self._reads[0]:
                return None  # closed meanwhile
            found = read.future.result()
            self._reads.popleft()
            self._plan()
            if len(found):
                self.position = found.next
                self.given += len(found)
                return found
        return None

    def close(self) -> None:
        """Asks for nothing more; whoever waits in `next` gets None."""
        self._closed = True
        while self._reads:
            self._forget(self._reads.pop())

    def _forget(self, read: _Read) -> None:
        """Nobody wants what was asked for any more."""
        if not read.future.cancel():
            read.future.exception()  # seen, so that nobody warns of it
        if read is self._endless:
            self._endless = None

    # -- planning --------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        """Asks for what may be asked for now."""
        stop = self._last()
        while not self._closed and self._endless is None and len(self._reads) < self._pace.in_flight:
            if stop is not None and self._planned >= stop:
                return
            if self._planned < self._end and self._range_messages:
                until = min(self._planned + self._range_messages, self._end)
                read = self._read(self._planned, until if stop is None else min(until, stop))
                self._planned = read.stop or 0
            else:
                read = self._endless = self._read(self._planned, None)
            self._reads.append(read)
            self._ask(read)

    def _last(self) -> int | None:
        """Before which number reading ends."""
        return min((one for one in (self._stop, self._wanted_to) if one is not None), default=None)

    def _read(self, start: int, stop: int | None) -> _Read:
        left = None if self._wanted_to is None else self._wanted_to - start
        return _Read(self, start, stop, left, self._route.link.loop.create_future())

    def _ask(self, read: _Read) -> None:
        """Sends the request; the link sends it again on a new connection."""
        slice_bytes = self._pace.slice_bytes
        if read.stop is None:
            last = self._last()
            most = limits.LOG_READ_MESSAGES if last is None else last - read.start
            wait_ms = 0 if read.start < self._end else WAIT_MS
            size = slice_bytes
        else:
            most, wait_ms = read.stop - read.start, 0
            size = 2 * slice_bytes  # messages of a range may be larger than those before
        read.waits = wait_ms > 0
        request = ReadLog(
            self.incarnation.queue_id,
            read.start,
            min(most, limits.LOG_READ_MESSAGES),
            min(size, limits.LOG_READ_BYTES),
            wait_ms,
            *self.claim,
        )
        self._through.start(read, request)

    def arrived(self, read: _Read, answer: LogSlice, body: memoryview) -> None:
        """Called by the read: keeps the slice and asks for what follows."""
        if self._closed or read.future.done():
            return
        self._end = max(self._end, answer.end)
        empty = answer.next <= read.start
        if empty and read.waits:
            self._ask(read)  # nothing came in time: it asks on
            return
        found = LoggedMessages(self._route.name, read.start, answer, body)
        leaps = found.first > read.start or not len(found)
        if (
            empty
            or found.first < read.start
            or (len(found) and len(found) != answer.next - found.first)
            or (not leaps and read.stop is not None and answer.next > read.stop)
        ):
            read.fail(_contradiction(read.start, answer.next))
            return
        if len(found):
            self._learn(found)
        if leaps:
            found = self._leap(read, found)
        elif read is self._endless:
            self._endless = None
            self._planned = answer.next
        elif read.stop is not None and answer.next < read.stop:
            rest = self._read(answer.next, read.stop)
            read.stop = answer.next
            self._reads.insert(self._reads.index(read) + 1, rest)
            self._ask(rest)
        read.future.set_result(found)
        self._plan()

    def _leap(self, read: _Read, found: LoggedMessages) -> LoggedMessages:
        """No message has the numbers that were asked for, up to those that came: reading goes on behind these."""
        while self._reads[-1] is not read:
            self._forget(self._reads.pop())
        if read is self._endless:
            self._endless = None
        behind = found.first if len(found) else found.next
        if read.left is not None:
            self._wanted_to = behind + read.left
        last = self._last()
        self._planned = read.stop = found.next
        if last is not None and last < found.next:
            self._planned = last
            found = found.up_to(last)
        return found

    def _learn(self, found: LoggedMessages) -> None:
        """How many messages make a slice; whole batches, where all are of one size, since cutting one costs a copy."""
        messages = max(1, len(found) * self._pace.slice_bytes // max(1, found.size_bytes))
        batch = found.batch_messages
        if batch < messages:
            messages -= messages % batch
        self._range_messages = min(messages, limits.LOG_READ_MESSAGES)


def _contradiction(start: int, following: int) -> PenstockError:
    return PenstockError(
        ErrorCode.INTERNAL,
        f"the server answered a read of the log from {start} with something that goes on at {following}",
    )

"""The log of a queue as a client holds it: where it begins and ends, reading it, groups of readers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import NamedTuple

from penstock.client.browse import resolved
from penstock.client.call import FutureCall, unexpected
from penstock.client.duration import Duration, milliseconds, optional_milliseconds
from penstock.client.failure import refused
from penstock.client.incarnation import Incarnation
from penstock.client.log import groups
from penstock.client.log.group_reader import GroupReader, JoinTerms
from penstock.client.log.logged import LoggedMessages
from penstock.client.log.place import (
    Moment,
    Start,
    WhenGone,
    bounds,
    check_place,
    is_gone,
    offset_gone,
    time_ms,
)
from penstock.client.log.read_ahead import Pace
from penstock.client.log.readers import LogBatches, LogMessages
from penstock.client.log.source import PlainSource, Source, Terms
from penstock.client.route import Route
from penstock.model import limits
from penstock.model.errors import PenstockError
from penstock.wire.log_messages import GroupDescription, GroupList, LogSlice, ReadLog
from penstock.wire.messages import Answer

SLICE_BYTES = 1 * limits.MEBIBYTE
IN_FLIGHT = 4


class LogBounds(NamedTuple):
    """The messages that a log has: from `begin` up to, and without, `end`."""

    begin: int
    end: int


class Log:
    """The retained log of a queue; made by `queue.log()`, without asking the server.

    Everywhere `start` is a sequence number, `"beginning"` or `"end"`, and `from_time` is a datetime, or a timedelta
    for how long ago: the first message sent then or later.
    """

    def __init__(self, route: Route) -> None:
        self._route = route

    @property
    def queue_name(self) -> str:
        """The queue whose log it is."""
        return self._route.name

    def __repr__(self) -> str:
        return f"<log {self.queue_name!r}>"

    async def bounds(self) -> LogBounds:
        """Where the log begins and where it ends."""
        found = await bounds(self._route)
        return LogBounds(found.begin, found.end)

    async def find(self, time: Moment) -> int:
        """The sequence number of the first message sent at that time or later; the end where there is none."""
        check_place(None, time)
        return (await bounds(self._route, time_ms(time))).found

    # -- reading ---------------------------------------------------------------------------------------------

    async def read(
        self,
        start: int,
        *,
        max_messages: int = 1_000,
        max_bytes: int | None = None,
        wait: Duration = 0,
    ) -> LoggedMessages:
        """One slice from sequence number `start` on; where the log ends there, waits up to `wait` seconds for more.

        Go on at its `next`. Raises `OffsetGone` where the log begins later.
        """
        check_place(start, None)
        wait_ms = milliseconds(wait, "wait")
        route = self._route

        def convert(_call: FutureCall[LoggedMessages], answer: Answer, body: memoryview) -> LoggedMessages:
            if not isinstance(answer, LogSlice):
                raise unexpected(answer)
            return LoggedMessages(route.name, start, answer, body)

        async def ask(incarnation: Incarnation) -> LoggedMessages:
            call = FutureCall(route.link.loop, convert)
            route.link.start(call, ReadLog(incarnation.queue_id, start, max_messages, max_bytes, wait_ms))
            try:
                return await call.future
            except PenstockError as error:
                if not is_gone(error):
                    raise
                raise await offset_gone(route, incarnation, start) from None

        return await resolved(route, ask)

    def messages(
        self,
        *,
        start: Start | None = None,
        from_time: Moment | None = None,
        group: str | None = None,
        follow: bool = False,
        limit: int | None = None,
        when_gone: WhenGone = "fail",
        slice_bytes: int = SLICE_BYTES,
        in_flight: int = IN_FLIGHT,
    ) -> LogMessages:
        """Message by message: `async for message in log.messages(): ...`, from the beginning unless told otherwise.

        Without `follow` it ends where the log ends when it starts. With `group` it reads as a member of that group
        and commits what is done with; see `join` for more. When the log has let go of messages before they were
        read it raises `OffsetGone`, or goes on where the log begins with `when_gone="earliest"`. It reads ahead,
        `in_flight` slices of `slice_bytes` at once.
        """
        pace = Pace(slice_bytes, in_flight)
        return LogMessages(self._source(start, from_time, group, follow, limit, when_gone, pace))

    def batches(
        self,
        *,
        start: Start | None = None,
        from_time: Moment | None = None,
        group: str | None = None,
        follow: bool = False,
        limit: int | None = None,
        when_gone: WhenGone = "fail",
        slice_bytes: int = SLICE_BYTES,
        in_flight: int = IN_FLIGHT,
    ) -> LogBatches:
        """Like `messages`, a slice of the log at a time: the fast way."""
        pace = Pace(slice_bytes, in_flight)
        return LogBatches(self._source(start, from_time, group, follow, limit, when_gone, pace))

    def _source(
        self,
        start: Start | None,
        from_time: Moment | None,
        group: str | None,
        follow: bool,
        limit: int | None,
        when_gone: WhenGone,
        pace: Pace,
    ) -> Source:
        if group is None:
            return PlainSource(self._route, Terms(start, from_time, follow, limit, when_gone, pace))
        if limit is not None:
            raise refused("a group has no limit: leave the loop when you have enough")
        return GroupReader(
            self._route, group, JoinTerms(10_000, start, from_time, 1_000, when_gone, follow, pace)
        )

    # -- groups ----------------------------------------------------------------------------------------------

    def join(
        self,
        group: str,
        *,
        lease: Duration = 10.0,
        start: Start | None = None,
        from_time: Moment | None = None,
        auto_commit: Duration | None = 1.0,
        when_gone: WhenGone = "fail",
        follow: bool = True,
        member: str | None = None,
        slice_bytes: int = SLICE_BYTES,
        in_flight: int = IN_FLIGHT,
    ) -> GroupReader:
        """A member of a group of readers: `async with log.join("billing") as reader: ...`.

        A group that does not exist yet begins at `start` or `from_time`, by default where the log begins. The member
        renews its `lease` in the background; when it dies, its share moves on after so many seconds. Every
        `auto_commit` seconds what the loop is done with is committed; None: only `reader.commit()` does. `member` is
        how operators see it.
        """
        auto_commit_ms = optional_milliseconds(auto_commit, "auto_commit")
        if auto_commit_ms == 0:
            raise refused("auto_commit is 0: give seconds above 0, or None to commit by yourself")
        terms = JoinTerms(
            milliseconds(lease, "lease"),
            start,
            from_time,
            auto_commit_ms,
            when_gone,
            follow,
            Pace(slice_bytes, in_flight),
            member,
        )
        return GroupReader(self._route, group, terms)

    async def list_groups(self) -> AsyncIterator[GroupDescription]:
        """All groups of the log, by name: how far each has come, how far behind it is, and its members."""
        async for page in self.group_pages():
            for group in page.groups:
                yield group

    def group_pages(self) -> AsyncIterator[GroupList]:
        """What `list_groups` asks the server for, a page at a time."""
        return groups.group_pages(self._route)

    async def describe_group(self, group: str) -> GroupDescription:
        """One group; raises where there is none of that name."""
        return await groups.describe_group(self._route, group)

    async def seek(
        self, group: str, *, start: Start | None = None, from_time: Moment | None = None
    ) -> GroupDescription:
        """Moves a group to another place; its members start again from there."""
        return await groups.seek_group(self._route, group, start, from_time)

    async def delete_group(self, group: str) -> None:
        """Forgets a group and how far it has come; refused while it has members."""
        await groups.delete_group(self._route, group)

"""The log of a queue for a client: its ends, reading it, consumer groups."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

from penstock.client.connection.call import FutureCall
from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.consume.browse import resolved
from penstock.client.duration import Duration, milliseconds, optional_milliseconds
from penstock.client.log import groups
from penstock.client.log.assigned_partition import JoinTerms
from penstock.client.log.group_description import GroupDescription, together
from penstock.client.log.group_reader import GroupReader
from penstock.client.log.logged import LoggedMessages
from penstock.client.log.newest import newest
from penstock.client.log.plain_source import PlainSource, ReadTerms, Stop
from penstock.client.log.read_ahead import Pace
from penstock.client.log.readers import LogBatches, LogMessages
from penstock.client.log.source import Source
from penstock.client.log.start import (
    Moment,
    Start,
    WhenGone,
    all_bounds,
    bounds,
    check_partition,
    check_start,
    is_gone,
    offset_gone,
    time_ms,
)
from penstock.client_core.call import unexpected
from penstock.model import limits
from penstock.model.errors import PenstockError
from penstock.model.number_gaps import Gap, NumberGaps
from penstock.wire.log_messages import LogSlice, ReadLog
from penstock.wire.messages import Answer

SLICE_BYTES = 1 * limits.MEBIBYTE
IN_FLIGHT = 4


class LogBounds(NamedTuple):
    """The messages of a log: from `begin` up to, and without, `end`.

    In a cluster some numbers between may belong to no message; `partitions()` lists them.
    """

    begin: int
    end: int


class LogPartition(NamedTuple):
    """A partition of a log, and its messages: from `begin` up to, and without, `end`, except numbers without a message."""

    partition: int
    begin: int
    end: int
    gaps: tuple[Gap, ...] = ()
    """Numbers that no message has and none ever will, from the first up to, and without, the second. They were left out after
    failovers that may have lost messages."""

    @property
    def messages(self) -> int:
        """How many there are."""
        return NumberGaps(self.gaps).messages(self.begin, self.end)


class Log:
    """The retained log of a queue; made by `queue.log()`, without asking the server.

    Everywhere `start` is a sequence number, `"beginning"` or `"end"`, and `from_time` is a datetime, or a timedelta before
    now: the first message sent then or later.

    In a cluster a log may have several partitions, each with its own order; on a single node it has only partition 0. A
    sequence number contains its partition, so `start=number` refers to that one alone; `{partition: start}` refers to
    several. The other positions mean all partitions.
    """

    def __init__(self, route: Route) -> None:
        self._route = route

    @property
    def queue_name(self) -> str:
        """The queue whose log it is."""
        return self._route.name

    @property
    def direct_bytes(self) -> int:
        """How much this client has read of it from nodes themselves, with `direct`."""
        return self._route.direct.received_bytes

    def __repr__(self) -> str:
        return f"<log {self.queue_name!r}>"

    async def partitions(self) -> list[LogPartition]:
        """The partitions of the log, by number, and where each begins and ends now."""
        return [
            LogPartition(partition, found.begin, found.end, tuple(found.gaps))
            for partition, found in enumerate(await all_bounds(self._route))
        ]

    async def bounds(self, partition: int = 0) -> LogBounds:
        """The ends of a partition's log."""
        check_partition(partition)
        found = await bounds(self._route, partition=partition)
        return LogBounds(found.begin, found.end)

    async def find(self, time: Moment, partition: int = 0) -> int:
        """The sequence number of a partition's first message sent at that time or later; its end where there is none."""
        check_start(None, time)
        check_partition(partition)
        return (await bounds(self._route, time_ms(time), partition)).found

    async def find_everywhere(self, time: Moment) -> dict[int, int]:
        """The same for every partition."""
        check_start(None, time)
        return {
            partition: found.found
            for partition, found in enumerate(await all_bounds(self._route, time_ms(time)))
        }

    async def newest(self, messages: int, partition: int | None = None) -> dict[int, int]:
        """Where to begin in each partition to read the newest so many messages of all of them, or of one."""
        if partition is not None:
            check_partition(partition)
        return await newest(self._route, messages, self.read, partition)

    # -- reading ---------------------------------------------------------------------------------------------

    async def read(
        self,
        start: int,
        *,
        max_messages: int = 1_000,
        max_bytes: int | None = None,
        wait: Duration = 0,
    ) -> LoggedMessages:
        """One slice from sequence number `start` on; at the end of the log it waits up to `wait` seconds for more.

        The number names the partition. Continue at the slice's `next`. Raises `OffsetGone` if the log begins later.
        """
        check_start(start, None)
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
        partition: int | None = None,
        stop: Stop | None = None,
        group: str | None = None,
        follow: bool = False,
        limit: int | None = None,
        when_gone: WhenGone = "fail",
        slice_bytes: int = SLICE_BYTES,
        in_flight: int = IN_FLIGHT,
        direct: bool = False,
    ) -> LogMessages:
        """Message by message: `async for message in log.messages(): ...`, from the beginning by default.

        It reads all partitions unless `partition` or `start` names some, merged approximately by the time of sending.
        Without `follow` it ends at the end that the log has at the start, or before the message `stop`. With `group` it
        reads as a member of that group and commits its progress; see `join`. If the log has removed messages before they
        were read, it raises `OffsetGone`, or continues at the beginning of the log with `when_gone="earliest"`. It reads
        ahead, `in_flight` slices of `slice_bytes` at once. With `direct` it reads from the nodes of a cluster if they have
        a port for readers, and otherwise through the front end, with the same result.
        """
        pace = Pace(slice_bytes, in_flight)
        terms = ReadTerms(start, from_time, follow, limit, when_gone, pace, partition, stop, True, direct)
        return LogMessages(self._source(terms, group))

    def batches(
        self,
        *,
        start: Start | None = None,
        from_time: Moment | None = None,
        partition: int | None = None,
        stop: Stop | None = None,
        group: str | None = None,
        follow: bool = False,
        limit: int | None = None,
        when_gone: WhenGone = "fail",
        slice_bytes: int = SLICE_BYTES,
        in_flight: int = IN_FLIGHT,
        direct: bool = False,
    ) -> LogBatches:
        """Like `messages`, a slice of the log at a time: the fast way. Slices of several partitions come as they come."""
        terms = ReadTerms(
            start,
            from_time,
            follow,
            limit,
            when_gone,
            Pace(slice_bytes, in_flight),
            partition,
            stop,
            direct=direct,
        )
        return LogBatches(self._source(terms, group))

    def _source(self, terms: ReadTerms, group: str | None) -> Source:
        if group is None:
            return PlainSource(self._route, terms)
        if terms.limit is not None:
            raise refused("a group has no limit: leave the loop instead")
        if terms.partition is not None or terms.stop is not None:
            raise refused("a group reads all partitions to their end: omit partition and stop")
        if terms.direct:
            raise refused("a group reads through a front end, which stores its offsets: omit direct")
        return GroupReader(
            self._route,
            group,
            JoinTerms(10_000, terms.start, terms.from_time, 1_000, terms.when_gone, terms.follow, terms.pace),
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
        for group in await groups.list_groups(self._route):
            yield group

    async def describe_group(self, group: str) -> GroupDescription:
        """One group, in every partition and as a whole; raises where there is none of that name."""
        return await groups.describe_group(self._route, group)

    async def group_offsets(self, group: str) -> dict[int, int]:
        """The offsets of a group, by partition; empty for an unknown group. The group needs no members for it."""
        return {
            partition: one.offset for partition, one in (await groups.places_of(self._route, group)).items()
        }

    async def commit_offsets(self, group: str, offsets: Mapping[int, int]) -> None:
        """Commits for a group without members that everything before these offsets is done, by partition.

        Creates the group if necessary, and returns when all offsets are on disk. A lower offset changes nothing; only
        `seek` goes back. Partitions are independent: if one fails, others may be committed. Refused with `not-a-member`
        while the group has members.
        """
        await groups.commit_offsets(self._route, group, offsets)

    async def seek(
        self, group: str, *, start: Start | None = None, from_time: Moment | None = None
    ) -> GroupDescription:
        """Moves a group to another place; its members start again from there. Returns it where it was moved."""
        moved = await groups.seek_group(self._route, group, start, from_time)
        return together(list(moved.items()))

    async def delete_group(self, group: str) -> None:
        """Forgets a group and how far it has come; refused while it has members."""
        await groups.delete_group(self._route, group)

"""The log of the blocking client: the calls of `penstock.client.log` without `await`.

Slices cross over from the event loop; stepping through their messages does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Self

from penstock.client.blocking.bridge import Bridge
from penstock.client.duration import Duration
from penstock.client.log.group_description import GroupDescription
from penstock.client.log.group_reader import GroupReader
from penstock.client.log.log import IN_FLIGHT, SLICE_BYTES, Log, LogBounds, LogPartition
from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.place import Moment, Start, WhenGone
from penstock.client.log.plain_source import Stop
from penstock.client.log.readers import LogBatches, LogMessages


class _BlockingReader:
    """What both readers share: ending. Use them with `with`, or in a `for` loop that goes to the end."""

    def __init__(self, bridge: Bridge, reader: LogMessages | LogBatches) -> None:
        self._bridge = bridge
        self._reader = reader

    def __iter__(self) -> Self:
        return self

    def close(self) -> None:
        """Ends the reading; a member of a group commits what is done with, and leaves."""
        if not self._bridge.stopped:
            self._bridge.call(self._reader.aclose)

    def __enter__(self) -> Self:
        self._bridge.call(self._reader.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BlockingLogMessages(_BlockingReader):
    """Yields one `LoggedMessage` after the other."""

    def __init__(self, bridge: Bridge, reader: LogMessages) -> None:
        super().__init__(bridge, reader)
        self._messages = reader

    def __next__(self) -> LoggedMessage:
        message = self._messages.step()
        if message is None:
            try:
                return self._bridge.call(self._messages.__anext__)
            except StopAsyncIteration:
                raise StopIteration from None
        return message


class BlockingLogBatches(_BlockingReader):
    """Yields `LoggedMessages`, slices of the log as they were stored: the fast way."""

    def __init__(self, bridge: Bridge, reader: LogBatches) -> None:
        super().__init__(bridge, reader)
        self._batches = reader

    def __next__(self) -> LoggedMessages:
        try:
            return self._bridge.call(self._batches.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None


class BlockingGroupReader:
    """A member of a group; made by `log.join(name)` and used with `with`. See `GroupReader`."""

    def __init__(self, bridge: Bridge, reader: GroupReader) -> None:
        self._bridge = bridge
        self._reader = reader

    @property
    def group(self) -> str:
        """The group's name."""
        return self._reader.group

    @property
    def member(self) -> str:
        """The name of this member."""
        return self._reader.member

    @property
    def shares(self) -> list[int]:
        """The partitions that this member reads now."""
        return self._reader.shares

    @property
    def standing_by(self) -> bool:
        """Whether other members have all shares."""
        return self._reader.standing_by

    @property
    def members(self) -> int:
        """How many members the group had when it was last asked, this one included."""
        return self._reader.members

    @property
    def position(self) -> int:
        """The sequence number after the last message that was handed out."""
        return self._reader.position

    @property
    def committed(self) -> int:
        """How far the group has come, as far as this member knows: the next message to read, of its first share."""
        return self._reader.committed

    @property
    def positions(self) -> dict[int, int]:
        """The sequence number after the last message that was handed out, for each partition that it reads."""
        return self._reader.positions

    @property
    def committed_offsets(self) -> dict[int, int]:
        """How far the group has come, for each partition that it reads."""
        return self._reader.committed_offsets

    def join(self) -> None:
        """Becomes a member, once; `with` does it by itself, and so does asking for the first message."""
        self._bridge.call(self._reader.join)

    def messages(self) -> BlockingLogMessages:
        """Message by message, each handed out when the ones before are done with."""
        return BlockingLogMessages(self._bridge, self._reader.messages())

    def batches(self) -> BlockingLogBatches:
        """Slices of the log as they were stored: the fast way."""
        return BlockingLogBatches(self._bridge, self._reader.batches())

    def __iter__(self) -> BlockingLogMessages:
        return self.messages()

    def commit(self, through: LoggedMessage | LoggedMessages | None = None) -> bool:
        """Says that everything handed out so far is done with, or everything up to and with `through`."""
        return self._bridge.call(self._reader.commit, through)

    def seek(self, *, start: Start | None = None, from_time: Moment | None = None) -> None:
        """Moves the group: this member, or whoever has the share, goes on from there."""
        self._bridge.call(self._reader.seek, start=start, from_time=from_time)

    def close(self) -> None:
        """Commits what is done with, if that is automatic, and leaves the group."""
        if not self._bridge.stopped:
            self._bridge.call(self._reader.close)

    def __enter__(self) -> Self:
        self._bridge.call(self._reader.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class BlockingLog:
    """The retained log of a queue; made by `queue.log()`, without asking the server. See `Log`."""

    def __init__(self, bridge: Bridge, log: Log) -> None:
        self._bridge = bridge
        self._log = log

    @property
    def queue_name(self) -> str:
        """The queue whose log it is."""
        return self._log.queue_name

    @property
    def direct_bytes(self) -> int:
        """How much this client has read of it from nodes themselves, with `direct`."""
        return self._log.direct_bytes

    def __repr__(self) -> str:
        return repr(self._log)

    def partitions(self) -> list[LogPartition]:
        """The partitions of the log, by number, and where each begins and ends now."""
        return self._bridge.call(self._log.partitions)

    def bounds(self, partition: int = 0) -> LogBounds:
        """Where the log of a partition begins and where it ends."""
        return self._bridge.call(self._log.bounds, partition)

    def find(self, time: Moment, partition: int = 0) -> int:
        """The sequence number of a partition's first message sent at that time or later; its end where there is none."""
        return self._bridge.call(self._log.find, time, partition)

    def find_everywhere(self, time: Moment) -> dict[int, int]:
        """The same for every partition."""
        return self._bridge.call(self._log.find_everywhere, time)

    def newest(self, messages: int, partition: int | None = None) -> dict[int, int]:
        """Where to begin in each partition to read the newest so many messages of all of them, or of one."""
        return self._bridge.call(self._log.newest, messages, partition)

    def read(
        self,
        start: int,
        *,
        max_messages: int = 1_000,
        max_bytes: int | None = None,
        wait: Duration = 0,
    ) -> LoggedMessages:
        """One slice from sequence number `start` on; where the log ends there, waits up to `wait` seconds for more."""
        return self._bridge.call(
            self._log.read, start, max_messages=max_messages, max_bytes=max_bytes, wait=wait
        )

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
    ) -> BlockingLogMessages:
        """Message by message: `for message in log.messages(): ...`, from the beginning unless told otherwise."""
        reader = self._bridge.call_plain(
            self._log.messages,
            start=start,
            from_time=from_time,
            partition=partition,
            stop=stop,
            group=group,
            follow=follow,
            limit=limit,
            when_gone=when_gone,
            slice_bytes=slice_bytes,
            in_flight=in_flight,
            direct=direct,
        )
        return BlockingLogMessages(self._bridge, reader)

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
    ) -> BlockingLogBatches:
        """Like `messages`, a slice of the log at a time: the fast way."""
        reader = self._bridge.call_plain(
            self._log.batches,
            start=start,
            from_time=from_time,
            partition=partition,
            stop=stop,
            group=group,
            follow=follow,
            limit=limit,
            when_gone=when_gone,
            slice_bytes=slice_bytes,
            in_flight=in_flight,
            direct=direct,
        )
        return BlockingLogBatches(self._bridge, reader)

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
    ) -> BlockingGroupReader:
        """A member of a group of readers: `with log.join("billing") as reader: ...`."""
        reader = self._bridge.call_plain(
            self._log.join,
            group,
            lease=lease,
            start=start,
            from_time=from_time,
            auto_commit=auto_commit,
            when_gone=when_gone,
            follow=follow,
            member=member,
            slice_bytes=slice_bytes,
            in_flight=in_flight,
        )
        return BlockingGroupReader(self._bridge, reader)

    def list_groups(self) -> Iterator[GroupDescription]:
        """All groups of the log, by name: how far each has come, how far behind it is, and its members."""

        async def listed() -> list[GroupDescription]:
            return [group async for group in self._log.list_groups()]

        yield from self._bridge.call(listed)

    def describe_group(self, group: str) -> GroupDescription:
        """One group, in every partition and as a whole; raises where there is none of that name."""
        return self._bridge.call(self._log.describe_group, group)

    def group_offsets(self, group: str) -> dict[int, int]:
        """Where a group goes on, by partition; empty for a group that nobody knows. Nobody need be a member for it."""
        return self._bridge.call(self._log.group_offsets, group)

    def commit_offsets(self, group: str, offsets: Mapping[int, int]) -> None:
        """Says, without being a member, that a group is done with everything before these offsets, by partition."""
        self._bridge.call(self._log.commit_offsets, group, offsets)

    def seek(
        self, group: str, *, start: Start | None = None, from_time: Moment | None = None
    ) -> GroupDescription:
        """Moves a group to another place; its members start again from there."""
        return self._bridge.call(self._log.seek, group, start=start, from_time=from_time)

    def delete_group(self, group: str) -> None:
        """Forgets a group and how far it has come; refused while it has members."""
        self._bridge.call(self._log.delete_group, group)

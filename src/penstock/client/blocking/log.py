"""Made from `penstock.client.log.log` by `make blocking`: do not edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.group_reader import BlockingGroupReader
from penstock.client.blocking.readers import BlockingLogBatches, BlockingLogMessages
from penstock.client.duration import Duration
from penstock.client.log.group_description import GroupDescription
from penstock.client.log.log import IN_FLIGHT, SLICE_BYTES, Log, LogBounds, LogPartition
from penstock.client.log.logged import LoggedMessages
from penstock.client.log.plain_source import Stop
from penstock.client.log.start import Moment, Start, WhenGone


class BlockingLog:
    """The retained log of a queue; made by `queue.log()`, without asking the server.

    Everywhere `start` is a sequence number, `"beginning"` or `"end"`, and `from_time` is a datetime, or a timedelta before
    now: the first message sent then or later.

    In a cluster a log may have several partitions, each with its own order; on a single node it has only partition 0. A
    sequence number contains its partition, so `start=number` refers to that one alone; `{partition: start}` refers to
    several. The other positions mean all partitions.
    """

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
        """The ends of a partition's log."""
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
        self, start: int, *, max_messages: int = 1_000, max_bytes: int | None = None, wait: Duration = 0
    ) -> LoggedMessages:
        """One slice from sequence number `start` on; at the end of the log it waits up to `wait` seconds for more.

        The number names the partition. Continue at the slice's `next`. Raises `OffsetGone` if the log begins later.
        """
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
        """Message by message: `for message in log.messages(): ...`, from the beginning by default.

        It reads all partitions unless `partition` or `start` names some, merged approximately by the time of sending.
        Without `follow` it ends at the end that the log has at the start, or before the message `stop`. With `group` it
        reads as a member of that group and commits its progress; see `join`. If the log has removed messages before they
        were read, it raises `OffsetGone`, or continues at the beginning of the log with `when_gone="earliest"`. It reads
        ahead, `in_flight` slices of `slice_bytes` at once. With `direct` it reads from the nodes of a cluster if they have
        a port for readers, and otherwise through the front end, with the same result.
        """
        return BlockingLogMessages(
            self._bridge,
            self._bridge.call_plain(
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
            ),
        )

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
        """Like `messages`, a slice of the log at a time: the fast way. Slices of several partitions come as they come."""
        return BlockingLogBatches(
            self._bridge,
            self._bridge.call_plain(
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
            ),
        )

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
        """A member of a group of readers: `with log.join("billing") as reader: ...`.

        A group that does not exist yet begins at `start` or `from_time`, by default where the log begins. The member
        renews its `lease` in the background; when it dies, its share moves on after so many seconds. Every
        `auto_commit` seconds what the loop is done with is committed; None: only `reader.commit()` does. `member` is
        how operators see it.
        """
        return BlockingGroupReader(
            self._bridge,
            self._bridge.call_plain(
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
            ),
        )

    def list_groups(self) -> Iterator[GroupDescription]:
        """All groups of the log, by name: how far each has come, how far behind it is, and its members."""
        yield from self._bridge.each(self._log.list_groups())

    def describe_group(self, group: str) -> GroupDescription:
        """One group, in every partition and as a whole; raises where there is none of that name."""
        return self._bridge.call(self._log.describe_group, group)

    def group_offsets(self, group: str) -> dict[int, int]:
        """The offsets of a group, by partition; empty for an unknown group. The group needs no members for it."""
        return self._bridge.call(self._log.group_offsets, group)

    def commit_offsets(self, group: str, offsets: Mapping[int, int]) -> None:
        """Commits for a group without members that everything before these offsets is done, by partition.

        Creates the group if necessary, and returns when all offsets are on disk. A lower offset changes nothing; only
        `seek` goes back. Partitions are independent: if one fails, others may be committed. Refused with `not-a-member`
        while the group has members.
        """
        self._bridge.call(self._log.commit_offsets, group, offsets)

    def seek(
        self, group: str, *, start: Start | None = None, from_time: Moment | None = None
    ) -> GroupDescription:
        """Moves a group to another place; its members start again from there. Returns it where it was moved."""
        return self._bridge.call(self._log.seek, group, start=start, from_time=from_time)

    def delete_group(self, group: str) -> None:
        """Forgets a group and how far it has come; refused while it has members."""
        self._bridge.call(self._log.delete_group, group)

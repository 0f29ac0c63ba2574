"""Made from `penstock.client.log.group_reader` by `make blocking`: do not edit."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from penstock.client.blocking.bridge import Bridge
from penstock.client.blocking.readers import BlockingLogBatches, BlockingLogMessages
from penstock.client.log.group_reader import GroupReader
from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.start import Moment, Start


class BlockingGroupReader:
    """A member of a group; made by `log.join(name)` and used with `with`.

    The partitions of the log are shared among the members; a member without any stands by. When a member leaves, or has
    not renewed its lease, others take its partitions over. `for message in reader` waits for a partition if
    necessary. Reading begins at the group's committed offset, so messages that were read and not committed before a
    takeover are read again.
    """

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
    def closed(self) -> bool:
        """Whether it has ended, or is about to."""
        return self._reader.closed

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
    def positions(self) -> dict[int, int]:
        """The same for each partition that this member reads."""
        return self._reader.positions

    @property
    def committed(self) -> int:
        """How far the group has come, as far as this member knows: the next message to read, of its first share."""
        return self._reader.committed

    @property
    def committed_offsets(self) -> dict[int, int]:
        """The same for each partition that this member reads."""
        return self._reader.committed_offsets

    def join(self) -> None:
        """Becomes a member, once; `with` does it by itself, and so does asking for the first message."""
        self._bridge.call(self._reader.join)

    def messages(self) -> BlockingLogMessages:
        """Message by message, each handed out when the ones before are done with."""
        return BlockingLogMessages(self._bridge, self._bridge.call_plain(self._reader.messages))

    def batches(self) -> BlockingLogBatches:
        """Slices of the log as they were stored: the fast way."""
        return BlockingLogBatches(self._bridge, self._bridge.call_plain(self._reader.batches))

    def __iter__(self) -> BlockingLogMessages:
        return BlockingLogMessages(self._bridge, self._bridge.call_plain(self._reader.__aiter__))

    def commit(self, through: LoggedMessage | LoggedMessages | None = None) -> bool:
        """Commits everything handed out so far, or everything of a partition up to and including `through`.

        Returns when that is on disk. False: a partition was reassigned meanwhile, nothing was committed there, and its new
        member reads those messages (again).
        """
        return self._bridge.call(self._reader.commit, through)

    def seek(self, *, start: Start | None = None, from_time: Moment | None = None) -> None:
        """Moves the group: the members that have the partitions continue there."""
        self._bridge.call(self._reader.seek, start=start, from_time=from_time)

    def close(self) -> None:
        """Commits what is done with, if that is automatic, and leaves the group."""
        self._bridge.end(self._reader.close)

    def __enter__(self) -> Self:
        self._bridge.call(self._reader.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bridge.end(self._reader.__aexit__, kind, error, trace)

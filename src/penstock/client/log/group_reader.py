"""A member of a consumer group: reads its partitions, commits the progress, takes over from members that die."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from penstock.client.connection.failure import closed, refused
from penstock.client.connection.route import Route
from penstock.client.log.assigned_partition import AssignedPartition, JoinTerms, NumberedPartition
from penstock.client.log.groups import seek_group
from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.membership import check_group, check_lease, new_member_name
from penstock.client.log.merge import Merge
from penstock.client.log.readers import LogBatches, LogMessages
from penstock.client.log.start import (
    Moment,
    PartitionStart,
    Start,
    check_start,
    check_when_gone,
    partitions_of,
)
from penstock.model.errors import PenstockError
from penstock.model.partition_numbers import partition_of

logger = logging.getLogger("penstock.client")

CLOSE_SECONDS = 5.0


class GroupReader:
    """A member of a group; made by `log.join(name)` and used with `async with`.

    The partitions of the log are shared among the members; a member without any stands by. When a member leaves, or has
    not renewed its lease, others take its partitions over. `async for message in reader` waits for a partition if
    necessary. Reading begins at the group's committed offset, so messages that were read and not committed before a
    takeover are read again.
    """

    def __init__(self, route: Route, group: str, terms: JoinTerms) -> None:
        check_start(terms.start, terms.from_time)
        check_when_gone(terms.when_gone)
        check_group(group)
        check_lease(terms.lease_ms)
        terms.pace.check()
        self.link = route.link
        self.group = group
        """The group's name."""
        self.member: str = terms.member or new_member_name()
        """The name of this member."""
        self.closed = False
        """Whether it has ended, or is about to."""
        self._route = route
        self._terms = terms
        self._joined = False
        self._partitions: list[AssignedPartition] = []
        self._merge: Merge | None = None
        self._position = 0
        self._given: tuple[LoggedMessages, int] | None = None
        """The last slice, and its epoch: the user is reading it, or has left it unfinished."""
        self._committing: asyncio.Task[None] | None = None

    # -- being a member --------------------------------------------------------------------------------------

    @property
    def shares(self) -> list[int]:
        """The partitions that this member reads now."""
        return [share.partition for share in self._partitions if not share.standing_by]

    @property
    def standing_by(self) -> bool:
        """Whether other members have all shares."""
        return not self.shares

    @property
    def members(self) -> int:
        """How many members the group had when it was last asked, this one included."""
        return max((share.members for share in self._partitions), default=0)

    @property
    def position(self) -> int:
        """The sequence number after the last message that was handed out."""
        if len(self._partitions) == 1:
            return self._partitions[0].position
        return self._position

    @property
    def positions(self) -> dict[int, int]:
        """The same for each partition that this member reads."""
        return {share.partition: share.position for share in self._partitions if not share.standing_by}

    @property
    def committed(self) -> int:
        """How far the group has come, as far as this member knows: the next message to read, of its first share."""
        return next(iter(self.committed_offsets.values()), 0)

    @property
    def committed_offsets(self) -> dict[int, int]:
        """The same for each partition that this member reads."""
        return {share.partition: share.committed for share in self._partitions if not share.standing_by}

    async def join(self) -> None:
        """Becomes a member, once; `async with` does it by itself, and so does asking for the first message."""
        if self.closed:
            raise closed()
        if self._joined:
            return
        self._joined = True
        self.link.background.add(self)
        try:
            await self._join()
        except BaseException:
            self._joined = False
            raise
        if self._terms.auto_commit_ms is not None:
            self._committing = self.link.loop.create_task(
                self._commit_often(self._terms.auto_commit_ms / 1000), name="penstock commits offsets"
            )

    async def _join(self) -> None:
        await self._route.resolve()
        count = len(await partitions_of(self._route))
        shares = [
            AssignedPartition(
                self._route, self.group, self.member, NumberedPartition(partition, count), self._terms
            )
            for partition in range(count)
        ]
        begun = await asyncio.gather(
            *(share.begin(self._start_of(share.partition), self._terms.from_time) for share in shares),
            return_exceptions=True,
        )
        failed = next((outcome for outcome in begun if outcome is not None), None)
        if failed is not None:
            for share in shares:
                share.stop()
            await asyncio.gather(*(share.leave() for share in shares), return_exceptions=True)
            raise failed
        self._partitions = shares
        if count > 1:
            self._merge = Merge(shares, by_time=False, follow=True)

    def _start_of(self, partition: int) -> PartitionStart | None:
        """Where a new group begins in a partition: at the beginning of the log, unless the start names this partition."""
        start = self._terms.start
        if isinstance(start, Mapping):
            return start.get(partition)
        if isinstance(start, int) and partition_of(start) != partition:
            return None
        return start

    async def begin(self) -> None:
        """Becomes a member."""
        await self.join()

    # -- reading ---------------------------------------------------------------------------------------------

    def messages(self) -> LogMessages:
        """Message by message, each handed out when the ones before are done with."""
        return LogMessages(self, owned=False)

    def batches(self) -> LogBatches:
        """Slices of the log as they were stored: the fast way."""
        return LogBatches(self, owned=False)

    def __aiter__(self) -> LogMessages:
        return self.messages()

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice of a share, as soon as there is one; None at the end."""
        await self.join()
        if self._given is not None:
            found, epoch = self._given
            self._partitions[found.partition].take_back(found.next, epoch)
            self._given = None
        for share in self._partitions:
            share.all_finished()
        given = await (self._merge.next() if self._merge is not None else self._partitions[0].next_slice())
        if given is not None:
            self._given = given, self.epoch_of(given.first)
        return given

    def epoch_of(self, number: int) -> int:
        """Rises when the partition of the number is read again from another offset."""
        return self._partitions[partition_of(number)].epoch

    # -- committing ------------------------------------------------------------------------------------------

    def handed_out(self, following: int, epoch: int) -> None:
        """Called by the iterating user: asking for more says that everything handed out before is done."""
        self._position = following
        self._partitions[partition_of(following)].handed_out(following, epoch)

    async def commit(self, through: LoggedMessage | LoggedMessages | None = None) -> bool:
        """Commits everything handed out so far, or everything of a partition up to and including `through`.

        Returns when that is on disk. False: a partition was reassigned meanwhile, nothing was committed there, and its new
        member reads those messages (again).
        """
        if through is None:
            outcomes = await asyncio.gather(*(share.commit() for share in self._partitions))
            return all(outcomes)
        following = through.next if isinstance(through, LoggedMessages) else through.sequence + 1
        partition = partition_of(following)
        if partition >= len(self._partitions):
            raise refused(f"message {following - 1} was not delivered by this reader: it cannot be committed")
        return await self._partitions[partition].commit(following)

    async def _commit_often(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            for share in self._partitions:
                try:
                    await share.commit_finished()
                except PenstockError as error:
                    logger.warning(
                        "could not commit the offset of group %(group)r: %(error)s",
                        {"group": self.group, "error": error},
                    )

    async def seek(self, *, start: Start | None = None, from_time: Moment | None = None) -> None:
        """Moves the group: the members that have the partitions continue there."""
        await self.join()
        moved = await seek_group(self._route, self.group, start, from_time)
        known = {share.partition: share for share in self._partitions}
        await asyncio.gather(*(known[one].look_again() for one in moved if one in known))

    # -- ending ----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Commits what is done with, if that is automatic, and leaves the group."""
        if self.closed:
            return
        self.closed = True
        if self._committing is not None:
            self._committing.cancel()
        for share in self._partitions:
            share.stop()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                left = await asyncio.gather(
                    *(share.leave() for share in self._partitions), return_exceptions=True
                )
            failed = next((outcome for outcome in left if outcome is not None), None)
            if failed is not None:
                raise failed
        except (PenstockError, TimeoutError) as error:
            reason = str(error) or f"no answer within {CLOSE_SECONDS:g} s"
            logger.warning(
                "the partitions of group %(group)r go to other members when the lease ends: %(reason)s",
                {"group": self.group, "reason": reason},
            )
        finally:
            if self._merge is not None:
                self._merge.close()
            for share in self._partitions:
                share.wake()

    async def __aenter__(self) -> Self:
        try:
            await self.join()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

"""One partition of a group member: reads it while it is assigned to the member, and commits the progress."""

from __future__ import annotations

import asyncio
import logging
from typing import NamedTuple

from penstock.client.connection.failure import refused
from penstock.client.connection.route import Route
from penstock.client.log.logged import LoggedMessages
from penstock.client.log.membership import Membership
from penstock.client.log.read_ahead import Pace, ReadAhead
from penstock.client.log.start import Moment, PartitionStart, Start, WhenGone, bounds, is_gone, offset_gone
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import GroupMembership

logger = logging.getLogger("penstock.client")


class JoinTerms(NamedTuple):
    """The options of a member."""

    lease_ms: int
    start: Start | None
    from_time: Moment | None
    auto_commit_ms: int | None
    """The interval of commits; None: only on request."""
    when_gone: WhenGone
    follow: bool
    pace: Pace
    member: str | None = None


class NumberedPartition(NamedTuple):
    """A partition of a queue with so many partitions."""

    partition: int
    partitions: int


class Hand(NamedTuple):
    """The slice that the user has: one value, so that another thread sees it change at once."""

    epoch: int
    finished: int
    """The user is done with everything before."""
    following: int
    """Everything before was handed out."""


NOTHING = Hand(0, 0, 0)


class AssignedPartition:
    """One member's assignment at one partition."""

    def __init__(
        self, route: Route, group: str, member: str, place: NumberedPartition, terms: JoinTerms
    ) -> None:
        self.partition = place.partition
        self._route = route
        self._terms = terms
        self._group = group
        self._membership = Membership(
            route,
            group,
            member,
            terms.lease_ms,
            partition=place.partition,
            partitions=place.partitions,
            changed=self._standing_changed,
            failed=self._failed,
        )
        self.epoch = 0
        """Rises when reading begins again at another offset."""
        self.committed = 0
        """How far the group has come, as far as this member knows."""
        self._closed = False
        self._generation = -1
        """Under which the messages that were handed out are ours."""
        self._share: int | None = None
        """The first offset of the assignment; None: standing by."""
        self._ahead: ReadAhead | None = None
        self._hand = NOTHING
        self._fetched = (0, 0)
        """An epoch, and what follows the last slice that was fetched in it, handed out or not."""
        self._error: PenstockError | None = None
        self._changed = asyncio.Event()
        self._stop: int | None = None

    # -- being a member --------------------------------------------------------------------------------------

    @property
    def standing_by(self) -> bool:
        """Whether another member has the share."""
        return self._share is None

    @property
    def idle(self) -> bool:
        """Whether there is nothing to read now, as far as is known."""
        return self._share is None or (self._ahead is not None and self._ahead.caught_up)

    @property
    def members(self) -> int:
        """How many members the group had here when it was last asked, this one included."""
        answer = self._membership.answer
        return 0 if answer is None else answer.members

    @property
    def position(self) -> int:
        """The sequence number after the last message that was handed out."""
        return self._in_hand().following

    async def begin(self, start: PartitionStart | None, from_time: Moment | None) -> None:
        """Becomes a member; a group that does not exist yet begins at the place named."""
        await self._membership.begin(start, from_time)
        if not self._terms.follow:
            self._stop = (await bounds(self._route, partition=self.partition)).end

    def _standing_changed(self, answer: GroupMembership) -> None:
        """Called with every answer: begins, continues or ends an assignment."""
        share = next((offset for partition, offset in answer.shares if partition == self.partition), None)
        if answer.generation == self._generation and (share is None) == (self._share is None):
            return
        self._stop_reading()
        self._generation = answer.generation
        # If the group's offset was not moved since, the messages that the user has are still valid.
        if share is None or self._share is None or share != self.committed:
            self.epoch += 1
            self.committed = share or 0
        self._share = share
        self._changed.set()

    def _stop_reading(self) -> None:
        if self._ahead is not None:
            self._ahead.close()
            self._ahead = None

    def _failed(self, error: PenstockError) -> None:
        self._error = error
        self._stop_reading()
        self._changed.set()

    # -- reading ---------------------------------------------------------------------------------------------

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice of the share, as soon as there is one; None at the end."""
        while not self._closed:
            if self._error is not None:
                raise self._error
            if self._share is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            if self._ahead is None:
                epoch, following = self._fetched
                self._ahead = self._read_from(following if epoch == self.epoch else self._in_hand().following)
            ahead = self._ahead
            try:
                found = await ahead.next()
            except PenstockError as error:
                await self._refused(ahead, error)
                continue
            if ahead is self._ahead:
                if found is not None:
                    self._fetched = (self.epoch, found.next)
                return found
        return None

    def _read_from(self, start: int) -> ReadAhead:
        membership = self._membership
        assert membership.incarnation is not None
        return ReadAhead(
            self._route,
            membership.incarnation,
            start,
            start,
            stop=self._stop,
            claim=membership.claim,
            pace=self._terms.pace,
        )

    async def _refused(self, ahead: ReadAhead, error: PenstockError) -> None:
        """Joins again if the assignment was lost, continues at the beginning of the log if that is requested, raises anything
        else.
        """
        if ahead is not self._ahead:
            return
        if error.code is ErrorCode.NOT_A_MEMBER:
            await self._join_again()
        elif is_gone(error):
            gone = await offset_gone(self._route, ahead.incarnation, ahead.position)
            if self._terms.when_gone == "fail":
                raise gone
            logger.warning(
                "group %(group)r continues after a gap: %(reason)s", {"group": self._group, "reason": gone}
            )
            if ahead is self._ahead:
                self._stop_reading()
                self._fetched = (self.epoch, gone.begin)
        else:
            raise error

    async def _join_again(self) -> None:
        """After `not-a-member`: the partition may be assigned to this member again, or to another one."""
        logger.info(
            "the partitions of group %(group)r were reassigned; joining the group again",
            {"group": self._group},
        )
        self._stop_reading()
        before = self._generation
        await self._membership.renew()
        if self._generation == before:  # nothing changed after all: do not ask again at once
            await asyncio.sleep(0.1)

    async def look_again(self) -> None:
        """The group was moved: any answer is a change."""
        self._generation = self.committed = -1
        await self._membership.renew()

    # -- committing ------------------------------------------------------------------------------------------

    def handed_out(self, following: int, epoch: int) -> None:
        """The user has everything before `following`, and is done with what was handed out before."""
        self._hand = Hand(epoch, self._in_hand().following, following)

    def all_finished(self) -> None:
        """The user asked for more: everything handed out before is done."""
        hand = self._hand
        if hand.epoch == self.epoch:
            self._hand = hand._replace(finished=hand.following)

    def take_back(self, following: int, epoch: int) -> None:
        """Takes back a slice that the user did not finish: messages of it that were not handed out are read again."""
        hand = self._in_hand()
        if epoch == self.epoch and hand.following < following:
            self._stop_reading()
            self.epoch += 1
            self._hand = hand._replace(epoch=self.epoch)

    def _in_hand(self) -> Hand:
        """The messages that the user has of the present assignment; earlier ones do not count."""
        hand = self._hand
        return hand if hand.epoch == self.epoch else Hand(self.epoch, self.committed, self.committed)

    async def commit(self, through: int | None = None) -> bool:
        """Commits everything that was handed out, or everything before a number; False: the partition was reassigned."""
        hand = self._hand
        if hand.epoch != self.epoch:  # nothing was handed out, or nothing valid, which is reported once
            self._hand = NOTHING
            return hand is NOTHING
        offset = hand.following
        if through is not None:
            if through > offset:
                raise refused(
                    f"message {through - 1} was not delivered by this reader: it cannot be committed"
                )
            offset = through
        self._hand = hand._replace(finished=max(hand.finished, offset))
        return await self._commit(offset)

    async def commit_finished(self) -> None:
        """Commits what the user is done with."""
        await self._commit(self._in_hand().finished)

    async def _commit(self, offset: int) -> bool:
        if self._share is None or offset < self.committed:
            return self._share is not None
        if offset == self.committed:
            return True
        epoch = self.epoch
        while True:
            generation = self._generation
            try:
                await self._membership.commit(offset, generation)
            except PenstockError as error:
                if error.code is not ErrorCode.NOT_A_MEMBER:
                    raise
                if generation == self._generation:
                    await self._join_again()
                if epoch == self.epoch and generation != self._generation:
                    continue  # the share is still ours, under another number
                logger.warning(
                    "group %(group)r: could not commit message %(sequence)d: %(error)s",
                    {"group": self._group, "sequence": offset - 1, "error": error},
                )
                return False
            if epoch == self.epoch:
                self.committed = max(self.committed, offset)
            return True

    # -- ending ----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stops reading and renewing."""
        self._closed = True
        self._membership.stop_beating()
        self._stop_reading()

    async def leave(self) -> None:
        """Commits what is done with, if that is automatic, and gives the share to others."""
        if self._terms.auto_commit_ms is not None:
            await self.commit_finished()
        await self._membership.leave()

    def wake(self) -> None:
        """Wakes callers that wait for an assignment that has ended."""
        self._changed.set()

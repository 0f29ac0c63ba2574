"""A member of a group of readers: reads its share, commits how far it has come, takes over from members that die."""

from __future__ import annotations

import asyncio
import logging
from types import TracebackType
from typing import NamedTuple, Self

from penstock.client.failure import closed, refused
from penstock.client.log.groups import seek_group
from penstock.client.log.logged import LoggedMessage, LoggedMessages
from penstock.client.log.membership import Membership, new_member_name
from penstock.client.log.place import (
    Moment,
    Start,
    WhenGone,
    bounds,
    check_place,
    check_when_gone,
    is_gone,
    offset_gone,
)
from penstock.client.log.read_ahead import Pace, ReadAhead
from penstock.client.log.readers import LogBatches, LogMessages
from penstock.client.route import Route
from penstock.model.errors import ErrorCode, PenstockError
from penstock.wire.log_messages import GroupMembership

log = logging.getLogger("penstock.client")

CLOSE_SECONDS = 5.0
PARTITION = 0
"""A queue has one partition, so the share is all of it or nothing."""


class JoinTerms(NamedTuple):
    """How to be a member."""

    lease_ms: int
    start: Start | None
    from_time: Moment | None
    auto_commit_ms: int | None
    """How often what is done with is committed; None: only when told to."""
    when_gone: WhenGone
    follow: bool
    pace: Pace
    member: str | None = None


class Hand(NamedTuple):
    """What the user has: one value, so that it changes at once for whoever looks from another thread."""

    epoch: int
    finished: int
    """The user is done with everything before."""
    following: int
    """Everything before was handed out."""


class GroupReader:
    """A member of a group; made by `log.join(name)` and used with `async with`.

    Of all members one has the share and reads; the others stand by and one of them takes over when it leaves, or
    has not renewed its lease. `async for message in reader` waits for the share if need be. Reading begins where
    the group has committed to, so what was read and not committed before a takeover is read again.
    """

    def __init__(self, route: Route, group: str, terms: JoinTerms) -> None:
        check_place(terms.start, terms.from_time)
        check_when_gone(terms.when_gone)
        terms.pace.check()
        self.link = route.link
        self._route = route
        self._terms = terms
        self._membership = Membership(
            route,
            group,
            terms.member or new_member_name(),
            terms.lease_ms,
            changed=self._standing_changed,
            failed=self._failed,
        )
        self.epoch = 0
        """Grows when reading begins anew somewhere else."""
        self.closed = False
        """Whether it has ended, or is about to."""
        self._joined = False
        self._generation = -1
        """Under which the messages that were handed out are ours."""
        self._share: int | None = None
        """Where the share begins; None: standing by."""
        self._ahead: ReadAhead | None = None
        self._hand = Hand(0, 0, 0)
        self._committed = 0
        self._error: PenstockError | None = None
        self._changed = asyncio.Event()
        self._committing: asyncio.Task[None] | None = None
        self._stop: int | None = None

    # -- being a member --------------------------------------------------------------------------------------

    @property
    def group(self) -> str:
        """The group's name."""
        return self._membership.group

    @property
    def member(self) -> str:
        """The name of this member."""
        return self._membership.member

    @property
    def standing_by(self) -> bool:
        """Whether another member has the share."""
        return self._share is None

    @property
    def members(self) -> int:
        """How many members the group had when it was last asked, this one included."""
        answer = self._membership.answer
        return 0 if answer is None else answer.members

    @property
    def position(self) -> int:
        """The sequence number after the last message that was handed out."""
        return self._in_hand().following

    @property
    def committed(self) -> int:
        """How far the group has come, as far as this member knows: the next message to read."""
        return self._committed

    async def join(self) -> None:
        """Becomes a member, once; `async with` does it by itself, and so does asking for the first message."""
        if self.closed:
            raise closed()
        if self._joined:
            return
        self._joined = True
        self.link.background.add(self)
        try:
            await self._membership.begin(self._terms.start, self._terms.from_time)
        except BaseException:
            self._joined = False
            raise
        if not self._terms.follow:
            self._stop = (await bounds(self._route)).end
        if self._terms.auto_commit_ms is not None:
            self._committing = self.link.loop.create_task(
                self._commit_often(self._terms.auto_commit_ms / 1000), name="penstock commits offsets"
            )

    async def begin(self) -> None:
        """Becomes a member."""
        await self.join()

    def _standing_changed(self, answer: GroupMembership) -> None:
        """Called with every answer: takes a share, goes on with it, or lets go of it."""
        share = next((offset for partition, offset in answer.shares if partition == PARTITION), None)
        if answer.generation == self._generation and (share is None) == (self._share is None):
            return
        self._stop_reading()
        self._generation = answer.generation
        # Where nobody has moved the group's offset since, the messages in our user's hands are still ours.
        if share is None or self._share is None or share != self._committed:
            self.epoch += 1
            self._committed = share or 0
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

    def messages(self) -> LogMessages:
        """Message by message, each handed out when the ones before are done with."""
        return LogMessages(self, owned=False)

    def batches(self) -> LogBatches:
        """Slices of the log as they were stored: the fast way."""
        return LogBatches(self, owned=False)

    def __aiter__(self) -> LogMessages:
        return self.messages()

    async def next_slice(self) -> LoggedMessages | None:
        """The next slice of the share, as soon as there is one; None at the end."""
        await self.join()
        hand = self._in_hand()
        self._hand = hand._replace(finished=hand.following)
        while not self.closed:
            if self._error is not None:
                raise self._error
            if self._share is None:
                self._changed.clear()
                await self._changed.wait()
                continue
            if self._ahead is None:
                self._ahead = self._read_from(self._in_hand().following)
            ahead = self._ahead
            try:
                found = await ahead.next()
            except PenstockError as error:
                await self._refused(ahead, error)
                continue
            if ahead is self._ahead:
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
        """Joins again where the share was lost, goes on where the log begins if that is wanted, raises anything else."""
        if ahead is not self._ahead:
            return
        if error.code is ErrorCode.NOT_A_MEMBER:
            await self._join_again()
        elif is_gone(error):
            gone = await offset_gone(self._route, ahead.incarnation, ahead.position)
            if self._terms.when_gone == "fail":
                raise gone
            log.warning("group %r goes on after a gap: %s", self.group, gone)
            if ahead is self._ahead:
                self._stop_reading()
                self._hand = Hand(self.epoch, gone.begin, gone.begin)
        else:
            raise error

    async def _join_again(self) -> None:
        """After `not-a-member`: the share may be ours again, or somebody else's."""
        log.info("the share of group %r was given anew; joining again", self.group)
        self._stop_reading()
        before = self._generation
        await self._membership.renew()
        if self._generation == before:  # nothing changed after all: do not ask again at once
            await asyncio.sleep(0.1)

    # -- committing ------------------------------------------------------------------------------------------

    def handed_out(self, following: int, epoch: int) -> None:
        """Called by whoever iterates: asking for more says that what was handed out before is done with."""
        self._hand = Hand(epoch, self._in_hand().following, following)

    def _in_hand(self) -> Hand:
        """What the user has of the present share: what was handed out before it began anew counts for nothing."""
        hand = self._hand
        return hand if hand.epoch == self.epoch else Hand(self.epoch, self._committed, self._committed)

    async def commit(self, through: LoggedMessage | LoggedMessages | None = None) -> bool:
        """Says that everything handed out so far is done with, or everything up to and with `through`.

        Returns when that is on disk. False: the share was given anew meanwhile, nothing was committed, and whoever
        has it now reads those messages (again).
        """
        hand = self._hand
        if hand.epoch != self.epoch:
            return hand.epoch == 0  # nothing was handed out yet, or nothing that is still ours
        offset = hand.following
        if through is not None:
            offset = through.next if isinstance(through, LoggedMessages) else through.sequence + 1
            if offset > hand.following:
                raise refused(
                    f"message {offset - 1} was not handed out by this reader: it cannot be committed"
                )
        self._hand = hand._replace(finished=max(hand.finished, offset))
        return await self._commit(offset)

    async def _commit(self, offset: int) -> bool:
        if self._share is None or offset < self._committed:
            return self._share is not None
        if offset == self._committed:
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
                log.warning("group %r: message %d was not committed: %s", self.group, offset - 1, error)
                return False
            if epoch == self.epoch:
                self._committed = max(self._committed, offset)
            return True

    async def _commit_often(self, seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await self._commit(self._in_hand().finished)
            except PenstockError as error:
                log.warning("could not commit the offset of group %r: %s", self.group, error)

    async def seek(self, *, start: Start | None = None, from_time: Moment | None = None) -> None:
        """Moves the group: this member, or whoever has the share, goes on from there."""
        await self.join()
        await seek_group(self._route, self.group, start, from_time)
        self._generation = self._committed = -1  # whatever the answer, it is news
        await self._membership.renew()

    # -- ending ----------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Commits what is done with, if that is automatic, and leaves the group."""
        if self.closed:
            return
        self.closed = True
        self._membership.stop_beating()
        if self._committing is not None:
            self._committing.cancel()
        self._stop_reading()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._terms.auto_commit_ms is not None:
                    await self._commit(self._in_hand().finished)
                await self._membership.leave()
        except (PenstockError, TimeoutError) as error:
            reason = str(error) or f"no answer within {CLOSE_SECONDS:g} s"
            log.warning("the share of group %r moves on when its lease ends: %s", self.group, reason)
        finally:
            self._changed.set()

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

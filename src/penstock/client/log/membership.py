"""One member's assignment in a consumer group: joins, renews the lease, commits, leaves."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Callable

from penstock.client.connection.failure import refused
from penstock.client.connection.incarnation import Incarnation
from penstock.client.connection.route import Route
from penstock.client.log.read_ahead import Claim
from penstock.client.log.start import Moment, PartitionStart, resolve_place
from penstock.client_core.lease_keeping import next_beat_seconds
from penstock.model import limits
from penstock.model.errors import PenstockError
from penstock.streams.waiting import came
from penstock.wire.log_messages import CommitOffset, GroupMembership, JoinGroup, LeaveGroup
from penstock.wire.messages import Done

logger = logging.getLogger("penstock.client")


def new_member_name() -> str:
    """A unique member name that shows operators the host and process."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def check_group(name: str) -> None:
    """Raises unless it can be the name of a group."""
    if not 1 <= len(name) <= limits.LOG_GROUP_NAME_CHARACTERS:
        raise refused(
            f"{name!r} is not the name of a group: use 1 to {limits.LOG_GROUP_NAME_CHARACTERS} characters"
        )


def check_lease(lease_ms: int) -> None:
    """Raises unless a member may have such a lease."""
    low, high = limits.LOG_MEMBER_LEASE_MS_MIN, limits.LOG_MEMBER_LEASE_MS_MAX
    if not low <= lease_ms <= high:
        raise refused(f"a lease of {lease_ms / 1000:g} s: use {low // 1000} to {high // 1000} seconds")


class Membership:
    """A partition's last answer about this member; `changed` is called with every answer, `failed` with lasting problems."""

    def __init__(
        self,
        route: Route,
        group: str,
        member: str,
        lease_ms: int,
        *,
        partition: int = 0,
        partitions: int = 1,
        changed: Callable[[GroupMembership], None],
        failed: Callable[[PenstockError], None],
    ) -> None:
        check_group(group)
        check_lease(lease_ms)
        self.group = group
        self.member = member
        self.incarnation: Incarnation | None = None
        """The queue that was joined: one that was made again is another."""
        self._route = route
        self._lease_ms = lease_ms
        self._partition = partition
        self._partitions = partitions
        self._changed = changed
        self._failed = failed
        self._start: int | None = None
        self._news = asyncio.Event()
        self._heart: asyncio.Task[None] | None = None
        self.answer: GroupMembership | None = None
        """None before the first."""

    @property
    def generation(self) -> int:
        """Counts the times that shares were given out."""
        return 0 if self.answer is None else self.answer.generation

    @property
    def claim(self) -> Claim:
        """The fields that identify the member in reads and commits."""
        return Claim(self.group, self.member, self.generation)

    async def begin(self, start: PartitionStart | None, from_time: Moment | None) -> None:
        """Joins for the first time, a new group at the place named, and renews the lease from now on."""
        if start is not None or from_time is not None:
            self._start, _ = await resolve_place(self._route, start, from_time, self._partition)
        self.incarnation = await self._route.resolve()
        await self.renew()
        self._heart = self._route.link.loop.create_task(self._beat(), name="penstock keeps a member's lease")

    async def renew(self) -> GroupMembership:
        """Joins, which also says that the member still lives."""
        assert self.incarnation is not None
        request = JoinGroup(
            self.incarnation.queue_id,
            self.group,
            self.member,
            self._lease_ms,
            self._start,
            self._partition,
        )
        before = self.answer
        self.answer = answer = await self._route.link.ask(request, GroupMembership)
        if before is not None and bool(before.shares) != bool(answer.shares):
            self._news.set()
        self._changed(answer)
        return answer

    async def _beat(self) -> None:
        while True:
            has_share = self.answer is not None and bool(self.answer.shares)
            pause = next_beat_seconds(self._lease_ms, self._partitions, has_share=has_share)
            self._news.clear()
            if await came(self._news, pause):
                continue  # a member that has no share any more asks more often
            try:
                await self.renew()
            except PenstockError as error:
                if not error.retryable:
                    self._failed(error)
                    return
                logger.warning(
                    "could not renew the lease of a reader in group %(group)r: %(error)s",
                    {"group": self.group, "error": error},
                )

    async def commit(self, offset: int, generation: int) -> None:
        """Returns when the offset is on disk; raises `not-a-member` if the partition is assigned to another member by now."""
        assert self.incarnation is not None
        request = CommitOffset(self.incarnation.queue_id, self.group, offset, self.member, generation)
        await self._route.link.ask(request, Done)

    def stop_beating(self) -> None:
        """Stops renewing the lease."""
        if self._heart is not None:
            self._heart.cancel()

    async def leave(self) -> None:
        """Gives the share to others at once, where there is a server to tell."""
        if self.incarnation is not None and self.answer is not None:
            await self._route.link.ask(
                LeaveGroup(self.incarnation.queue_id, self.group, self.member, self._partition),
                Done,
                resend=False,
            )

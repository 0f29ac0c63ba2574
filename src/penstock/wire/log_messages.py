"""Reading a retained log: slices, and consumer groups with their offsets and members.

An offset is a sequence number: that of the next message to read.
"""

from __future__ import annotations

import msgspec


class ReadLog(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """Reads from `start` on. Answered with `LogSlice`, at once or when a message arrives or `wait_ms` has passed.

    If no message has the number `start`, because numbers were skipped there (`LogBounds.gaps`), it reads from the next one
    on. Fails with `offset-gone` if the log begins later: nothing is ever skipped silently. With `group`, `member` and
    `generation` it fails with `not-a-member` if the group assigned the partition to another member, and renews the
    member's lease.
    """

    queue_id: int
    start: int
    max_messages: int = 1_000
    max_bytes: int | None = None
    wait_ms: int = 0
    group: str = ""
    member: str = ""
    generation: int = 0


class FindOffset(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """Answered with `LogBounds`; `found` is the first message sent at or after `time_ms`, or the end."""

    queue_id: int
    time_ms: int | None = None
    partition: int = 0
    """Of a queue of a cluster: the ordinal of the one that is asked about."""


class CommitOffset(msgspec.Struct, frozen=True, array_like=True, tag=24):
    """Answered with `Done`, after it is on disk. With a member it is refused unless the partition is assigned to it.

    Without a member (empty) any client may commit for a group that has none; it creates the group if necessary.
    """

    queue_id: int
    group: str
    offset: int
    member: str = ""
    generation: int = 0


class JoinGroup(msgspec.Struct, frozen=True, array_like=True, tag=25):
    """Answered with `GroupMembership`. A repeated request renews the lease, which otherwise ends after `lease_ms`.

    A new group begins at `start` (`None`: the beginning of the log). A queue of several partitions is joined partition by
    partition: each chooses its reader among its members.
    """

    queue_id: int
    group: str
    member: str
    lease_ms: int = 10_000
    start: int | None = None
    partition: int = 0
    """The ordinal of the one that is joined."""
    partitions: int = 1
    """How many the queue has: for nodes, front ends know it themselves."""


class LeaveGroup(msgspec.Struct, frozen=True, array_like=True, tag=26):
    """Answered with `Done`; the partition is assigned to another member at once."""

    queue_id: int
    group: str
    member: str
    partition: int = 0


class ListGroups(msgspec.Struct, frozen=True, array_like=True, tag=27):
    """Answered with `GroupList`, by name, at most `limit` after the name `after`."""

    queue_id: int
    after: str = ""
    limit: int = 1_000
    partition: int = 0


class SeekGroup(msgspec.Struct, frozen=True, array_like=True, tag=28):
    """Answered with `GroupDescription`. Exactly one of the two is given. Members start again from there.

    An offset applies to the given partition.
    """

    queue_id: int
    group: str
    offset: int | None = None
    time_ms: int | None = None
    partition: int = 0


class DeleteGroup(msgspec.Struct, frozen=True, array_like=True, tag=29):
    """Answered with `Done`; refused while it has members."""

    queue_id: int
    group: str
    partition: int = 0


class LocateLog(msgspec.Struct, frozen=True, array_like=True, tag=36):
    """Asks a front end where a partition's log can be read without it. Answered with `LogAddress`."""

    queue_id: int
    partition: int = 0
    holder: bytes = b""
    """The requester, for the ticket (`read_ticket`). The front end's guard writes it; a client's value is ignored."""


class LoggedBatch(msgspec.Struct, frozen=True, array_like=True):
    """A run of messages and their slice of the body (`size` bytes, one encoded batch, verbatim)."""

    first: int
    count: int
    sent_ms: int
    size: int
    stamp_us: int = 0
    process: int = 0
    counter: int = 0


class LogSlice(msgspec.Struct, frozen=True, array_like=True, tag=114):
    """Body: the slices of `batches`, one after the other. They are consecutive, from the first one to `next`.

    The first one begins with `start` of the request, or after the gap in the numbers that contains it. Without batches
    `next` is `start`, or the end of that gap.
    """

    batches: list[LoggedBatch]
    next: int
    """Where to continue."""
    end: int
    """The end of the log when this was read."""


class LogBounds(msgspec.Struct, frozen=True, array_like=True, tag=115):
    """The ends of the log, and the offset that was looked for."""

    begin: int
    end: int
    found: int
    gaps: list[tuple[int, int]] = []
    """Numbers that no message has and none ever will, from the first up to, and without, the second; in rising order. They were
    left out after failovers that may have lost messages."""


class GroupMembership(msgspec.Struct, frozen=True, array_like=True, tag=116):
    """What a member may read: its partitions, by number, as long as its lease lasts."""

    generation: int
    shares: list[tuple[int, int]]
    """(partition, next offset); none: others have all of them, the member stands by."""
    members: int
    lease_ms: int


class GroupDescription(msgspec.Struct, frozen=True, array_like=True, tag=117):
    """A group in one partition, for operators."""

    name: str
    offset: int
    committed_ms: int
    lag_messages: int
    lag_ms: int
    """How long ago the next message was sent; 0 where none waits."""
    generation: int
    members: list[str]
    reader: str = ""
    """The member who has the share; empty where there are none."""


class GroupList(msgspec.Struct, frozen=True, array_like=True, tag=118):
    """A page of groups; `more` says whether another follows."""

    groups: list[GroupDescription]
    more: bool


class LogAddress(msgspec.Struct, frozen=True, array_like=True, tag=125):
    """The node that leads a partition, for reading alone. Without an address: read where this was asked."""

    address: str = ""
    """HOST:PORT of the node's port for readers."""
    ticket: bytes = b""
    """The first frame there (`read_ticket`): valid for this partition, for a few minutes. It is a secret."""
    partition_id: int = 0
    """The `queue_id` of `ReadLog` there; its offsets there are without the ordinal."""
    authority: str = ""
    """The authority of the node's certificate (PEM): the port uses TLS. Empty: it does not."""
    certified_name: str = ""
    """The name that the node's certificate must contain; empty: names are ignored."""

    def __repr__(self) -> str:
        """Without the ticket: it is nobody's business who reads a log or a traceback."""
        return f"LogAddress(address={self.address!r}, partition_id={self.partition_id})"

"""The table of the lifecycle log: one row for each change of a run of messages, in the order in which a partition made them."""

from __future__ import annotations

from enum import IntEnum

from penstock.columnar.table import Column, Table

LIFECYCLE_QUEUE = "penstock.lifecycle"
"""The retained log that holds it: every message's body is one Arrow stream of such rows."""


class Change(IntEnum):
    """What happened to the messages of a run."""

    SENT = 1
    """A producer's send was acknowledged."""
    ARRIVED = 2
    """They came from another queue: `other_queue`, `other_partition_id` and `other_first` name the origin."""
    LEASED = 3
    RELEASED = 4
    """A lease ended without a delete: `reason` says how (released, lease-ended, undelivered, unreceived)."""
    EXTENDED = 5
    RESUMED = 6
    DELETED = 7
    EXPIRED = 8
    DROPPED = 9
    """They made room under overflow policy drop-oldest."""
    PURGED = 10
    MOVE_STARTED = 11
    """They are on their way to `other_queue`: dead-lettered, redriven or late, as `reason` says."""
    MOVE_FINISHED = 12
    MOVE_ABANDONED = 13
    QUEUE_DELETED = 14
    """Everything that was left is gone with its queue."""
    MATURED = 15
    """Their delay is over."""
    STOOD = 16
    """They were there when the queue began to be followed: their send is not in this table."""
    UNFOLLOWED = 17
    """They existed when the lifecycle log was switched off: later changes are not in this table."""
    RENUMBERED = 18
    """No messages (`count` is 0): the partition continues after an unclean election, which may have lost rows. Later rows
    continue with the number of this one, earlier ones end before the number `first`; no row has a number between.
    """


FINAL = frozenset(
    {
        Change.DELETED,
        Change.EXPIRED,
        Change.DROPPED,
        Change.PURGED,
        Change.MOVE_FINISHED,
        Change.QUEUE_DELETED,
    }
)
"""After one of these a message is gone from its queue; of every message exactly one of them is the last."""

CENSUS = frozenset({Change.STOOD, Change.UNFOLLOWED, Change.QUEUE_DELETED})
"""These name everything that is there: a message that none of their rows names is not there."""

LIFECYCLE = Table(
    "lifecycle",
    (
        Column("time", "timestamp"),
        Column("queue", "string"),
        Column("queue_id", "int64"),  # the incarnation, in a cluster that of the whole queue
        Column("partition", "int32"),  # the ordinal
        Column("partition_id", "int64"),  # with `number`: one row, for ever
        # rises by one a row of the partition, but before `RENUMBERED`: a gap is a lost row, a repeat the same row
        Column("number", "int64"),
        Column("change", "int8"),
        Column("first", "int64"),  # the messages [first, first + count) of the partition
        Column("count", "int32"),
        Column("lease", "int64", optional=True),
        Column(
            "until", "timestamp", optional=True
        ),  # of a lease its end, of a release or delay when they are ready
        Column("reason", "string", optional=True),
        Column("consumer", "string", optional=True),  # who leased them, as far as it is known
        Column("error", "string", optional=True),  # the consumer's error when it released them
        Column("message_group", "string", optional=True),  # of messages that were sent with one
        Column("ordering", "string", optional=True),  # of sent messages: the queue's order then
        Column("bytes", "int64", optional=True),  # of sent messages: bodies and attributes
        Column("receives", "int32", optional=True),  # of moved messages: how often they were received at most
        Column("other_queue", "string", optional=True),
        Column("other_partition_id", "int64", optional=True),
        Column("other_first", "int64", optional=True),
        # Of rows that together name all existing messages (stood, unfollowed, queue deleted): the number of the first of
        # these rows and of the last. Without messages it is one row with a count of 0.
        Column("census_first", "int64", optional=True),
        Column("census_last", "int64", optional=True),
        # of messages sent to a `clock` queue: the source of their order
        Column("stamps", "string", optional=True),
    ),
)

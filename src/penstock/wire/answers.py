"""The heads of all answers of the server. `messages` describes their encoding."""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.origin import Origin
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.wire.clock_messages import ClockReading, TakenIds
from penstock.wire.deduplication_messages import ClaimedIds, FoundIds
from penstock.wire.log_messages import (
    GroupDescription,
    GroupList,
    GroupMembership,
    LogAddress,
    LogBounds,
    LogSlice,
)
from penstock.wire.requests import MessageState


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=100):
    """Any request may get this answer; `code` is a row of `model.errors`."""

    code: str
    message: str


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=101):
    """Answers `Hello`, or the requested proof."""

    version: int
    server: str
    node: str
    now_ms: int
    proof: bytes = b""
    """After a `Challenge`: that the server knows the secret too."""


class Challenge(msgspec.Struct, frozen=True, array_like=True, tag=122):
    """Answers a `Hello` with an access key, if there are users; the client continues with `Prove`."""

    nonce: bytes


class Done(msgspec.Struct, frozen=True, array_like=True, tag=102):
    """The request was carried out and is on disk."""


class QueueStatistics(msgspec.Struct, frozen=True, array_like=True):
    """Counts as of now. The totals count since the queue was created."""

    ready: int
    leased: int
    delayed: int
    moving: int
    bytes: int
    next_sequence: int
    oldest_sent_ms: int | None
    waiting_receivers: int
    sent_total: int
    deleted_total: int
    redelivered_total: int
    expired_total: int
    dead_lettered_total: int
    dropped_total: int
    purged_total: int
    segment_files: int
    segment_bytes: int
    memory_bytes: int
    held: int = 0
    """Messages that wait in the window of a queue ordered by its producers' stamps."""
    late_total: int = 0
    watermark_us: int = 0
    """On a queue ordered by time: up to which time messages have left the window, or the last stamp; 0: none yet."""
    log_begin: int = 0
    """On a queue with a retained log: the number of its oldest message."""
    log_messages: int = 0
    log_bytes: int = 0
    log_groups: int = 0
    """Groups of readers."""
    lifecycle_waiting: int = 0
    """If the queue has a lifecycle log: rows that the log `penstock.lifecycle` does not have yet."""
    lifecycle_dropped_total: int = 0
    """Rows that it never got, because too many waited."""
    lost_total: int = 0
    """Messages that were acknowledged, perhaps, and went with a failover of a queue that is replicated `async`."""


class ReplicaStatus(msgspec.Struct, frozen=True, array_like=True):
    """In a cluster: the node's role in a partition."""

    role: Literal["primary", "secondary"]
    epoch: int
    last: int
    """The index of its last record."""
    committed: int
    in_sync: list[str]
    behind: dict[str, int]
    """Of a primary: how many records each of the others has not confirmed."""


class QueueDescription(msgspec.Struct, frozen=True, array_like=True, tag=103):
    """A queue: identity, settings, statistics, and its problems, if any."""

    queue_id: int
    name: str
    settings: QueueSettings
    created_ms: int
    statistics: QueueStatistics
    damage: str | None = None
    replica: ReplicaStatus | None = None
    forecast: str | None = None
    """In a cluster: warnings of the data pipeline that it fills up or needs more partitions."""


class QueueList(msgspec.Struct, frozen=True, array_like=True, tag=104):
    """A page of queues; `more` says whether another follows."""

    queues: list[QueueDescription]
    more: bool


class SendResult(msgspec.Struct, frozen=True, array_like=True, tag=105):
    """The sequence numbers of the messages, as runs in the order of the batch.

    `duplicates`: indexes in the batch of messages that were there already; their number is the original's.
    """

    runs: Runs
    duplicates: list[int]
    sent_ms: int
    stamp_us: int = 0
    """The server's stamp, on a queue that it stamps."""


class DeliveredBatch(msgspec.Struct, frozen=True, array_like=True):
    """A run of messages and their slice of the delivery's body (`size` bytes, one encoded batch)."""

    first: int
    count: int
    sent_ms: int
    size: int
    receive_counts: int | list[int]
    """One number for all, or one each."""
    first_received_ms: int | list[int]
    origin: Origin | None = None
    """Of exactly these messages: its runs, receive counts and roots have one entry a message, in this order."""
    states: list[MessageState] | None = None
    """For `Peeked` only."""
    stamp_us: int = 0
    process: int = 0
    counter: int = 0
    """Of the first message: its timestamp id. The batch's column of stamps, if it has one, has the times of all."""


class Delivery(msgspec.Struct, frozen=True, array_like=True, tag=106):
    """Body: the slices of `batches`, one after the other. An empty one has no batches and no token."""

    token: bytes
    until_ms: int
    batches: list[DeliveredBatch]


class QueueDelivery(msgspec.Struct, frozen=True, array_like=True):
    """The messages of one queue for a `ReceiveAny`, with a separate lease."""

    queue_id: int
    token: bytes
    until_ms: int
    batches: list[DeliveredBatch]


class GroupDelivery(msgspec.Struct, frozen=True, array_like=True, tag=119):
    """Body: the slices of all batches, one after the other, in the order of `deliveries`."""

    deliveries: list[QueueDelivery]


class ReceiptOutcome(msgspec.Struct, frozen=True, array_like=True):
    """The outcome for the messages of one receipt: done now, gone already, or the lease had ended."""

    done: int
    gone: int
    stale: Runs


class Settled(msgspec.Struct, frozen=True, array_like=True, tag=107):
    """One outcome per receipt, in order."""

    outcomes: list[ReceiptOutcome]


class Peeked(msgspec.Struct, frozen=True, array_like=True, tag=108):
    """Body: as in `Delivery`. `next`: where to continue, None at the end."""

    batches: list[DeliveredBatch]
    next: int | None


class Count(msgspec.Struct, frozen=True, array_like=True, tag=109):
    """How many messages the request changed."""

    messages: int


class Redriven(msgspec.Struct, frozen=True, array_like=True, tag=110):
    """How many messages are moving, and where to continue (None: nothing left)."""

    messages: int
    next: int | None


class NodeDescription(msgspec.Struct, frozen=True, array_like=True, tag=111):
    """The node for operators."""

    node: str
    version: str
    data_directory: str
    started_ms: int
    queues: int
    connections: int
    disk_full: bool
    journal_files: int
    journal_bytes: int
    segment_files: int
    segment_bytes: int
    snapshot_bytes: int
    flushes_total: int
    flushed_bytes_total: int
    cpu_seconds: float
    memory_bytes: int
    damage: list[str]
    leads: int = 0
    """In a cluster: partitions that this node leads, and those that it follows."""
    follows: int = 0


Answer = (
    Failed
    | Welcome
    | Done
    | QueueDescription
    | QueueList
    | SendResult
    | Delivery
    | Settled
    | Peeked
    | Count
    | Redriven
    | NodeDescription
    | GroupDelivery
    | ClockReading
    | TakenIds
    | LogSlice
    | LogBounds
    | GroupMembership
    | GroupDescription
    | GroupList
    | ClaimedIds
    | FoundIds
    | LogAddress
    | Challenge
)

"""Every message of the native protocol: a typed head, and for a few a body of raw bytes.

Heads are msgpack arrays in field order, tagged with their number. New fields go at the end with a default, so
that old and new peers understand each other. `docs/reference/native-protocol.md` is the prose of this file.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.records import Origin
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings

PROTOCOL_VERSION = 1

MessageState = Literal["ready", "leased", "delayed", "moving"]


# -- requests ------------------------------------------------------------------------------------------------


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """First on every connection."""

    versions: list[int]
    client: str


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Answered with `Done`."""


class CreateQueue(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Answered with `QueueDescription`; the same settings again give the queue that exists."""

    name: str
    settings: QueueSettings


class AlterQueue(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Answered with `QueueDescription`."""

    name: str
    changes: dict[str, str | int | None]


class DeleteQueue(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Answered with `Done`."""

    name: str


class ListQueues(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Answered with `QueueList`, by name, at most `limit` after the name `after`."""

    prefix: str = ""
    after: str = ""
    limit: int = 1_000


class DescribeQueue(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Answered with `QueueDescription`; its `queue_id` is what the requests below take."""

    name: str


class Send(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Body: one batch. Answered with `SendResult`, after it is on disk.

    (`producer`, `number`) identify the batch: sent again under the same pair it is answered, not stored again.
    Numbers of one producer rise by one per batch and queue. Producer 0: no such protection.
    """

    queue_id: int
    producer: int = 0
    number: int = 0


class Receive(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Answered with `Delivery`, at once or when a message arrives or `wait_ms` has passed (then empty)."""

    queue_id: int
    max_messages: int = 10
    wait_ms: int = 0
    visibility_timeout_ms: int | None = None
    max_bytes: int | None = None


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Answered with any number of `Delivery` under the same request id, within the credit, until cancelled."""

    queue_id: int
    credit: int
    batch_messages: int = 100
    visibility_timeout_ms: int | None = None


class AddCredit(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """Allows a subscription more messages; not answered. `subscription` is the request id of `Subscribe`."""

    subscription: int
    messages: int


class Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Answered with `Done`; no delivery follows it."""

    subscription: int


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """What proves that messages are leased to the sender: the delivery's token and sequence numbers."""

    token: bytes
    runs: Runs


class Delete(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Answered with `Settled`, after it is on disk."""

    receipts: list[Receipt]


class Release(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Gives messages back, ready after `delay_ms`. Answered with `Settled`."""

    receipts: list[Receipt]
    delay_ms: int = 0


class Extend(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The leases end `visibility_timeout_ms` from now. Answered with `Settled`."""

    receipts: list[Receipt]
    visibility_timeout_ms: int


class PeekFilter(msgspec.Struct, frozen=True, array_like=True):
    """All that is given must hold."""

    states: list[MessageState] | None = None
    body_contains: bytes | None = None
    group: bytes | None = None
    attributes: dict[str, str] | None = None
    """Attribute values, compared as text."""
    reason: str | None = None
    source: str | None = None
    """For dead letters: why they died, and in which queue."""


class Peek(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """Reads without leasing, from sequence number `start` on. Answered with `Peeked`."""

    queue_id: int
    start: int = 0
    max_messages: int = 10
    filter: PeekFilter | None = None


class Purge(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """Answered with `Count` of messages purged."""

    queue_id: int


class Redrive(msgspec.Struct, frozen=True, array_like=True, tag=18):
    """Moves ready messages of a dead-letter queue on, at most `max_messages` a request. Answered with `Redriven`.

    `target` None: each goes back to the queue it died in. `runs` None: any; else only those. Ask again with
    `start` = the `next` of the answer until it is None.
    """

    queue_id: int
    target: str | None = None
    max_messages: int = 1_000
    start: int = 0
    runs: Runs | None = None
    filter: PeekFilter | None = None


class DescribeNode(msgspec.Struct, frozen=True, array_like=True, tag=19):
    """Answered with `NodeDescription`."""


Request = (
    Hello
    | Ping
    | CreateQueue
    | AlterQueue
    | DeleteQueue
    | ListQueues
    | DescribeQueue
    | Send
    | Receive
    | Subscribe
    | AddCredit
    | Unsubscribe
    | Delete
    | Release
    | Extend
    | Peek
    | Purge
    | Redrive
    | DescribeNode
)


# -- answers -------------------------------------------------------------------------------------------------


class Failed(msgspec.Struct, frozen=True, array_like=True, tag=100):
    """Any request may be answered with this; `code` is a row of `model.errors`."""

    code: str
    message: str


class Welcome(msgspec.Struct, frozen=True, array_like=True, tag=101):
    """Answers `Hello`."""

    version: int
    server: str
    node: str
    now_ms: int


class Done(msgspec.Struct, frozen=True, array_like=True, tag=102):
    """It is done and on disk."""


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


class QueueDescription(msgspec.Struct, frozen=True, array_like=True, tag=103):
    """A queue: identity, settings, statistics, and what is wrong with it, if anything."""

    queue_id: int
    name: str
    settings: QueueSettings
    created_ms: int
    statistics: QueueStatistics
    damage: str | None = None


class QueueList(msgspec.Struct, frozen=True, array_like=True, tag=104):
    """A page of queues; `more` says whether another follows."""

    queues: list[QueueDescription]
    more: bool


class SendResult(msgspec.Struct, frozen=True, array_like=True, tag=105):
    """The sequence numbers of the messages, as runs in the order of the batch.

    `duplicates`: indexes in the batch of messages that were there already; theirs is the original's number.
    """

    runs: Runs
    duplicates: list[int]
    sent_ms: int


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
    states: list[MessageState] | None = None
    """For `Peeked` only."""


class Delivery(msgspec.Struct, frozen=True, array_like=True, tag=106):
    """Body: the slices of `batches`, one after the other. An empty one has no batches and no token."""

    token: bytes
    until_ms: int
    batches: list[DeliveredBatch]


class ReceiptOutcome(msgspec.Struct, frozen=True, array_like=True):
    """What became of the messages of one receipt: done now, gone already, or no longer the sender's."""

    done: int
    gone: int
    stale: Runs


class Settled(msgspec.Struct, frozen=True, array_like=True, tag=107):
    """One outcome per receipt, in order."""

    outcomes: list[ReceiptOutcome]


class Peeked(msgspec.Struct, frozen=True, array_like=True, tag=108):
    """Body: as in `Delivery`. `next`: where to go on, None at the end."""

    batches: list[DeliveredBatch]
    next: int | None


class Count(msgspec.Struct, frozen=True, array_like=True, tag=109):
    """How many messages the request changed."""

    messages: int


class Redriven(msgspec.Struct, frozen=True, array_like=True, tag=110):
    """How many messages are on their way, and where to go on (None: nothing left)."""

    messages: int
    next: int | None


class NodeDescription(msgspec.Struct, frozen=True, array_like=True, tag=111):
    """The node as operators see it."""

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
)
Message = Request | Answer

_encoder = msgspec.msgpack.Encoder()
_requests: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def encode_message(message: Message) -> bytes:
    """The head of a frame."""
    return _encoder.encode(message)


def decode_request(head: bytes | memoryview) -> Request:
    """Raises `msgspec.DecodeError` (or its `ValidationError`) on anything that is not a request."""
    return _requests.decode(head)


def decode_answer(head: bytes | memoryview) -> Answer:
    """Raises `msgspec.DecodeError` (or its `ValidationError`) on anything that is not an answer."""
    return _answers.decode(head)

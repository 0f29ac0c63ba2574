"""The heads of all requests of clients. `messages` describes their encoding.

`queue_id` is the id of a queue in a client's request. A front end of a cluster passes the request on to a node with the id
of one partition in the same field.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings
from penstock.wire.clock_messages import ReadClock, TakeIds
from penstock.wire.deduplication_messages import ClaimIds, FindIds
from penstock.wire.log_messages import (
    CommitOffset,
    DeleteGroup,
    FindOffset,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    LocateLog,
    ReadLog,
    SeekGroup,
)

MessageState = Literal["ready", "leased", "delayed", "moving", "held"]


class Hello(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """First on every connection."""

    versions: list[int]
    client: str
    access_key: str = ""
    """The client's access key; empty: none. A server with users answers with `Challenge`: see `credentials`."""
    nonce: bytes = b""


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Answered with `Done`."""


class CreateQueue(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Answered with `QueueDescription`; the same settings again return the existing queue."""

    name: str
    settings: QueueSettings


class AlterQueue(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Answered with `QueueDescription`."""

    name: str
    changes: dict[str, str | int | bool | None]


class DeleteQueue(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Answered with `Done`."""

    name: str
    queue_id: int = 0
    """Only the queue of that name with this id, so that the request may be sent again; 0: the queue that has the name."""


class ListQueues(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Answered with `QueueList`, by name, at most `limit` after the name `after`."""

    prefix: str = ""
    after: str = ""
    limit: int = 1_000
    owners: list[str] = []
    """Only queues of these (`model/queue_owner.py`); none: all. The guard of a server with users sets this."""


class DescribeQueue(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Answered with `QueueDescription`; its `queue_id` is for the requests below."""

    name: str
    queue_id: int = 0
    """Only the queue of that name with this id; 0: the queue that has the name. A node of a cluster may hold several of one name."""


class Send(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Body: one batch. Answered with `SendResult`, after it is on disk.

    (`producer`, `number`) identify the batch: if it is sent again under the same pair it is answered, not stored again.
    Numbers of one producer rise with every batch to a queue, also after the queue was created again: none is used twice.
    Producer 0: no such protection.
    """

    queue_id: int
    producer: int = 0
    number: int = 0
    process: int = 0
    counter: int = 0
    """For stamped batches: the process and the counter of the first message's timestamp id; counters run on."""
    time_us: int = 0
    """For stamped batches without a column of stamps: the time of all messages. 0 and no column: not stamped."""
    uncertainty_us: int = 0
    """The maximum error of the stamps, by the producer's clock."""
    internal: bool = False
    """Penstock itself sends this: only so can something be sent to the queues that it writes."""
    after: int = 0
    """The number of the batch that the producer sent before this one to the queue, while that is unanswered: this one is
    stored after it, or refused with `out-of-order`. 0: nothing before it is unanswered, or the order does not matter."""
    left_out: list[tuple[int, int]] = []
    """From a front end to a node: messages of the batch that other partitions have already, by their places in the whole, and
    their numbers there as clients see them, 0 where that is not known yet. The body has the rest; it is empty where there is none, and
    the batch is remembered as one of duplicates. Places rise."""


class Receive(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Answered with `Delivery`, at once or when a message arrives or `wait_ms` has passed (then empty)."""

    queue_id: int
    max_messages: int = 10
    wait_ms: int = 0
    visibility_timeout_ms: int | None = None
    max_bytes: int | None = None
    max_leased: int | None = None
    """Refused with `limit-reached` where the queue has so many leased messages; it never has more by this receive."""
    attempt: bytes = b""
    """A repeated request with the same id within 5 minutes gets the same messages under the same lease, extended. An attempt
    that found nothing is not remembered; one whose messages were settled since fails with `attempt-changed`.
    """
    consumer: str = ""
    """The name of the consumer, for the lifecycle log; empty: the name in the connection's `Hello`."""


class WeightedQueue(msgspec.Struct, frozen=True, array_like=True):
    """A queue of a priority group."""

    queue_id: int
    weight: int


class ReceiveAny(msgspec.Struct, frozen=True, array_like=True, tag=30):
    """Receives from several queues, each served by its weight. Answered with `GroupDelivery` as `Receive` is."""

    queues: list[WeightedQueue]
    max_messages: int = 10
    wait_ms: int = 0
    visibility_timeout_ms: int | None = None
    max_bytes: int | None = None
    consumer: str = ""
    """As in `Receive`."""


class Subscribe(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """Answered with any number of `Delivery` under the same request id, within the credit, until cancelled."""

    queue_id: int
    credit: int
    batch_messages: int = 100
    visibility_timeout_ms: int | None = None
    consumer: str = ""
    """As in `Receive`."""


class AddCredit(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """Allows a subscription more messages; not answered. `subscription` is the request id of `Subscribe`."""

    subscription: int
    messages: int


class Unsubscribe(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Answered with `Done`; no delivery follows it. With the request id of a waiting `Receive` it ends the wait."""

    subscription: int


class Receipt(msgspec.Struct, frozen=True, array_like=True):
    """The proof that messages are leased to the sender: the delivery's token and sequence numbers."""

    token: bytes
    runs: Runs
    received: int | None = None
    """The receive count of all these messages in the delivery. With it a request also applies to messages whose lease has
    ended and that were not received since: `Delete` deletes them, `Extend` hides those that are ready under the lease
    again, and `Release` without a delay counts those that are ready as released.
    """


class Delete(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Answered with `Settled`, after it is on disk."""

    receipts: list[Receipt]


class Release(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Returns messages, ready after `delay_ms`. Answered with `Settled`."""

    receipts: list[Receipt]
    delay_ms: int = 0
    unreceived: bool = False
    """No consumer has seen the messages: this receive does not count. Only the receipt's lease is used."""
    error: str = ""
    """The consumer's error, for the lifecycle log; at most 1,000 characters."""


class Extend(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The leases end `visibility_timeout_ms` from now. Answered with `Settled`."""

    receipts: list[Receipt]
    visibility_timeout_ms: int


class PeekFilter(msgspec.Struct, frozen=True, array_like=True):
    """All given conditions must be true."""

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
    """Moves ready messages of a dead-letter queue, at most `max_messages` a request. Answered with `Redriven`.

    `target` None: each goes back to the queue in which it died. `runs` None: any; else only those. Repeat with `start` =
    the `next` of the answer until it is None.
    """

    queue_id: int
    target: str | None = None
    max_messages: int = 1_000
    start: int = 0
    runs: Runs | None = None
    filter: PeekFilter | None = None


class DescribeNode(msgspec.Struct, frozen=True, array_like=True, tag=19):
    """Answered with `NodeDescription`."""

    owners: list[str] = []
    """The owners whose damaged queues are named, as in `ListQueues`."""


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
    | ReceiveAny
    | ReadClock
    | TakeIds
    | ReadLog
    | FindOffset
    | CommitOffset
    | JoinGroup
    | LeaveGroup
    | ListGroups
    | SeekGroup
    | DeleteGroup
    | ClaimIds
    | FindIds
    | LocateLog
)

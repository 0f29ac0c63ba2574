"""The catalogue of records: the only way to change a queue.

A record is a small head (here) and, for `Sent`, a payload (a batch, verbatim). Heads are explicit: they name the runs that
they change and the times that they set, so applying one needs no clock and no choice, and replaying them gives the same
state on any replica. The journal stores them, replication sends them, the ledger reads them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.document import DocumentReader
from penstock.model.log_records import GroupChanged as GroupChanged
from penstock.model.log_records import GroupRemoved as GroupRemoved
from penstock.model.log_records import LogCut as LogCut
from penstock.model.log_records import OffsetCommitted as OffsetCommitted
from penstock.model.origin import Lateness, Origin, Reason
from penstock.model.runs import Runs
from penstock.model.settings import QueueSettings

CATALOGUE = 0
"""The partition number of the node's own catalogue of queues."""
NUMBERS_SKIPPED, SPENT_MOVED, TIMERS_ENDED = 1, 2, 3
KINDS = 3
"""Rises with a kind of record that earlier versions cannot read. A node says in its entry which number it knows, and a primary writes
such a kind only where all living replicas know it: replicas of the version before would follow no further.

1: `NumbersSkipped`, `DuplicatesSent`. 2: `SpentMoved`. 3: `TimersEnded`."""

ReleaseReason = Literal["released", "lease-ended", "undelivered", "unreceived"]
"""`unreceived`: no consumer ever saw the messages, and the receive that leased them does not count."""


class Sent(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A batch was appended at [first, first + count). Payload: the batch."""

    first: int
    count: int
    sent_ms: int
    delay_ms: int
    ttl_ms: int
    """The queue's default when it was sent, for messages without their own; 0 = none."""
    producer: int
    number: int
    origin: Origin | None = None
    duplicates: list[tuple[int, int]] | None = None
    """(index in the producer's batch, sequence of the original) of messages left out as duplicates."""
    stamp_us: int = 0
    """The server's stamp of all messages, or the producer's where the batch has no column of them; 0: none."""
    process: int = 0
    counter: int = 0
    """With a producer's stamps: the rest of the id of the first message; counters run on along the batch."""
    late: int = 0
    """So many messages, the first in the order of ids, were late: they are not sorted in."""


class Leased(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Messages were leased under one lease."""

    lease: int
    runs: Runs
    at_ms: int
    until_ms: int
    attempt: bytes = b""
    """The id under which the receiver may ask for the same messages again; empty: it may not."""
    consumer: str = ""
    """The consumer that received them, if the queue has a lifecycle log and it is known."""


class Deleted(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The consumer that holds the lease, or was the last to hold it, has finished with the messages."""

    lease: int
    runs: Runs
    at_ms: int


class Released(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """A lease on the messages ended without a delete; ready at `ready_ms` (not before)."""

    lease: int
    runs: Runs
    reason: ReleaseReason
    at_ms: int
    ready_ms: int
    error: str = ""
    """The error that the consumer gave."""


class Extended(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The lease on the messages now ends at `until_ms`."""

    lease: int
    runs: Runs
    at_ms: int
    until_ms: int


class Matured(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """The delay of the messages is over."""

    runs: Runs
    at_ms: int


class Expired(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The time to live of the messages or the queue's retention is over."""

    runs: Runs
    reason: Literal["ttl", "retention"]
    at_ms: int


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The oldest messages were removed under overflow policy drop-oldest."""

    runs: Runs
    at_ms: int


class MoveStarted(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """The messages are moving to another queue: here they are neither ready nor gone."""

    runs: Runs
    target: str
    """See `model/move_target.py`."""
    reason: Reason
    at_ms: int
    late: Lateness | None = None


class SpentMoved(msgspec.Struct, frozen=True, array_like=True, tag=33):
    """A lease ended on messages that may not be received again: they are moving to the dead-letter queue.

    One record says both. After the first of two, messages would be ready, and a crash or a failover there would let them
    be received again.
    """

    lease: int
    runs: Runs
    reason: ReleaseReason
    at_ms: int
    target: str
    error: str = ""
    """The error that the consumer gave."""

    @property
    def released(self) -> Released:
        """The record that ended the lease, without a delay: if the move is abandoned, its timer could end a later one."""
        return Released(self.lease, self.runs, self.reason, self.at_ms, self.at_ms, self.error)

    @property
    def started(self) -> MoveStarted:
        """The record that began the move."""
        return MoveStarted(self.runs, self.target, "max-receives", self.at_ms)


class TimersEnded(msgspec.Struct, frozen=True, array_like=True, tag=34):
    """A part of the timers that are due is over: all of slots before `slot_ms`, and in that slot those of messages before `end`.

    `Matured`, `Expired` and `MoveStarted` end all that are due. Where that is too much for one turn, several of these end one
    part after the other. The part is named by times and numbers, so that it is the same on every replica, whatever timers of messages
    that are gone it still has.
    """

    timers: Literal["delay", "ttl"]
    runs: Runs
    """Those messages whose delay or time to live is over by that."""
    slot_ms: int
    end: int
    at_ms: int
    target: str = ""
    """Where messages go whose time to live is over; empty: they are gone."""

    @property
    def effect(self) -> Matured | Expired | MoveStarted:
        """What becomes of the messages."""
        if self.timers == "delay":
            return Matured(self.runs, self.at_ms)
        if self.target:
            return MoveStarted(self.runs, self.target, "expired", self.at_ms)
        return Expired(self.runs, "ttl", self.at_ms)


class MoveFinished(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """The target has the messages on disk: they are gone from here."""

    runs: Runs
    at_ms: int


class MoveAbandoned(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The target cannot accept the messages: they are ready here again."""

    runs: Runs
    at_ms: int


class OriginsForgotten(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """The source knows that the move is finished, so the target need not remember it.

    In a cluster requests of the source's former primaries may arrive later than that. Those up to this epoch and number
    are refused.
    """

    source_id: int
    runs: Runs
    at_ms: int
    epoch: int = 0
    number: int = 0
    ended: bool = False
    """The source is deleted: nothing comes from it any more."""


class Purged(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """Everything before `end` is gone, in any state (except moving messages)."""

    end: int
    at_ms: int


class SettingsChanged(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """The queue has new settings."""

    settings: QueueSettings
    at_ms: int


class Resumed(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The lease on the messages had ended, they were not received since, and they are leased under it again."""

    lease: int
    runs: Runs
    at_ms: int
    until_ms: int


class Sorted(msgspec.Struct, frozen=True, array_like=True, tag=24):
    """Messages that waited in the window left it, in the order of their stamps.

    `through`: up to which time, in microseconds; on a causal queue the first sequence number of the last batch whose
    window is over.
    """

    through: int
    at_ms: int


class Closed(msgspec.Struct, frozen=True, array_like=True, tag=16):
    """The partition accepts, and stamps, nothing at or below this time any more."""

    through_us: int
    at_ms: int


class MessagesLost(msgspec.Struct, frozen=True, array_like=True, tag=30):
    """With `async`: messages that an earlier primary may have acknowledged were lost in a failover."""

    messages: int
    at_ms: int


class IdsClaimed(msgspec.Struct, frozen=True, array_like=True, tag=28):
    """At the home of deduplication ids: they belong to these partitions of the queue, by ordinal, until then."""

    ids: list[bytes]
    owners: list[int]
    version: int
    until_ms: int
    at_ms: int


class IdsBarred(msgspec.Struct, frozen=True, array_like=True, tag=29):
    """Claims of these versions were not used here: the ids are refused until then. Version 0 removes that."""

    ids: list[bytes]
    versions: list[int]
    until_ms: int
    at_ms: int


class EpochBegan(msgspec.Struct, frozen=True, array_like=True, tag=25):
    """In a partition of a cluster: the primary of this epoch wrote the following records."""

    epoch: int
    at_ms: int


class NumbersSkipped(msgspec.Struct, frozen=True, array_like=True, tag=31):
    """In a partition of a cluster: the next message gets this number, because earlier ones may belong to lost messages."""

    first: int
    at_ms: int
    first_row: int = 0
    """The number of the next lifecycle row, if rows may have been lost as well; 0: they continue unchanged."""


class DuplicatesSent(msgspec.Struct, frozen=True, array_like=True, tag=32):
    """A producer's batch of which every message was sent before: nothing is stored, and it is remembered by its number."""

    producer: int
    number: int
    originals: Runs
    """The numbers of the messages that were sent before, in the order of the batch."""
    sent_ms: int


class LifecycleReported(msgspec.Struct, frozen=True, array_like=True, tag=26):
    """The rows of the partition's lifecycle up to this number are in the log `penstock.lifecycle`."""

    through: int
    at_ms: int


class LifecycleEnded(msgspec.Struct, frozen=True, array_like=True, tag=27):
    """The queue is deleted: all remaining messages that are not moving are deleted with it."""

    at_ms: int


class QueueCreated(msgspec.Struct, frozen=True, array_like=True, tag=20):
    """Catalogue: a queue exists. Its id is its incarnation and is never used again."""

    partition_id: int
    name: str
    settings: QueueSettings
    at_ms: int


class QueueDeleted(msgspec.Struct, frozen=True, array_like=True, tag=21):
    """Catalogue: the name is free and the queue accepts no more requests; it still finishes its moves."""

    partition_id: int
    at_ms: int


class QueueRemoved(msgspec.Struct, frozen=True, array_like=True, tag=22):
    """Catalogue: nothing of the deleted queue is left."""

    partition_id: int
    at_ms: int


QueueRecord = (
    Sent
    | Leased
    | Deleted
    | Released
    | Extended
    | Matured
    | Expired
    | Dropped
    | MoveStarted
    | SpentMoved
    | TimersEnded
    | MoveFinished
    | MoveAbandoned
    | OriginsForgotten
    | Purged
    | SettingsChanged
    | Resumed
    | Sorted
    | Closed
    | LogCut
    | OffsetCommitted
    | GroupChanged
    | IdsClaimed
    | MessagesLost
    | IdsBarred
    | GroupRemoved
    | EpochBegan
    | NumbersSkipped
    | DuplicatesSent
    | LifecycleReported
    | LifecycleEnded
)
CatalogueRecord = QueueCreated | QueueDeleted | QueueRemoved
Record = QueueRecord | CatalogueRecord

_encoder = msgspec.msgpack.Encoder()
_read: DocumentReader[Record] = DocumentReader(Record, "msgpack", "a record")


def encode_record(record: Record) -> bytes:
    """The head as stored."""
    return _encoder.encode(record)


def decode_record(head: bytes | memoryview) -> Record:
    """The head as read back; raises `msgspec.DecodeError` on anything else, `TooOldError` for a newer version's."""
    return _read.decode(head)

"""The layout of a cluster: what stands in the metadata store about nodes, queues and their partitions.

Everybody reads it, few write it: a node writes that it lives, a front end makes and changes queues, a primary says
that it serves and who is in sync with it, the manager gives partitions to nodes. Every write is on condition that the
entry is still the one that was read, so two writers never undo each other. What several write is a `Document`: a field
of a newer version outlives a change by an older one. What only its owner writes is not: who reads it leaves unknown fields
out.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.document import Document, DocumentReader
from penstock.model.settings import QueueSettings

NODES = "cluster/nodes/"
QUEUES = "cluster/queues/"
PARTITIONS = "cluster/partitions/"
DRAINS = "cluster/drains/"
POSITIONS = "cluster/positions/"
UNCLEAN = "cluster/unclean/"
CAPACITY = "cluster/capacity/"
NEXT_ID = "cluster/next-id"
"""Ids of queues and partitions are one rising count, never used again. This one has no seal: it is for earlier versions."""
IDS = "cluster/ids"
"""The same count with a seal."""

QueueState = Literal["ready", "deleting"]
Expiry = Literal["", "asked", "closed"]


class NodeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A node that lives: the entry stands under its lease and goes with it."""

    node: str
    zone: str = ""
    native: str
    """HOST:PORT for front ends and clients."""
    peers: str
    """HOST:PORT for other nodes."""
    reader: str = ""
    """HOST:PORT where readers with a ticket read logs; empty: nowhere."""
    started_ms: int
    """Since when it lives without a gap: another one after a restart, and after its lease was lost and made anew
    (`lives.new_life_ms`)."""
    load: float = 0.0
    """How busy it is, from 0 to 1; for placement."""
    leaving: bool = False
    """Whether it is about to stop: it hands over what it leads, and is given nothing more."""
    records: int = 0
    """Which kinds of records it reads (`records.KINDS`)."""


class NamedQueue(msgspec.Struct, frozen=True):
    """Of the entry of a queue, which queue it is, and whether clients may use it."""

    queue_id: int
    state: str = "ready"


class QueueEntry(Document, frozen=True, kw_only=True):
    """A queue: its incarnation, its settings, and its partitions in the order of their ordinals."""

    name: str
    queue_id: int
    settings: QueueSettings
    created_ms: int
    partitions: list[int]
    state: QueueState = "ready"
    abandoned: bool = False
    """While it is being deleted: nobody deleted it. Its entry was missing, and it was taken for one that was begun and never made."""
    expiring: bool = False
    """Whether it is to go because nobody used it (`cluster/manager/idle_expiry.py`); taken back where somebody does after all."""


class PartitionEntry(Document, frozen=True, kw_only=True):
    """A partition: who holds it, who leads, under which epoch, and who has everything that was acknowledged."""

    partition: int
    queue_id: int
    queue: str
    ordinal: int
    settings: QueueSettings
    epoch: int
    """Rises by one with every change of the primary; a node that saw a higher one refuses a lower."""
    primary: str | None
    primary_started_ms: int = 0
    """The `started_ms` of the primary when it was given the partition: a node that was gone since leads no more."""
    replicas: list[str]
    """Every node that holds it or is to, the primary among them."""
    joined: dict[str, int] = msgspec.field(default_factory=dict)
    """By node: the version of the entry in which it was added. It tells two memberships of a node apart: between them it dropped
    what it held. A node that is not named here is a replica since the partition was made."""
    in_sync: list[str]
    """Those that have everything acknowledged; only they may lead."""
    in_sync_before: list[str] = msgspec.field(default_factory=list)
    """While the primary does not serve yet: those that were in sync when a primary last did. Nothing was acknowledged since,
    so each of them still has everything that ever was."""
    serving: int = 0
    """The epoch that its primary serves under already; equal to `epoch` once it does. It takes nothing before this is
    stored: a replica that is found empty while this is 0 is new, and later on it has lost its disk."""
    hand_over_to: str | None = None
    """Who is to lead next: the primary takes nothing more, waits until that one has everything, and then writes
    `elections.elected` for it itself."""
    made_ms: int = 0
    """When it was written first, by the clock of whoever was making the queue; 0: that is not known."""
    idle: int = 0
    """The epoch whose primary says that nobody has used it for as long as the queue's idle expiry is."""
    expiry: Expiry = ""
    """`asked`: its primary is to close it, if it is idle still. `closed`: it has; nobody serves it, whoever leads, until
    the queue is deleted or the manager takes this back."""
    numbers_to: int = 0
    """No primary up to epoch `numbers_epoch` gave out this sequence number or a higher one (`sequence_numbers.py`)."""
    numbers_epoch: int = 0
    lossless: int = 0
    """An epoch whose primary told of nothing before every replica in sync had it."""
    dense: list[tuple[int, int, int]] = msgspec.field(default_factory=list)
    """Epochs whose numbers went on where their log ended, while a replica may not have heard of them: (epoch, index of the
    first record behind the epoch that served before it, its first number)."""
    unclean: int = 0
    """The newest epoch that began with an operator's word."""
    deleted: bool = False
    """Whether its queue is deleted (`cluster/layout/deletion.py`): no client is served from it any more. It keeps its primary and its
    replicas until what is on its way to other queues has arrived there."""
    abandoned: bool = False
    """Whether it is deleted because its queue is missing (`cluster/manager/retirement.py`). Its primary takes that back if it ever took a
    message."""
    kept: bool = False
    """Whether its primary has taken that back: its queue was made, whatever became of the queue's entry."""
    leaving: list[str] = msgspec.field(default_factory=list)
    """Nodes that are to drop what they hold of it; each takes itself off this list when it has."""
    former: list[str] = msgspec.field(default_factory=list)
    """Nodes that an operator removed before they had dropped what they hold of it. One that comes back all the same has to drop that
    before it may hold the partition again: `dense` does not tell any more which epochs it never heard of."""
    settings_version: int = 0
    """The version of the queue's entry that `settings` was last brought up to, by who changed the queue or by the manager; who
    knows an older one leaves the settings alone. 0: the queue was not changed since it was made, as far as that is known."""
    reason: str = ""
    """Why it is so, in one sentence, for people."""

    @property
    def retired(self) -> bool:
        """Whether it is given up: the entry goes when nobody holds anything of it any more."""
        return not self.replicas


class DrainEntry(Document, frozen=True, kw_only=True):
    """An operator's word that a node is to hold nothing."""

    node: str
    remove: bool = False
    """It will not come back: once it is gone nobody waits for it, and this entry goes when nothing names it."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """How far a replica's log goes, on its disk."""

    epoch: int
    """The epoch of the partition's entry when this was said; in another one it says nothing."""
    log_epoch: int
    """The epoch that wrote the last record."""
    last: int
    """The index of the last record."""
    fit: bool = True
    """False: what it has is damaged or missing, it must not lead."""


class PositionsEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What a node says of its replicas of partitions that nobody leads (`positions.asked_of`); under its lease."""

    node: str
    started_ms: int
    positions: dict[int, Position]


class UncleanEntry(Document, frozen=True, kw_only=True):
    """An operator's word that a replica which is not in sync may lead after this epoch, whatever is lost by that."""

    partition: int
    epoch: int


class IdsEntry(Document, frozen=True, kw_only=True):
    """How far ids of queues and partitions are given out."""

    next: int
    """Nobody was given this id, or a higher one."""


class CapacityEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What the data pipeline has worked out about a queue (`penstock pipeline run capacity --metadata URL`)."""

    queue: str
    measured_ms: int
    messages: int
    bytes: int
    messages_per_hour: float
    """Growth over the last day; negative: it shrinks. 0 where it is not known: earlier versions read no null here."""
    bytes_per_hour: float
    limit: str
    """What is reached first: max-messages, max-bytes, retention or disk; empty: nothing."""
    fill: float
    """How much of that is used, from 0 to 1."""
    full_at_ms: int | None
    """When 80 % of it are used, if it goes on so; None: never, or not known."""
    partitions: int
    recommended_partitions: int
    growth_known: bool = True
    """False: the queue is not followed, so nobody knows how it grows."""


def node_key(node: str) -> str:
    """Where a node says that it lives."""
    return NODES + node


def queue_key(name: str) -> str:
    """Where a queue is described."""
    return QUEUES + name


def partition_key(partition: int) -> str:
    """Where a partition is described; ids sort as text."""
    return f"{PARTITIONS}{partition:020d}"


def first_partition(queue_id: int) -> int:
    """The id of a queue's first partition: a queue takes its own id and those of its partitions in one piece."""
    return queue_id + 1


def drain_key(node: str) -> str:
    """Where an operator says that a node is to be emptied."""
    return DRAINS + node


def positions_key(node: str) -> str:
    """Where a node says how long the logs are that nobody leads."""
    return POSITIONS + node


def unclean_key(partition: int) -> str:
    """Where an operator allows an unclean election."""
    return f"{UNCLEAN}{partition:020d}"


def capacity_key(queue: str) -> str:
    """Where the data pipeline says how a queue grows and fills."""
    return CAPACITY + queue


LayoutEntry = (
    NodeEntry
    | QueueEntry
    | PartitionEntry
    | DrainEntry
    | PositionsEntry
    | UncleanEntry
    | IdsEntry
    | CapacityEntry
)

_encoder = msgspec.json.Encoder()


def encode(entry: LayoutEntry) -> bytes:
    """The bytes to store."""
    return _encoder.encode(entry)


decode_node = msgspec.json.Decoder(NodeEntry).decode
decode_queue = DocumentReader[QueueEntry](QueueEntry).decode
decode_named_queue = msgspec.json.Decoder(NamedQueue).decode
"""For a reader that only asks which queue has a name: it reads entries of later versions too."""
decode_partition = DocumentReader[PartitionEntry](PartitionEntry).decode
decode_drain = DocumentReader[DrainEntry](DrainEntry).decode
decode_positions = msgspec.json.Decoder(PositionsEntry).decode
decode_unclean = DocumentReader[UncleanEntry](UncleanEntry).decode
decode_ids = DocumentReader[IdsEntry](IdsEntry).decode
decode_capacity = msgspec.json.Decoder(CapacityEntry).decode

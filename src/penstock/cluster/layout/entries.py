"""The entries of the metadata store about nodes, queues and partitions: the layout of a cluster.

All processes read them, few write them. A node writes that it is alive, a front end creates and changes queues, a primary
writes that it serves and which replicas are in sync, the manager assigns partitions to nodes. Every write is on condition
that the entry is still the one that was read, so two writers never undo each other's changes. Entries with several writers
are `Document`s: a field of a newer version survives a change by an older one. In entries that only their owner writes,
readers drop unknown fields.
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
    """A living node: the entry exists as long as the node's lease."""

    node: str
    zone: str = ""
    native: str
    """HOST:PORT for front ends and clients."""
    peers: str
    """HOST:PORT for other nodes."""
    reader: str = ""
    """HOST:PORT where readers with a ticket read logs; empty: nowhere."""
    started_ms: int
    """The beginning of the node's present life. It changes after a restart, and after the lease was lost and created again
    (`lives.new_life_ms`).
    """
    load: float = 0.0
    """How busy it is, from 0 to 1; for placement."""
    leaving: bool = False
    """Whether it is about to stop: it hands over what it leads, and is given nothing more."""
    records: int = 0
    """Which kinds of records it reads (`records.KINDS`)."""


class NamedQueue(msgspec.Struct, frozen=True):
    """The part of a queue's entry that says which queue it is, and whether clients may use it."""

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
    """While it is being deleted: no client deleted it. Its entry was missing, and its creator seemed to have died."""
    expiring: bool = False
    """Whether it is to be deleted because it is unused (`cluster/manager/idle_expiry.py`); withdrawn if a client uses it
    after all.
    """


class PartitionEntry(Document, frozen=True, kw_only=True):
    """A partition: its replicas, its primary, its epoch, and the replicas that have everything that was acknowledged."""

    partition: int
    queue_id: int
    queue: str
    ordinal: int
    settings: QueueSettings
    epoch: int
    """Rises by one with every change of the primary; a node that saw a higher one refuses a lower."""
    primary: str | None
    primary_started_ms: int = 0
    """The `started_ms` of the primary when it got the partition: a node with another one no longer leads."""
    replicas: list[str]
    """Every node that holds it or is to, the primary among them."""
    joined: dict[str, int] = msgspec.field(default_factory=dict)
    """By node: the version of the entry in which it was added. It distinguishes two memberships of a node, because the node
    dropped its data between them. A node that is missing here has been a replica since the partition was created.
    """
    in_sync: list[str]
    """Those that have everything acknowledged; only they may lead."""
    in_sync_before: list[str] = msgspec.field(default_factory=list)
    """While the primary does not serve yet: those that were in sync when a primary last did. Nothing was acknowledged since,
    so each of them still has everything that ever was."""
    serving: int = 0
    """The epoch that its primary serves under already; equal to `epoch` once it does. It takes nothing before this is
    stored: a replica that is found empty while this is 0 is new, and later on it has lost its disk."""
    hand_over_to: str | None = None
    """The next primary: the present one accepts no more requests, waits until that node has everything, and then writes
    `elections.elected` for it.
    """
    made_ms: int = 0
    """When it was first written, by the clock of the queue's creator; 0: unknown."""
    idle: int = 0
    """The epoch whose primary reports that the partition has been unused for the queue's idle expiry."""
    expiry: Expiry = ""
    """`asked`: its primary is to close it, if it is still idle. `closed`: it has, and no primary serves it until the queue is
    deleted or the manager withdraws this.
    """
    numbers_to: int = 0
    """No primary up to epoch `numbers_epoch` gave out this sequence number or a higher one (`sequence_numbers.py`)."""
    numbers_epoch: int = 0
    lossless: int = 0
    """An epoch whose primary acknowledged nothing before every replica in sync had it."""
    dense: list[tuple[int, int, int]] = msgspec.field(default_factory=list)
    """Epochs whose numbers continued where their log ended, while a replica may not know of them: (epoch, index of the first
    record after the epoch that served before it, its first number).
    """
    unclean: int = 0
    """The newest epoch that began with an operator's word."""
    deleted: bool = False
    """Whether its queue is deleted (`cluster/layout/deletion.py`): no client is served from it any more. It keeps its primary and its
    replicas until what is on its way to other queues has arrived there."""
    abandoned: bool = False
    """Whether it is deleted because its queue is missing (`cluster/manager/retirement.py`). Its primary takes that back if it ever took a
    message."""
    kept: bool = False
    """Whether its primary has withdrawn `abandoned`: its queue was completed, although the queue's entry is missing."""
    leaving: list[str] = msgspec.field(default_factory=list)
    """Nodes that are to drop what they hold of it; each takes itself off this list when it has."""
    former: list[str] = msgspec.field(default_factory=list)
    """Nodes that an operator removed before they had dropped their data of it. If one comes back, it must drop that data
    before it may hold the partition again, because `dense` no longer contains the epochs that it missed.
    """
    settings_version: int = 0
    """The version of the queue's entry that `settings` was last brought up to, by who changed the queue or by the manager; who
    knows an older one leaves the settings alone. 0: the queue was not changed since it was made, as far as that is known."""
    reason: str = ""
    """Why it is so, in one sentence, for people."""

    @property
    def retired(self) -> bool:
        """Whether it is given up: the entry is removed when no node holds anything of it."""
        return not self.replicas


class DrainEntry(Document, frozen=True, kw_only=True):
    """An operator's order that a node is to hold nothing."""

    node: str
    remove: bool = False
    """The node will not come back: the cluster does not wait for it, and this entry is removed when no other entry names the
    node.
    """


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The length of a replica's log on its disk."""

    epoch: int
    """The epoch of the partition's entry when this was reported; it is ignored in other epochs."""
    log_epoch: int
    """The epoch that wrote the last record."""
    last: int
    """The index of the last record."""
    fit: bool = True
    """False: the replica's data is damaged or missing, so it must not lead."""


class PositionsEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A node's report about its replicas of partitions without a primary (`positions.asked_of`); exists as long as its lease."""

    node: str
    started_ms: int
    positions: dict[int, Position]


class UncleanEntry(Document, frozen=True, kw_only=True):
    """An operator's permission for a replica outside the in-sync set to lead after this epoch, with any loss."""

    partition: int
    epoch: int


class IdsEntry(Document, frozen=True, kw_only=True):
    """The counter for ids of queues and partitions."""

    next: int
    """This id and all higher ones are unused."""


class CapacityEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The data pipeline's forecast for a queue (`penstock pipeline run capacity --metadata URL`)."""

    queue: str
    measured_ms: int
    messages: int
    bytes: int
    messages_per_hour: float
    """Growth over the last day; negative: it shrinks. 0 where it is not known: earlier versions read no null here."""
    bytes_per_hour: float
    limit: str
    """The limit that is reached first: max-messages, max-bytes, retention or disk; empty: none."""
    fill: float
    """How much of that is used, from 0 to 1."""
    full_at_ms: int | None
    """When 80 % of it will be used at the present rate; None: never, or unknown."""
    partitions: int
    recommended_partitions: int
    growth_known: bool = True
    """False: the queue has no lifecycle log, so its growth is unknown."""


def node_key(node: str) -> str:
    """The key of a node's registration."""
    return NODES + node


def queue_key(name: str) -> str:
    """The key of a queue."""
    return QUEUES + name


def partition_key(partition: int) -> str:
    """The key of a partition; ids sort as text."""
    return f"{PARTITIONS}{partition:020d}"


def first_partition(queue_id: int) -> int:
    """The id of a queue's first partition: a queue takes its own id and those of its partitions in one piece."""
    return queue_id + 1


def drain_key(node: str) -> str:
    """The key of an operator's order to drain a node."""
    return DRAINS + node


def positions_key(node: str) -> str:
    """The key of a node's report about logs without a primary."""
    return POSITIONS + node


def unclean_key(partition: int) -> str:
    """The key of an operator's permission for an unclean election."""
    return f"{UNCLEAN}{partition:020d}"


def capacity_key(queue: str) -> str:
    """The key of the data pipeline's forecast for a queue."""
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

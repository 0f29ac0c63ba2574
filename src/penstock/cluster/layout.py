"""The layout of a cluster: what stands in the metadata store about nodes, queues and their partitions.

Everybody reads it, few write it: a node writes that it lives, a front end makes and changes queues, a primary says
that it serves and who is in sync with it, the manager gives partitions to nodes. Every write is on condition that the
entry is still the one that was read, so two writers never undo each other.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from penstock.model.settings import QueueSettings

NODES = "cluster/nodes/"
QUEUES = "cluster/queues/"
PARTITIONS = "cluster/partitions/"
DRAINS = "cluster/drains/"
NEXT_ID = "cluster/next-id"
"""Ids of queues and partitions are one rising count, never used again."""

ORDINAL_SHIFT = 48
"""A sequence number as clients see it has the partition's ordinal above this bit; the first partition's is 0."""

QueueState = Literal["ready", "deleting"]


class NodeEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A node that lives: the entry stands under its lease and goes with it."""

    node: str
    zone: str = ""
    native: str
    """HOST:PORT for front ends and clients."""
    peers: str
    """HOST:PORT for other nodes."""
    started_ms: int
    load: float = 0.0
    """How busy it is, from 0 to 1; for placement."""


class QueueEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: its incarnation, its settings, and its partitions in the order of their ordinals."""

    name: str
    queue_id: int
    settings: QueueSettings
    created_ms: int
    partitions: list[int]
    state: QueueState = "ready"


class PartitionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A partition: who holds it, who leads, under which epoch, and who has everything that was acknowledged."""

    partition: int
    queue_id: int
    queue: str
    ordinal: int
    settings: QueueSettings
    epoch: int
    """Rises by one with every change of the primary; a node that saw a higher one refuses a lower."""
    primary: str | None
    replicas: list[str]
    """Every node that holds it or is to, the primary among them."""
    in_sync: list[str]
    """Those that have everything acknowledged; only they may lead."""
    serving: int = 0
    """The epoch that its primary serves under already; equal to `epoch` once it does."""
    reason: str = ""
    """Why it is so, in one sentence, for people."""


def node_key(node: str) -> str:
    """Where a node says that it lives."""
    return NODES + node


def queue_key(name: str) -> str:
    """Where a queue is described."""
    return QUEUES + name


def partition_key(partition: int) -> str:
    """Where a partition is described; ids sort as text."""
    return f"{PARTITIONS}{partition:020d}"


_encoder = msgspec.json.Encoder()


def encode(entry: NodeEntry | QueueEntry | PartitionEntry) -> bytes:
    """The bytes to store."""
    return _encoder.encode(entry)


decode_node = msgspec.json.Decoder(NodeEntry).decode
decode_queue = msgspec.json.Decoder(QueueEntry).decode
decode_partition = msgspec.json.Decoder(PartitionEntry).decode

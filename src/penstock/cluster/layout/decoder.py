"""The only decoder of the layout: the meaning of a key in the metadata store and of the value under it.

`ClusterView` (the manager), `ClusterMap` (front ends), `NodeLayout` (nodes) and the shutdown of a node are indexes of its
results. An entry that this version cannot read is a `Trouble`; each index decides what that means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from penstock.cluster.layout.entries import (
    CAPACITY,
    DRAINS,
    NODES,
    PARTITIONS,
    POSITIONS,
    QUEUES,
    UNCLEAN,
    CapacityEntry,
    DrainEntry,
    NamedQueue,
    NodeEntry,
    PartitionEntry,
    PositionsEntry,
    QueueEntry,
    UncleanEntry,
    decode_capacity,
    decode_drain,
    decode_named_queue,
    decode_node,
    decode_partition,
    decode_positions,
    decode_queue,
    decode_unclean,
)
from penstock.model.document import TooOldError

EVERYTHING = (NODES, QUEUES, PARTITIONS, DRAINS, POSITIONS, UNCLEAN, CAPACITY)
"""The keys of all kinds of entries."""

Entry = TypeVar("Entry")


class ReadFailure(NamedTuple):
    """Why this version cannot read an entry."""

    why: str
    is_too_new: bool = False
    """Whether the reason is that a newer version wrote it, or that its seal is missing."""


# Each of these is the current content of a key. No entry and no trouble: the entry is gone.


class NodeNews(NamedTuple):
    """A change of a node."""

    node: str
    entry: NodeEntry | None
    failure: ReadFailure | None


class QueueNews(NamedTuple):
    """A change of the queue with a name."""

    queue: str
    entry: QueueEntry | None
    failure: ReadFailure | None


class NameNews(NamedTuple):
    """A change of the queue with a name, for readers that only need its identity: entries of later versions can be read too."""

    queue: str
    entry: NamedQueue | None
    failure: ReadFailure | None


class PartitionNews(NamedTuple):
    """A change of a partition."""

    partition_id: int
    entry: PartitionEntry | None
    failure: ReadFailure | None


class DrainNews(NamedTuple):
    """A change of an operator's order to drain a node. The key says enough, so there is never trouble."""

    node: str
    entry: DrainEntry | None
    failure: None = None


class PositionsNews(NamedTuple):
    """A change of the log positions that a node reports."""

    node: str
    entry: PositionsEntry | None
    failure: ReadFailure | None


class UncleanNews(NamedTuple):
    """A change of an operator's permission for an unclean election."""

    partition_id: int
    entry: UncleanEntry | None
    failure: ReadFailure | None


class CapacityNews(NamedTuple):
    """A change of the data pipeline's forecast for a queue."""

    queue: str
    entry: CapacityEntry | None
    failure: ReadFailure | None


News = NodeNews | QueueNews | PartitionNews | DrainNews | PositionsNews | UncleanNews | CapacityNews


def decode(key: str, value: bytes | None, kinds: tuple[str, ...] = EVERYTHING) -> News | None:
    """The content of a key; None: the key is of none of these kinds. No value: the entry is gone."""
    if not key.startswith(kinds):
        return None
    if (partition_id := partition_of_key(key)) is not None:
        return PartitionNews(partition_id, *_read(decode_partition, value))
    if (queue := queue_of_key(key)) is not None:
        return QueueNews(queue, *_read(decode_queue, value))
    if (node := node_of_key(key)) is not None:
        return NodeNews(node, *_read(decode_node, value))
    if (queue := capacity_of_key(key)) is not None:
        return CapacityNews(queue, *_read(decode_capacity, value))
    if key.startswith(POSITIONS):
        return PositionsNews(key.removeprefix(POSITIONS), *_read(decode_positions, value))
    if key.startswith(DRAINS):
        return DrainNews(key.removeprefix(DRAINS), _drain(key.removeprefix(DRAINS), value))
    if (partition_id := _number(key, UNCLEAN)) is not None:
        return UncleanNews(partition_id, *_read(decode_unclean, value))
    return None


def decode_name(key: str, value: bytes | None) -> NameNews | None:
    """The same, of a queue's entry only which queue it is."""
    queue = queue_of_key(key)
    return NameNews(queue, *_read(decode_named_queue, value)) if queue is not None else None


def _read(
    read: Callable[[bytes], Entry], value: bytes | None
) -> tuple[Entry, None] | tuple[None, ReadFailure | None]:
    if value is None:
        return None, None
    try:
        return read(value), None
    except TooOldError as error:
        return None, ReadFailure(error.message, is_too_new=True)
    except (msgspec.MsgspecError, ValueError) as error:
        return None, ReadFailure(str(error))


def _drain(node: str, value: bytes | None) -> DrainEntry | None:
    """Whatever stands under the key, the node is to be emptied."""
    entry, failure = _read(decode_drain, value)
    if entry is None:
        return DrainEntry(node=node) if failure is not None else None
    return msgspec.structs.replace(entry, node=node)


# -- keys ----------------------------------------------------------------------------------------------------


def node_of_key(key: str) -> str | None:
    """The node that an entry is about; None: it is about something else."""
    return key.removeprefix(NODES) if key.startswith(NODES) else None


def queue_of_key(key: str) -> str | None:
    """The queue that an entry describes."""
    return key.removeprefix(QUEUES) if key.startswith(QUEUES) else None


def capacity_of_key(key: str) -> str | None:
    """The queue of which an entry says how it grows and fills."""
    return key.removeprefix(CAPACITY) if key.startswith(CAPACITY) else None


def partition_of_key(key: str) -> int | None:
    """The partition that an entry describes."""
    return _number(key, PARTITIONS)


def _number(key: str, prefix: str) -> int | None:
    number = key.removeprefix(prefix)
    return int(number) if key.startswith(prefix) and number.isdecimal() else None


# -- many entries at once ------------------------------------------------------------------------------------

StoredEntry = tuple[str, bytes, int]
"""Key, value and version, as a store lists them."""


def nodes_in(stored: Iterable[StoredEntry]) -> Iterator[NodeEntry]:
    """The nodes among entries. What this version cannot read is left out: whoever follows the layout says which those are."""
    for key, value, _ in stored:
        news = decode(key, value, (NODES,))
        if isinstance(news, NodeNews) and news.entry is not None:
            yield news.entry


def partitions_in(stored: Iterable[StoredEntry]) -> Iterator[tuple[PartitionEntry, int]]:
    """The partitions among entries, each with the version of its entry. The same is left out."""
    for key, value, version in stored:
        news = decode(key, value, (PARTITIONS,))
        if isinstance(news, PartitionNews) and news.entry is not None:
            yield news.entry, version


def drained_in(stored: Iterable[StoredEntry]) -> list[str]:
    """The nodes among entries that operators want to be emptied."""
    return [key.removeprefix(DRAINS) for key, _, _ in stored if key.startswith(DRAINS)]

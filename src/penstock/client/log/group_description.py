"""A consumer group for operators: its place in each partition, and the totals for the whole log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.wire.log_messages import GroupDescription as PartitionDescription


class GroupPlace(NamedTuple):
    """A group's place in one partition."""

    partition: int
    offset: int
    """The next message to read."""
    committed_ms: int
    lag_messages: int
    lag_ms: int
    """How long ago the next message was sent; 0 where none waits."""
    reader: str
    """The member that reads the partition; empty if there is none."""


class GroupDescription(NamedTuple):
    """A group: sums and extremes over the partitions in which it has begun."""

    name: str
    offset: int
    """The next message to read, of the first partition."""
    committed_ms: int
    """When an offset was last committed."""
    lag_messages: int
    """How many messages it has not read."""
    lag_ms: int
    """How long the longest-waiting of them has been waiting; 0 where none waits."""
    generation: int
    """The newest, of all partitions."""
    members: list[str]
    partitions: list[GroupPlace]


def together(parts: Sequence[tuple[int, PartitionDescription]]) -> GroupDescription:
    """Combines the partitions' descriptions of one group; there is at least one, and they are in order."""
    members = dict.fromkeys(member for _, one in parts for member in one.members)
    return GroupDescription(
        parts[0][1].name,
        parts[0][1].offset,
        max(one.committed_ms for _, one in parts),
        sum(one.lag_messages for _, one in parts),
        max(one.lag_ms for _, one in parts),
        max(one.generation for _, one in parts),
        list(members),
        [
            GroupPlace(partition, one.offset, one.committed_ms, one.lag_messages, one.lag_ms, one.reader)
            for partition, one in parts
        ],
    )

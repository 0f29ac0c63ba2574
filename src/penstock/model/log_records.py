"""Records of a queue's retained log and of the groups that read it; part of the catalogue in `records`."""

from __future__ import annotations

from typing import Literal

import msgspec


class LogCut(msgspec.Struct, frozen=True, array_like=True, tag=17):
    """The retained log begins at `end` now."""

    end: int
    reason: Literal["age", "bytes"]
    at_ms: int


class OffsetCommitted(msgspec.Struct, frozen=True, array_like=True, tag=18):
    """A group of readers goes on at `offset`: it is done with everything before."""

    group: str
    offset: int
    at_ms: int


class GroupChanged(msgspec.Struct, frozen=True, array_like=True, tag=19):
    """A group of readers has these members, in the order in which they joined; shares follow from that."""

    group: str
    generation: int
    members: list[str]
    at_ms: int
    leases_ms: list[int] = []
    """The duration of each member's lease, for when it must begin again."""
    ordinal: int = 0
    """Which partition of its queue this is,"""
    partitions: int = 1
    """of how many: the shares of all of them follow from the members in the same way."""


class GroupRemoved(msgspec.Struct, frozen=True, array_like=True, tag=23):
    """Nothing of the group is remembered."""

    group: str
    at_ms: int

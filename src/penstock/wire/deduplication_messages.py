"""Deduplication over the partitions of a queue: requests of front ends to partitions before they send; clients never use
them.

Every id has a home, the partition that its hash names, which stores the partition of the message with that id. See ADR 20.
"""

from __future__ import annotations

import msgspec


class ClaimIds(msgspec.Struct, frozen=True, array_like=True, tag=31):
    """To the home of these ids: may the messages go to these partitions? Answered with `ClaimedIds`.

    An unclaimed id is claimed by this. An id with another claim is claimed again if `instead_of` is the version of that
    claim, which the front end has found to be unused.
    """

    queue_id: int
    ids: list[bytes]
    owners: list[int]
    """The ordinal of the partition that each message would go to."""
    instead_of: list[int]
    """By id; 0: only if it is free."""


class ClaimedIds(msgspec.Struct, frozen=True, array_like=True, tag=120):
    """The owner of each id now, by ordinal, and the version of each claim."""

    owners: list[int]
    versions: list[int]


class FindIds(msgspec.Struct, frozen=True, array_like=True, tag=32):
    """To a partition that has claims on these ids: were they stored? Answered with `FoundIds`.

    Ids that were not stored are barred from it: a delayed send is refused when it arrives. With `lift` it is the opposite:
    the partition has a claim of this version, so bars of lower versions are removed.
    """

    queue_id: int
    ids: list[bytes]
    versions: list[int]
    lift: bool = False


class FoundIds(msgspec.Struct, frozen=True, array_like=True, tag=121):
    """The sequence number of the message with each id; 0: there is none."""

    sequences: list[int]

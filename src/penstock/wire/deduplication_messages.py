"""Deduplication over the partitions of a queue: what front ends ask partitions before they send; clients never do.

Every id has a home, the partition that its hash names, where it stands which partition the message with that id belongs
to. See ADR 20.
"""

from __future__ import annotations

import msgspec


class ClaimIds(msgspec.Struct, frozen=True, array_like=True, tag=31):
    """Asked of the home of these ids: may the messages go to these partitions? Answered with `ClaimedIds`.

    An id that nobody has claimed is claimed by this. One that another has is claimed anew if `instead_of` is the version of
    that claim, which then was found to have come to nothing.
    """

    queue_id: int
    ids: list[bytes]
    owners: list[int]
    """The ordinal of the partition that each message would go to."""
    instead_of: list[int]
    """By id; 0: only if it is free."""


class ClaimedIds(msgspec.Struct, frozen=True, array_like=True, tag=120):
    """Whose each id is now, by ordinal, and the version of each claim."""

    owners: list[int]
    versions: list[int]


class FindIds(msgspec.Struct, frozen=True, array_like=True, tag=32):
    """Asked of a partition that has claims on these ids: were they stored? Answered with `FoundIds`.

    Those that were not are barred from it: a send that was held up on its way is refused when it arrives. With `lift` it is
    the other way round: a claim of this version is the partition's, so bars of lower versions are lifted.
    """

    queue_id: int
    ids: list[bytes]
    versions: list[int]
    lift: bool = False


class FoundIds(msgspec.Struct, frozen=True, array_like=True, tag=121):
    """The sequence number of the message with each id; 0: there is none."""

    sequences: list[int]

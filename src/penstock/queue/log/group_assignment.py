"""Assigns the partitions of a log to group members: a pure function of the members, the same at every partition.

There is no coordinator. Members join the group at each partition of a queue, and each partition chooses its own reader
among them. If all partitions have the same members, in any order of joining, the assignment is balanced: no member has two
partitions more than another. Otherwise, for example while a member joins, each partition still has exactly one reader.
When a member joins or leaves, few partitions change their reader.

The member that joined first reads a queue with one partition; the others stand by.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

PAIRS_AT_MOST = 16_384
"""Partitions times members that are weighed against each other; more are shared out in blocks."""
_MASK = (1 << 64) - 1


def reader_of(members: Sequence[str], ordinal: int, partitions: int) -> str:
    """The member that reads this partition; empty if there are no members. The members are in the order of joining."""
    if not members:
        return ""
    if partitions == 1:
        return members[0]
    return assign(partitions, members)[ordinal]


def assign(partitions: int, members: Sequence[str]) -> list[str]:
    """The reader of each partition; there is a member at least."""
    by_hash = sorted((_hash(member), member) for member in members)
    if partitions * len(members) > PAIRS_AT_MOST:
        return [by_hash[ordinal * len(by_hash) // partitions][1] for ordinal in range(partitions)]
    fewest, larger_shares = divmod(partitions, len(members))
    held = dict.fromkeys((member for _, member in by_hash), 0)
    readers: list[str] = []
    for ordinal in range(partitions):
        # Each partition ranks the members in its own order, so a new or lost member changes few assignments.
        _, reader = max(
            (_weight(hashed, ordinal), member)
            for hashed, member in by_hash
            if held[member] < fewest or (held[member] == fewest and larger_shares)
        )
        if held[reader] == fewest:
            larger_shares -= 1
        held[reader] += 1
        readers.append(reader)
    return readers


def _hash(member: str) -> int:
    return int.from_bytes(blake2b(member.encode(), digest_size=8).digest(), "little")


def _weight(hashed: int, ordinal: int) -> int:
    """Stirs a member's hash and a partition's ordinal together (the finish of splitmix64)."""
    stirred = (hashed + (ordinal + 1) * 0x9E3779B97F4A7C15) & _MASK
    stirred = ((stirred ^ (stirred >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    stirred = ((stirred ^ (stirred >> 27)) * 0x94D049BB133111EB) & _MASK
    return stirred ^ (stirred >> 31)

"""Sequence numbers for clients: the ordinal of the partition is above bit 48, its own number below.

The numbers of partition 0 look as they do on a single node.
"""

from __future__ import annotations

ORDINAL_SHIFT = 48
ORDINAL_MARK = "~"
"""Separates the name of a queue from the ordinal in a node's name of a partition; no user's queue name contains it."""
LARGEST_NUMBER = (1 << ORDINAL_SHIFT) - 1
"""Of one partition."""
ELSEWHERE = 1 << 63
"""Set in what a partition remembers of a message of a batch that another partition has: the rest is its number as clients see it."""


def number_of(partition: int, number: int) -> int:
    """The number as clients see it."""
    return partition << ORDINAL_SHIFT | number


def partition_of(number: int) -> int:
    """The ordinal of the partition that a client's number is of."""
    return number >> ORDINAL_SHIFT


def number_in_partition(number: int) -> int:
    """A client's number without the ordinal: messages of one partition count from 1."""
    return number & LARGEST_NUMBER


def going_on(number: int | None, end: int, partitions: int) -> int | None:
    """Where a walk through a queue continues that excludes messages that came after its beginning; None: it is over.

    `number` is where it would continue otherwise. `end` is beyond the last number that any partition had when it began.
    Messages that return meanwhile get higher numbers: without an end in every partition the walk might never finish.
    """
    if number is None or number_in_partition(number) < end:
        return number
    following = partition_of(number) + 1
    return number_of(following, 0) if following < partitions else None

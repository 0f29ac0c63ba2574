"""Numbers that are never used twice, because they contain the epoch in which they were made.

In a cluster a failover may lose the newest records of a log: with `async`, and with an unclean election. A number that
counts records then begins again at the end of the surviving log, and has two meanings. An epoch has one primary and one
log, so a number with the epoch above bit 40 is used once. In 63 bits there is room for 2^23 epochs with 2^40 numbers each.

Lease numbers, generations of consumer groups and versions of claims are such numbers. Sequence numbers have 48 bits, too
few for an epoch: see `cluster/layout/sequence_numbers.py`. Outside a cluster there is no epoch, and numbers begin at 1.
"""

from __future__ import annotations

EPOCH_SHIFT = 40


def first_of_epoch(epoch: int) -> int:
    """The first number of an epoch; everything that an earlier one gave out is below it."""
    return epoch << EPOCH_SHIFT


def of_record(epoch: int, index: int) -> int:
    """The number of what a record makes: no other record of the partition, in whichever log, has it."""
    return epoch << EPOCH_SHIFT | index

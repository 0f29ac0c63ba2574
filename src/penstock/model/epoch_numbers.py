"""Numbers that never come back, because the epoch that gave them out stands in them.

In a cluster a failover may lose the newest records of a log: with `async`, and with an unclean election. Whatever is counted by
records then begins again where the log that won ends, and the same number means something else. An epoch has one primary and one
log, so a number with the epoch above bit 40 is given out once. There is room for 2^23 epochs with 2^40 numbers each in 63 bits.

Lease numbers, generations of groups of readers and versions of claims are made so. Sequence numbers have 48 bits, too few for an
epoch: see `cluster/layout/sequence_numbers.py`. Outside of a cluster there is no epoch, and numbers begin at 1.
"""

from __future__ import annotations

EPOCH_SHIFT = 40


def first_of_epoch(epoch: int) -> int:
    """The first number of an epoch; everything that an earlier one gave out is below it."""
    return epoch << EPOCH_SHIFT


def of_record(epoch: int, index: int) -> int:
    """The number of what a record makes: no other record of the partition, in whichever log, has it."""
    return epoch << EPOCH_SHIFT | index

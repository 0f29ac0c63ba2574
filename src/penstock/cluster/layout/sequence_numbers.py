"""Sequence numbers are never used twice: which numbers a primary may use, and with which number the next one begins.

A number that a client has seen (in an answer to a send, with a delivery, as an offset of a log) must never be given to
another message, although a failover may lose the message that had it. The entry of the partition in the store ensures
this:

    numbers_to      no primary up to epoch `numbers_epoch` used this number or a higher one
    numbers_epoch   the epoch whose primary stored that
    lossless        an epoch whose primary acknowledged nothing before every replica in sync had it (`sync`)
    unclean         an epoch that began with an operator's permission, whichever replica was elected
    dense           epochs that continued where their log ended (case 1 below), with their first record and number

A primary stores `numbers_to` in the write that says that it serves, and raises it when half of its block is used. It
writes no message with a number from `numbers_to` on, as it last read it. It uses no number before it serves.

Proof that no number is used twice. Let a client see number n in epoch e, and let p be the primary of a later epoch that is
about to use its first number. The entry that made p a primary was written after the one by which e served, and after every
one by which e raised its block. p reads it before it begins. There are two cases.

1. The last epoch that served was lossless, and there was no unclean election since. If that epoch was e: p was elected
   from the
   replicas in sync, or from those that were in sync while e served. So it has everything that e acknowledged, and continues after it. If it was a
   later epoch: its numbers were above n from the start, by this same argument. It serves only when all replicas in sync have its
   beginning, and p is one of them, so p continues after that.
2. Otherwise p begins with `numbers_to`, unless its log already continues after that. `numbers_to` is above n, because e
   stored it before it used
   n. It is lowered only in one place: a primary that hands over writes the next number that it would use, accepts nothing any more, and is deposed by that
   very write, so this is above n as well.

Case 2 does not depend on which records and epochs the replicas know. So it holds for
- several failovers in a row: primaries that never served left `numbers_to` unchanged; a replica that does not know an
  epoch reads
  what that epoch stored. If a primary skipped and failed before it served, it has used nothing: the next one skips to the same number;
- a replica elected uncleanly, however far behind it is. If it fails before it serves, having cut others by then, `unclean`
  is still
  newer than the last epoch that served, so the next primary skips too;
- a queue that is altered. From `sync` to `async`: the primary acknowledges alone only after it has read that its epoch is
  not
  `lossless` any more, so no replica that is elected by an older entry lacks anything. From `async` to `sync`: the epoch stays what it
  was, and the next failover skips although it need not;
- messages that an unclean election restores. A disconnected primary writes messages that no other replica gets. They are
  never acknowledged, and
  the next primary continues densely and gives their numbers to others. If the first primary is elected uncleanly, it would serve them
  under the same numbers. So it first cuts its log at the beginning of the first dense epoch that it does not know (`never_committed`). It
  loses nothing by that: everything that was acknowledged is in that epoch's log (case 1), which has the same records before. Epochs in between
  that never served count with the dense one: they wrote records, but no messages. If numbers were skipped in between, the dense
  epoch began above everything in the log, and nothing is cut. Dense epochs are forgotten once all replicas are in sync. A removed node is not one
  of them; if it comes back, it drops its data before it holds the partition again (`former`);
- a deposed primary that comes back. Its numbers were below the `numbers_to` that it knew. Its log is cut to what its
  successor
  has, with the numbers that are lost, or it gets a whole state (IMAGE), which contains `NumbersSkipped`. When it leads again it
  reads the entry like every primary;
- old data. A primary of an earlier version stored nothing, which shows: `numbers_epoch` is not the last epoch that served.
  Then a
  `sync` log continues as before. After `async`, or an unclean election, the used numbers are unknown, and numbers continue
  `UNNOTED_SKIP` higher. This assumes that less than that was lost. It happens once in the life of a partition.

While nodes of an earlier version hold replicas nothing is skipped (`records.KINDS`), because they could not follow.
Numbers may then be used twice, as in the earlier version, until all nodes are upgraded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.model.partition_numbers import LARGEST_NUMBER
from penstock.model.settings import Replication

SYNC_BLOCK = 1 << 36
"""Numbers are skipped after an unclean election only, so a block may be large: half of it lasts for hours without a store."""
ASYNC_BLOCK = 1 << 24
"""Each failover skips what is left of a block. `async` is not served without a store anyway."""
UNNOTED_SKIP = 1 << 36
DENSE_REMEMBERED = 64
"""Of a partition that is never all in sync for so many elections, some beginnings are forgotten."""
END_OF_NUMBERS = LARGEST_NUMBER
"""No message gets this number, because the end of a log must be a number of its partition as well."""
ALIGNMENT = 1 << 12
"""Numbers continue at multiples of this, where an engine's columns begin (`queue/state/chunk.py`), so that no column is
filled up before.
"""
ROW_SHIFT = 36
"""Rows of the table of lifecycles: see `first_row`."""


def first_number(entry: PartitionEntry, following: int, resumed: int, written: Replication) -> int:
    """The first number of the primary of an entry.

    `following` is the next number of its log, `resumed` the number after the last skip, if no message came since;
    `written` is what its log says about replication.
    """
    if not entry.serving:
        return following  # no number was ever given out
    if entry.numbers_epoch == entry.serving:
        if entry.lossless == entry.serving and not lost_by_order(entry):
            return following
        return max(following, entry.numbers_to)
    if entry.settings.replication == written == "sync" and not lost_by_order(entry):
        return following
    return min(max(following, entry.numbers_to, _aligned(resumed + UNNOTED_SKIP)), END_OF_NUMBERS)


def lost_by_order(entry: PartitionEntry) -> bool:
    """Whether an unclean election came after the last acknowledged record: some records may be lost."""
    return entry.unclean > entry.serving > 0


def first_row(entry: PartitionEntry) -> int:
    """The next number of lifecycle rows, if rows that were reported may be lost; 0: it does not change.

    Only rows that every replica in sync has are reported, so only an unclean election can lose any. Above bit 36 is the
    epoch.
    """
    return entry.epoch << ROW_SHIFT if lost_by_order(entry) else 0


def understood(replicas: Iterable[str], nodes: Mapping[str, NodeEntry], kinds: int) -> bool:
    """Whether all replicas that live can read records of these kinds (see `KINDS`)."""
    return all(nodes[name].records >= kinds for name in replicas if name in nodes)


def noted(entry: PartitionEntry, epoch: int, following: int) -> PartitionEntry:
    """The entry as a primary that serves, or is about to, wants it: with numbers to give out, and what losing it would mean."""
    synchronous = entry.settings.replication == "sync"
    block = SYNC_BLOCK if synchronous else ASYNC_BLOCK
    is_new = entry.numbers_epoch != epoch
    numbers_to = entry.numbers_to
    if is_new or numbers_to - following < block // 2:
        numbers_to = min(max(numbers_to, _aligned(following + block)), END_OF_NUMBERS)
    lossless = 0
    if synchronous:
        lossless = epoch if is_new else entry.lossless
    if not is_new and (numbers_to, lossless) == (entry.numbers_to, entry.lossless):
        return entry  # nearly always
    return msgspec.structs.replace(entry, numbers_to=numbers_to, numbers_epoch=epoch, lossless=lossless)


def begun_densely(entry: PartitionEntry, row: tuple[int, int, int] | None) -> PartitionEntry:
    """The entry as a serving primary requests it: with the beginning of its epoch, if that was dense.

    Replicas in sync know the epoch. Once all are in sync, nothing must be remembered.
    """
    dense = entry.dense
    if sorted(entry.in_sync) == sorted(entry.replicas):
        dense = []
    elif row is not None and row not in dense:
        dense = [*dense, row]
        if len(dense) > DENSE_REMEMBERED:
            # A replica that is gone for long needs one of the first, one that fell behind lately one of the last.
            del dense[DENSE_REMEMBERED // 2]
    return entry if dense == entry.dense else msgspec.structs.replace(entry, dense=dense)


def never_committed(entry: PartitionEntry, heard_of: int, following: int) -> int | None:
    """The last record that an uncleanly elected primary keeps: the later ones have numbers that were used again.

    `heard_of`: the newest epoch of its log; `following`: the next number of its log. None: it keeps everything.
    """
    if not lost_by_order(entry):
        return None
    for epoch, index, number in entry.dense:
        if epoch > heard_of:
            return index - 1 if number < following else None
    return None


def acts_synchronously(entry: PartitionEntry, epoch: int) -> bool:
    """Whether the primary of an epoch must wait for all replicas in sync; it must until the store says that it no longer does."""
    return entry.settings.replication == "sync" or entry.lossless == epoch


def may_give_out(entry: PartitionEntry, epoch: int) -> int:
    """Below which number the primary of an epoch may give out any; 0: none yet."""
    return entry.numbers_to if entry.numbers_epoch == epoch else 0


def left_exactly(entry: PartitionEntry, epoch: int, following: int) -> PartitionEntry:
    """The entry by which the primary of an epoch hands over: it has given out everything before `following`, and nothing else."""
    if entry.numbers_epoch != epoch:
        return entry
    return msgspec.structs.replace(entry, numbers_to=following)


def _aligned(number: int) -> int:
    return -(-number // ALIGNMENT) * ALIGNMENT

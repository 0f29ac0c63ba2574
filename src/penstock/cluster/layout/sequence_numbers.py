"""Sequence numbers that never come back: what a primary may give out, and with which number the next one begins.

A number that a client was told (in an answer to a send, with a delivery, as an offset of a log) must never be given to another
message, though a failover may lose the message that had it. The entry of the partition in the store makes sure of that:

    numbers_to      no primary up to epoch `numbers_epoch` gave out this number or a higher one
    numbers_epoch   the epoch whose primary stored that
    lossless        an epoch whose primary told of nothing before every replica in sync had it (`sync`)
    unclean         an epoch that began with an operator's word, whoever was elected for it
    dense           epochs that went on where their log ended (case 1 below), and with which record and number

A primary stores `numbers_to` with the word that it serves, and raises it when half of its block is used up. It writes no message
with a number from `numbers_to` on, as it last heard of it. Before it serves it gives out nothing.

Why no number comes back. Let a client be told number n in epoch e, and let p be the primary of a later epoch that is about to give
out its first number. The entry that made p a primary was written after the one by which e served, and after every one by which e
raised its block; p reads it before it begins. There are two cases.

1. The last epoch that served was lossless, and no unclean election came since. If that was e itself: p was elected from those in
   sync, or from those that were in sync while e served, so it has everything that e told of, and goes on behind it. If it was a later
   one: its numbers were above n from the start, by this same argument. It is served only once all in sync have its beginning, and
   p is one of them, so p goes on behind that.
2. Otherwise p begins with `numbers_to`, unless its log already goes on behind that. `numbers_to` is above n, since e stored so before it told n, and
   it never falls but in one place: who hands over writes what it would give out next, takes nothing in any more, and is deposed by that
   very write, so that is above n as well.

What the replicas had, and which epochs they heard of, is not asked for in case 2. So it holds for
- several failovers in a row: primaries that never served left `numbers_to` as it was; a replica that never heard of an epoch reads
  what that epoch stored. One that skipped and fell before it served has not used up anything: the next one skips to the same number;
- a replica elected uncleanly, however far behind it is. Should it fall before it serves, having cut others by then, `unclean` is
  still newer than what served: whoever comes next skips too;
- a queue that is altered. From `sync` to `async`: the primary acknowledges alone only after it has heard that its epoch is not
  `lossless` any more, so nobody who is elected by an older entry lacks anything. From `async` to `sync`: the epoch stays what it was,
  and the next failover skips once more than it need;
- messages that an unclean election brings back. A primary that is cut off writes messages that nobody else gets; nobody is told of them,
  and the next primary goes on densely and gives their numbers to others. Should the first one be elected uncleanly, it would serve
  them under the same numbers. So it cuts its log first, to where the first dense epoch began that it never heard of
  (`never_committed`). It loses nothing by that: all that was told is in that epoch's log (case 1), which has the same records before.
  Epochs in between that never served count with the dense one: they wrote records too, and no message.
  Where numbers were skipped in between, the dense epoch began above all that the log has, and nothing is cut. Dense epochs are
  forgotten once all replicas are in sync. A node that was removed is none of them; should it come back, it drops what it has before it
  holds the partition again (`former`);
- a deposed primary that comes back. What it gave out lay below the `numbers_to` that it knew. Its log is cut to what its successor
  has, with the numbers that are lost, or it takes a whole state in (IMAGE), where `NumbersSkipped` is part of the state. When it leads
  again it asks the entry like everybody;
- old data. A primary of an earlier version stored nothing, which shows: `numbers_epoch` is not the last epoch that served. Then a
  `sync` log goes on as it did. After `async`, or an unclean election, nobody knows what was given out; numbers go on `UNNOTED_SKIP`
  further. That is an assumption: that what was lost is not as much. It is made once in the life of a partition.

While nodes of an earlier version hold replicas nothing is skipped (`records.KINDS`): they could not follow, and numbers come back as
they did before, until all are upgraded.
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
"""No message gets this one: where a log ends must be a number of its partition as well."""
ALIGNMENT = 1 << 12
"""Numbers go on at multiples of this: where an engine's columns begin (`queue/state/chunk.py`), so that no column is filled up before."""
ROW_SHIFT = 36
"""Rows of the table of lifecycles: see `first_row`."""


def first_number(entry: PartitionEntry, following: int, resumed: int, written: Replication) -> int:
    """With which number the primary of an entry begins.

    `following` is the number that its log goes on with, `resumed` the one it went on with before numbers were last skipped, if no
    message came since; `written` is what its log says about replication.
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
    """Whether an unclean election came after everything that was ever acknowledged: some of that may be lost."""
    return entry.unclean > entry.serving > 0


def first_row(entry: PartitionEntry) -> int:
    """With which number rows of the table of lifecycles go on, where rows that were reported may be lost; 0: where they are.

    Only what every replica in sync has is reported, so it takes an unclean election to lose any. Above bit 36 is the epoch.
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
    """The entry as a primary that serves wants it: with the beginning of its epoch, if that was dense.

    Who is in sync has heard of the epoch. Once all replicas are, nothing need be remembered.
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
    """The last record that a primary keeps that was elected uncleanly: what follows has numbers that were given out again.

    `heard_of`: the newest epoch of its log; `following`: the number that its log goes on with. None: it keeps everything.
    """
    if not lost_by_order(entry):
        return None
    for epoch, index, number in entry.dense:
        if epoch > heard_of:
            return index - 1 if number < following else None
    return None


def acts_synchronously(entry: PartitionEntry, epoch: int) -> bool:
    """Whether the primary of an epoch has to wait for everybody: also until it is stored that it no longer does."""
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

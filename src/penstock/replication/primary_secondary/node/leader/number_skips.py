"""Where the numbers of an epoch begin: behind all that an earlier primary may have given out and this one has not heard of."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.layout.sequence_numbers import first_number, first_row, never_committed, understood
from penstock.model.records import NUMBERS_SKIPPED, NumbersSkipped
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.follower.follower import Follower

log = logging.getLogger("penstock.backend")


def skipped(
    partition: Partition, entry: PartitionEntry, nodes: Mapping[str, NodeEntry], now_ms: int
) -> NumbersSkipped | None:
    """What the primary of the entry's epoch writes first; None: its numbers begin where those before end."""
    following, lifecycle = partition.table.next, partition.lifecycle
    resumed = partition.gaps.last_start(following)
    first = first_number(entry, following, resumed, partition.settings.replication)
    row = first_row(entry) if lifecycle is not None else 0
    if first == following and row <= (lifecycle.next if lifecycle is not None else 0):
        return None
    if not understood(entry.replicas, nodes, NUMBERS_SKIPPED):
        log.warning(
            "partition %(partition)d of %(queue)r may reuse the sequence numbers of lost messages, "
            "because some of its replicas are on nodes of an earlier version: upgrade all nodes",
            {"partition": entry.partition, "queue": entry.queue},
        )
        return None
    return NumbersSkipped(first, now_ms, row)


def gives_back(follower: Follower, entry: PartitionEntry, partition: Partition) -> bool:
    """Whether what was never committed is being cut off, before this node leads: its numbers were given to other messages."""
    last = never_committed(entry, partition.epochs.last, partition.table.next)
    if last is None or last >= partition.index:
        return False
    followed = follower.follow(entry.partition, entry.epoch)
    if followed.is_uncut:
        log.warning(
            "partition %(partition)d of %(queue)r: this node has messages that were never committed and cannot cut them off; "
            "their numbers were given to other messages too",
            {"partition": entry.partition, "queue": entry.queue},
        )
        return False
    follower.cutter.cut(followed, last, to_lead=True)
    return True

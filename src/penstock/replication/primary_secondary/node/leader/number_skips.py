"""The first number of an epoch: after all numbers that an earlier primary may have used and this one does not know."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.layout.sequence_numbers import first_number, first_row, never_committed, understood
from penstock.model.records import NUMBERS_SKIPPED, NumbersSkipped
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.follower.follower import Follower

logger = logging.getLogger("penstock.backend")


class Beginning(NamedTuple):
    """How the primary of an epoch continues."""

    skips: NumbersSkipped | None
    """The records that it writes first."""
    is_dense: bool
    """Whether its numbers continue those of its log because no higher one was ever seen by a client; not if numbers should be
    skipped and a replica of an earlier version could not follow.
    """


def beginning(
    partition: Partition, entry: PartitionEntry, nodes: Mapping[str, NodeEntry], now_ms: int
) -> Beginning:
    """How the primary of the entry's epoch continues."""
    following, lifecycle = partition.table.next, partition.lifecycle
    resumed = partition.gaps.last_start(following)
    first = first_number(entry, following, resumed, partition.settings.replication)
    row = first_row(entry) if lifecycle is not None else 0
    if first == following and row <= (lifecycle.next if lifecycle is not None else 0):
        return Beginning(None, is_dense=True)
    is_dense = first == following
    if not understood(entry.replicas, nodes, NUMBERS_SKIPPED):
        logger.warning(
            "partition %(partition)d of %(queue)r may reuse the sequence numbers of lost messages, "
            "because some of its replicas are on nodes of an earlier version: upgrade all nodes",
            {"partition": entry.partition, "queue": entry.queue},
        )
        return Beginning(None, is_dense)
    return Beginning(NumbersSkipped(first, now_ms, row), is_dense)


def gives_back(follower: Follower, entry: PartitionEntry, partition: Partition) -> bool:
    """Whether what was never committed is being cut off, before this node leads: its numbers were given to other messages."""
    last = never_committed(entry, partition.epochs.last, partition.table.next)
    if last is None or last >= partition.index:
        return False
    follower_state = follower.follow(entry.partition, entry.epoch)
    if follower_state.uncut_epoch == entry.epoch:
        logger.warning(
            "partition %(partition)d of %(queue)r: this node has messages that were never committed and cannot cut them off; "
            "their numbers were given to other messages too",
            {"partition": entry.partition, "queue": entry.queue},
        )
        return False
    follower.cutter.cut(follower_state, last, to_lead=True)
    return True

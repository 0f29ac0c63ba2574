"""Where the numbers of an epoch begin: behind all that an earlier primary may have given out and this one has not heard of."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from penstock.cluster.layout import NodeEntry, PartitionEntry
from penstock.cluster.sequence_numbers import first_number, first_row, understood
from penstock.model.records import NUMBERS_SKIPPED, NumbersSkipped
from penstock.queue.partition import Partition

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
            "partition %d of %r: numbers of messages that were lost may be used again, because some of its replicas are on nodes "
            "of an earlier version",
            *(entry.partition, entry.queue),
        )
        return None
    return NumbersSkipped(first, now_ms, row)

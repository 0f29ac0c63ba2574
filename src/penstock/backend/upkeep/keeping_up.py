"""Applies what time alone changes in the queues of a node, queue by queue."""

from __future__ import annotations

from penstock.backend.node.parts import NodeParts
from penstock.backend.upkeep.upkeep_times import UpkeepTimes
from penstock.model.errors import PenstockError
from penstock.model.records import TIMERS_ENDED
from penstock.queue.decisions import upkeep
from penstock.queue.log import retention as log_retention
from penstock.queue.partition import Partition

_RETRY_MS = 100


def keep_up(parts: NodeParts, times: UpkeepTimes, partition: Partition, now_ms: int) -> None:
    """Does what is due by now; if the journal has no room for it, or too much waits for the disk, later.

    What is due may be millions of messages, of which each turn does a part: the disk has to keep up with that.
    """
    if parts.congested():
        times.ask(partition.partition_id, now_ms + _RETRY_MS)
        return
    parts.timed.add(partition.partition_id)
    if partition.partition_id in parts.catalogue.deleting:
        return
    # Replicas of an earlier version can only end all timers that are due at once.
    in_parts = parts.model.understood(partition.partition_id, TIMERS_ENDED)
    try:
        parts.write(partition, upkeep.expire(partition, now_ms, in_parts=in_parts))
        parts.write(partition, upkeep.retain(partition, now_ms))
        parts.write(partition, upkeep.end_delays(partition, now_ms, in_parts=in_parts))
        parts.write(partition, upkeep.end_leases(partition, now_ms))
        parts.write(partition, log_retention.cut(partition, now_ms))
        parts.write(partition, upkeep.let_out(partition, now_ms, parts.clock))
    except PenstockError:
        parts.timed.discard(partition.partition_id)
        times.ask(partition.partition_id, now_ms + _RETRY_MS)

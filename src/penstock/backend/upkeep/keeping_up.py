"""Applies what time alone changes in the queues of a node, queue by queue."""

from __future__ import annotations

from penstock.backend.node.parts import NodeParts
from penstock.backend.upkeep.upkeep_times import UpkeepTimes
from penstock.model.errors import PenstockError
from penstock.queue.decisions import upkeep
from penstock.queue.log import retention as log_retention
from penstock.queue.partition import Partition

_RETRY_MS = 100
_DECISIONS = (upkeep.expire, upkeep.retain, upkeep.end_delays, upkeep.end_leases, log_retention.cut)


def keep_up(parts: NodeParts, times: UpkeepTimes, partition: Partition, now_ms: int) -> None:
    """Does what is due by now; if the journal has no room for it, later."""
    parts.timed.add(partition.partition_id)
    if partition.partition_id in parts.catalogue.deleting:
        return
    try:
        for decide in _DECISIONS:
            parts.write(partition, decide(partition, now_ms))
        parts.write(partition, upkeep.let_out(partition, now_ms, parts.clock))
    except PenstockError:
        parts.timed.discard(partition.partition_id)
        times.ask(partition.partition_id, now_ms + _RETRY_MS)

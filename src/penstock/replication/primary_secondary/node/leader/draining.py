"""Partitions of deleted queues that this node leads: when each is given up, and the explanation for operators until then.

Records say which messages must leave: moving messages, delayed messages with a dead-letter queue, late messages.
`cluster_moves` moves them. The sources of arrived messages must be told that they arrived (`arrivals`). When nothing is
left, and no failover can undo that, the primary writes into the layout that the partition is given up; then every node
drops it. If a primary fails before, the next one has the same records and continues. Nothing else ends a partition with
moving messages, however long their target cannot be reached.
"""

from __future__ import annotations

import logging

import msgspec

from penstock.backend.send.moves import tell_homeless
from penstock.cluster.layout.deletion import given_up, taken_back
from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.move_target import target_of
from penstock.model.runs import count_of
from penstock.queue.decisions import move as moving
from penstock.queue.partition import Partition
from penstock.queue.state.outgoing_moves import MoveKey
from penstock.replication.primary_secondary.node.moves.cluster_moves import ClusterMoves
from penstock.replication.primary_secondary.node.state import ClusterState

logger = logging.getLogger("penstock.backend")

EXPLAIN_MS = 2_000
"""A deletion that takes longer is explained in the layout, for `penstock cluster status`."""
EXPLAINED = 3
"""So many targets are named, and so many sources."""
EXPLAIN_AGAIN_MS = 10_000
"""The explanation is written again when it is another one, not more often than this."""


class Draining:
    """The changes of such partitions' entries that this node requests."""

    def __init__(self, state: ClusterState, moves: ClusterMoves) -> None:
        self._state = state
        self._moves = moves
        self._explain_ms: dict[int, int] = {}
        """Partition → when its next explanation is due."""
        self._done: set[int] = set()

    def wanted(self, entry: PartitionEntry, now_ms: int) -> PartitionEntry:
        """The next entry of a partition of a deleted queue: given up, or with the reason why it is not."""
        partition_id = entry.partition
        if entry.abandoned and self._state.parts.catalogue.partitions[partition_id].totals.sent:
            logger.error(
                "partition %(partition)d is kept: the entry of queue %(queue)r is missing in the "
                "metadata store, but messages were sent to the queue",
                {"partition": partition_id, "queue": entry.queue},
            )
            return taken_back(entry)
        if partition_id not in self._state.drains:
            return entry
        due_ms = self._explain_ms.setdefault(partition_id, now_ms + EXPLAIN_MS)
        if self._is_done(partition_id, now_ms):
            return given_up(
                entry, f"the queue {entry.queue} is deleted, and none of its messages is moving any more"
            )
        if now_ms < due_ms:
            return entry
        self._explain_ms[partition_id] = now_ms + EXPLAIN_AGAIN_MS
        partition = self._state.parts.catalogue.partitions[partition_id]
        reason = f"the queue {entry.queue} is deleted and waits: {self._explain(partition, now_ms)}"
        if reason != entry.reason:
            logger.warning(
                "partition %(partition)d: %(reason)s", {"partition": partition_id, "reason": reason}
            )
        return msgspec.structs.replace(entry, reason=reason)

    def _is_done(self, partition_id: int, now_ms: int) -> bool:
        partition, led = self._state.parts.catalogue.partitions[partition_id], self._state.led[partition_id]
        is_settled = self._moves.arrivals.settle(partition, now_ms)
        if moving.rescue(partition, now_ms) or self._moves.awaited(partition, now_ms) or not is_settled:
            return False
        if led.primary.everywhere() < partition.index:
            return False
        if partition_id not in self._done:
            self._done.add(partition_id)
            tell_homeless(partition)
        return True

    def _explain(self, partition: Partition, now_ms: int) -> str:
        waits = self._moves.awaited(partition, now_ms)
        told = [self._explain_move(partition, move) for move in waits[:EXPLAINED]]
        if len(waits) > EXPLAINED:
            told.append(f"and messages for {len(waits) - EXPLAINED} other queues")
        told += self._moves.arrivals.explain(partition)[:EXPLAINED]
        return "; ".join(told) or "its replicas have to confirm that nothing is on its way any more"

    def _explain_move(self, partition: Partition, move: MoveKey) -> str:
        why, count = self._moves.why_waits(partition.partition_id, move[0]), count_of(partition.moves[move])
        messages = "1 message is" if count == 1 else f"{count:,} messages are"
        return f"{messages} on the way to {target_of(move[0]).name}" + (f" ({why})" if why else "")

    def deposed(self, partition_id: int) -> None:
        """Another node leads the partition, or it is gone."""
        self._explain_ms.pop(partition_id, None)
        self._done.discard(partition_id)

"""Where messages go that move: the partition that a target names, and the deleted queues that may have taken them in before."""

from __future__ import annotations

from penstock.cluster.layout.entries import PartitionEntry
from penstock.model.move_target import target_of
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.replication.primary_secondary.node.state import ClusterState


class Targets:
    """Looks targets up in the layout."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def find(self, source: int, aim: str) -> PartitionEntry | None:
        """The partition that messages of another one go to; None: there is none now."""
        known, wanted = self._state.layout.get(source), target_of(aim)
        target = self._state.layout.find(wanted.name, known.entry.ordinal if known is not None else 0)
        # Another incarnation: the queue that was meant is deleted, and what has its name now is another one.
        return target if target is not None and wanted.is_meant(target.queue_id) else None

    def stream(self, partition_id: int) -> PeerStream | None:
        """The stream to the primary of a partition."""
        known = self._state.layout.get(partition_id)
        return self._state.streams.get((known.entry.primary or "") if known is not None else "")

    def deleted(self, source: int, aim: str) -> list[PartitionEntry]:
        """Partitions of deleted queues that messages of a partition went to before."""
        wanted, known = target_of(aim), self._state.layout.get(source)
        there = self._state.layout.draining(wanted.name, known.entry.ordinal if known is not None else 0)
        return [one for one in there if wanted.is_meant(one.queue_id) and one.partition != source]

    def can_ask(self, partition_id: int) -> bool:
        """Whether a partition is led here, or by a node that is connected."""
        return self._state.sends_on(partition_id) or self.stream(partition_id) is not None

    def unreachable(self, source: int, aim: str) -> list[int]:
        """Those of the deleted ones that cannot be asked now."""
        return [entry.partition for entry in self.deleted(source, aim) if not self.can_ask(entry.partition)]

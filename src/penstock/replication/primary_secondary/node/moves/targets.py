"""The targets of moves as this node sees them: by the layout, and by the nodes that it can reach."""

from __future__ import annotations

from penstock.cluster.layout.entries import PartitionEntry
from penstock.replication.primary_secondary.node.moves.journey import Journey
from penstock.replication.primary_secondary.node.moves.next_step import (
    NextStep,
    earlier_targets,
    find_target,
    next_step,
)
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.replication.primary_secondary.node.state import ClusterState


class Targets:
    """Looks targets up."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def find(self, source: int, aim: str) -> PartitionEntry | None:
        """The partition that messages of another one go to; None: there is none now."""
        return find_target(self._state.layout, source, aim)

    def next_step(self, journey: Journey) -> NextStep:
        """What the messages of a journey do next."""
        sent_moves = self._state.led[journey.source].sent_moves
        return next_step(
            self._state.layout,
            journey.source,
            journey.aim,
            lambda one: not journey.asked.get(one) and bool(sent_moves.may_be_in(one, journey.runs)),
            self.can_ask,
        )

    def stream(self, partition_id: int) -> PeerStream | None:
        """The stream to the primary of a partition, as it was heard of last."""
        entry = self._state.layout.last(partition_id)
        return self._state.streams.get((entry.primary or "") if entry is not None else "")

    def can_ask(self, partition_id: int) -> bool:
        """Whether a partition is led here, or by a node that is connected."""
        return self._state.sends_on(partition_id) or self.stream(partition_id) is not None

    def closed(self, source: int, aim: str) -> list[int]:
        """Partitions that messages may have been sent to before, and that cannot be asked now."""
        found = earlier_targets(self._state.layout, source, aim)
        return [one for one, why in found if why or not self.can_ask(one)]

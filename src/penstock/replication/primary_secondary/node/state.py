"""State that the parts of a node's replication share."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.backend.node.parts import NodeParts
from penstock.cluster.layout.entries import NodeEntry
from penstock.replication.primary_secondary.core.roles import Role
from penstock.replication.primary_secondary.node.layout_view import LayoutView
from penstock.replication.primary_secondary.node.leader.sender import LedPartition
from penstock.replication.primary_secondary.node.peer_stream import PeerStream


@dataclass(slots=True)
class ClusterState:
    """Owned by the node's thread."""

    parts: NodeParts
    node: str
    """This one's name."""
    layout: LayoutView = field(default_factory=LayoutView)
    nodes: dict[str, NodeEntry] = field(default_factory=dict)
    """Those that live, by the store."""
    streams: dict[str, PeerStream] = field(default_factory=dict)
    led: dict[int, LedPartition] = field(default_factory=dict)
    drains: set[int] = field(default_factory=set)
    """Partitions of deleted queues that this node leads: clients are refused, moves continue."""

    @property
    def now_ms(self) -> int:
        """The current time of the node."""
        return self.parts.now_ms

    def role_of_led(self, partition_id: int) -> Role:
        """The role of this node in a partition that it leads."""
        if self.parts.catalogue.serves is not None and partition_id in self.parts.catalogue.serves:
            return Role.SERVING
        return Role.DRAINING if partition_id in self.drains else Role.LEADING

    def serves(self, partition_id: int) -> bool:
        """Whether this node leads the partition and takes requests for it."""
        serves = self.parts.catalogue.serves
        return (
            serves is not None and partition_id in serves and partition_id not in self.parts.catalogue.damage
        )

    def sends_on(self, partition_id: int) -> bool:
        """Whether this node leads the partition and messages of it may leave for other queues."""
        if self.serves(partition_id):
            return True
        return partition_id in self.drains and partition_id not in self.parts.catalogue.damage

    def drain(self, partition_id: int) -> None:
        """The queue is deleted: moves to other queues continue as long as this node may write."""
        self.drains.add(partition_id)
        self.parts.movers.add(partition_id)

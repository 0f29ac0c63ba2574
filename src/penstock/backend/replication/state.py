"""What the pieces of a node's part in a cluster share."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from penstock.backend.parts import NodeParts
from penstock.backend.replication.layout_view import LayoutView
from penstock.backend.replication.leading import LedPartition
from penstock.backend.replication.peer_stream import PeerStream
from penstock.cluster.layout import NodeEntry


@dataclass(slots=True)
class ClusterState:
    """Owned by the node's thread."""

    parts: NodeParts
    node: str
    """This one's name."""
    now_ms: int
    layout: LayoutView = field(default_factory=LayoutView)
    nodes: dict[str, NodeEntry] = field(default_factory=dict)
    """Those that live, by the store."""
    streams: dict[str, PeerStream] = field(default_factory=dict)
    led: dict[int, LedPartition] = field(default_factory=dict)
    drains: set[int] = field(default_factory=set)
    """Partitions of deleted queues that this node leads: clients are turned away, what is on its way goes on."""
    connections: Collection[int] = ()
    """Clients that are connected."""

    def serves(self, queue_id: int) -> bool:
        """Whether this node leads the partition and takes requests for it."""
        serves = self.parts.catalogue.serves
        return serves is not None and queue_id in serves and queue_id not in self.parts.catalogue.damage

    def sends_on(self, queue_id: int) -> bool:
        """Whether this node leads the partition and messages of it may leave for other queues."""
        if self.serves(queue_id):
            return True
        return queue_id in self.drains and queue_id not in self.parts.catalogue.damage

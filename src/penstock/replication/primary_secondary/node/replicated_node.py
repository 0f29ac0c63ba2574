"""A node of a cluster: the node, with the model of a primary and secondaries."""

from __future__ import annotations

from penstock.backend.node.environment import Environment
from penstock.backend.node.node import Node
from penstock.backend.node.parts import NodeParts
from penstock.model import limits
from penstock.replication.primary_secondary.node.replication import Replication
from penstock.storage.store import Store


class ReplicatedNode(Node):
    """One node of a cluster over one store."""

    replication: Replication
    """The node's model: the cluster around it talks to this."""

    def __init__(
        self,
        store: Store,
        environment: Environment,
        now_ms: int,
        *,
        name: str,
        secret: bytes,
        started_ms: int,
        max_unflushed_bytes: int = 64 * limits.MEBIBYTE,
    ) -> None:
        def make_model(parts: NodeParts) -> Replication:
            self.replication = Replication(parts, name, started_ms)
            return self.replication

        super().__init__(
            store, environment, now_ms, max_unflushed_bytes, make_model=make_model, cluster_secret=secret
        )

"""Which nodes are alive, which are missing and for how long, and which are to be drained.

A node is alive while its entry exists; the entry exists as long as the node's lease. So the duration of the lease is the
waiting time before another node may lead. Before its replicas are copied elsewhere, the cluster waits much longer. This
time is counted here, from when this process first missed the node. A new manager counts from its election, which only
waits longer.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.cluster.layout.entries import DrainEntry, NodeEntry


class Membership:
    """The nodes of a cluster, as one process has seen them join and leave."""

    def __init__(self) -> None:
        self._living: dict[str, NodeEntry] = {}
        self._living_since_ms: dict[str, int] = {}
        self._gone_since_ms: dict[str, int] = {}
        self._drains: dict[str, DrainEntry] = {}
        self.lives = 0
        """Rises when a node joins, leaves or restarts, not when it reports its load."""

    @property
    def living(self) -> Mapping[str, NodeEntry]:
        """By name."""
        return self._living

    @property
    def drains(self) -> Mapping[str, DrainEntry]:
        """By the name of the node that is to be emptied."""
        return self._drains

    # --- what is seen ---------------------------------------------------------------------------------------

    def came(self, node: NodeEntry, now_ms: int) -> None:
        """Its entry exists, or has changed. A restarted node was missing in between."""
        before = self._living.get(node.node)
        if before is None or before.started_ms != node.started_ms:
            self._living_since_ms[node.node] = now_ms
            self.lives += 1
        self._living[node.node] = node
        self._gone_since_ms.pop(node.node, None)

    def went(self, node: str, now_ms: int) -> None:
        """Its entry is gone."""
        if self._living.pop(node, None) is not None:
            del self._living_since_ms[node]
            self.lives += 1
        self._gone_since_ms.setdefault(node, now_ms)

    def drain(self, entry: DrainEntry) -> None:
        """An operator wants it to hold nothing."""
        self._drains[entry.node] = entry

    def stop_draining(self, node: str) -> None:
        """It may hold partitions again."""
        self._drains.pop(node, None)

    # --- what follows from it -------------------------------------------------------------------------------

    def living_for_ms(self, node: str, now_ms: int) -> int:
        """For how long it has been seen alive without a gap; 0 if it is gone."""
        return now_ms - self._living_since_ms.get(node, now_ms)

    def gone_for_ms(self, node: str, now_ms: int) -> int:
        """For how long it has been missing; 0 if it is alive. A node that was never seen is missing since it was first named."""
        if node in self._living:
            return 0
        return now_ms - self._gone_since_ms.setdefault(node, now_ms)

    def removed(self, node: str) -> bool:
        """Whether an operator said that it will not come back, and it is gone."""
        drain = self._drains.get(node)
        return drain is not None and drain.remove and node not in self._living

    def can_hold(self, node: str, now_ms: int, grace_ms: int) -> bool:
        """Whether a replica on it counts: it is not to be emptied, and lives or may still come back."""
        return node not in self._drains and self.gone_for_ms(node, now_ms) < grace_ms

    def places(self) -> list[NodeEntry]:
        """Nodes that new replicas may be given to."""
        return [
            node
            for name, node in sorted(self._living.items())
            if name not in self._drains and not node.leaving
        ]

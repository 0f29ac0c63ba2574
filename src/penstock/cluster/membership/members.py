"""Who lives, who is gone and for how long, and who is to be emptied.

A node lives while its entry stands in the store; the entry goes with the node's lease, so the lease is the patience
before somebody else may lead. Much more patience is due before its replicas are copied elsewhere: that time is counted
here, from when this watcher first missed the node. A manager that has just begun counts anew, which only waits longer.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.cluster.layout.entries import DrainEntry, NodeEntry


class Membership:
    """The nodes of a cluster, as one watcher has seen them come and go."""

    def __init__(self) -> None:
        self._living: dict[str, NodeEntry] = {}
        self._living_since_ms: dict[str, int] = {}
        self._gone_since_ms: dict[str, int] = {}
        self._drains: dict[str, DrainEntry] = {}
        self.lives = 0
        """Rises when a node comes, goes or starts anew, not when one says how busy it is."""

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
        """Its entry is there, or has changed. One that started anew was gone in between."""
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
        """For how long it has been missed; 0 if it lives. Who is named somewhere and was never seen is missed from now on."""
        if node in self._living:
            return 0
        return now_ms - self._gone_since_ms.setdefault(node, now_ms)

    def removed(self, node: str) -> bool:
        """Whether an operator said that it will not come back, and it has gone."""
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

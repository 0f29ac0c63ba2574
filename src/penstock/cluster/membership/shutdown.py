"""How a node leaves: it announces this, hands over what it leads, and stops within a bounded time.

`cluster/manager/departure.py` chooses the successors. What is not handed over in time is left to an election.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from penstock.cluster.layout.entries import NodeEntry, PartitionEntry
from penstock.cluster.manager.departure import departure
from penstock.cluster.membership.store_requests import Outcome, Unknown

SHUTDOWN_MS = 5_000
GATHER_MS = 20
"""Changes that arrive within this time are handled together."""
LOOK_MS = 250
WRITES_AT_ONCE = 64


class Shutdown:
    """One node that is about to stop. It ends when `is_over`."""

    def __init__(self, node: str, now_ms: int, patience_ms: int = SHUTDOWN_MS) -> None:
        self.is_over = False
        self.failure = ""
        """Why not everything was handed over; empty where everything was."""
        self._node = node
        self._patience_ms = patience_ms
        self._ends_ms = now_ms + patience_ms
        self._look_ms: int | None = None
        """When to look next; None: the store does not know yet that the node leaves."""
        self._under_way: set[int] = set()

    def leaving_said(self, now_ms: int, why_not: str = "") -> None:
        """The store knows that the node leaves, so that no node hands over to it; or the reason why it does not."""
        if why_not:
            self._end(f"nothing can be handed over: {why_not}")
        else:
            self._look_ms = now_ms

    def changed(self, now_ms: int) -> None:
        """The layout has changed."""
        if self._look_ms is not None:
            self._look_ms = min(self._look_ms, now_ms + GATHER_MS)

    def tick(
        self,
        now_ms: int,
        partitions: Iterable[tuple[PartitionEntry, int]],
        living: Mapping[str, NodeEntry],
        drained: Collection[str],
    ) -> list[tuple[PartitionEntry, int]]:
        """Time has passed: entries to write, each on condition that its version is still this one."""
        if self.is_over:
            return []
        if now_ms >= self._ends_ms:
            self._end(f"not everything could be handed over within {self._patience_ms / 1000:g} s")
            return []
        if self._look_ms is None or now_ms < self._look_ms:
            return []
        self._look_ms = now_ms + LOOK_MS
        wishes, waits = departure(self._node, partitions, living, drained)
        if not waits:
            self._end("")
            return []
        room = WRITES_AT_ONCE - len(self._under_way)
        due = [wish for wish in wishes if wish[0].partition not in self._under_way][:room]
        self._under_way.update(entry.partition for entry, _ in due)
        return due

    def written(self, partition: int, outcome: Outcome, now_ms: int) -> None:
        """The outcome of a request. After a conflict the layout shows the present entry."""
        self._under_way.discard(partition)
        if isinstance(outcome, Unknown):
            self._end(f"nothing more can be handed over: {outcome.why}")
        else:
            self.changed(now_ms)

    def next_ms(self) -> int | None:
        """When to tick at the latest."""
        if self.is_over:
            return None
        return self._ends_ms if self._look_ms is None else min(self._ends_ms, self._look_ms)

    def _end(self, failure: str) -> None:
        if not self.is_over:
            self.is_over, self.failure = True, failure

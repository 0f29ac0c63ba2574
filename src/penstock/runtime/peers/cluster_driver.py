"""Drives a node of a cluster: what `Driver` does, and what other nodes say, beside what the layout says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.backend.replication.layout_view import Proposal
from penstock.backend.replication.lifecycle_sending import LifecycleReport
from penstock.backend.replication.replicated_node import ReplicatedNode
from penstock.cluster.layout import NodeEntry, PartitionEntry, Position
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.runtime.clock import WallClock
from penstock.runtime.driver import Driver
from penstock.wire.frames import Frame


class ClusterDriver(Driver):
    """Runs one node of a cluster on one event loop."""

    def __init__(
        self,
        node: ReplicatedNode,
        clock: WallClock,
        loop: asyncio.AbstractEventLoop,
        *,
        write: Callable[[int, list[Buffer]], None],
        congestion_changed: Callable[[bool], None],
        failed: Callable[[], None],
    ) -> None:
        self.write_peer: Callable[[str, list[Buffer]], None] = lambda name, buffers: None
        self.propose: Callable[[Proposal], None] = lambda proposal: None
        self.report: Callable[[LifecycleReport], None] = lambda report: None
        """Sends what became of messages to its log."""
        self._replicated = node
        super().__init__(node, clock, loop, write=write, congestion_changed=congestion_changed, failed=failed)

    def _ship(self) -> None:
        for name, buffers in self._replicated.take_peer_output():
            self.write_peer(name, buffers)
        for proposal in self._replicated.take_proposals(self._clock.now_ms()):
            self.propose(proposal)
        for report in self._replicated.take_lifecycle_reports(self._clock.now_ms()):
            self.report(report)

    def lifecycle_reported(self, report: LifecycleReport, *, stored: bool) -> None:
        """What became of such a report."""
        now_ms = self._clock.now_ms()
        self._call(lambda: self._replicated.lifecycle_reported(report, now_ms, stored=stored))

    # -- other nodes -----------------------------------------------------------------------------------------

    def peer_connected(self, node: str) -> None:
        """There is a stream to another node."""
        self._call(lambda: self._replicated.peer_connected(node, self._clock.now_ms()))

    def peer_disconnected(self, node: str) -> None:
        """It is gone."""
        self._call(lambda: self._replicated.peer_disconnected(node, self._clock.now_ms()))

    def peer_frames(self, node: str, frames: Sequence[Frame]) -> str | None:
        """Whole frames of another node arrived; why its stream is to be cut, if it is."""
        if self.failure is not None or self._closing:
            return None
        now_ms = self._clock.now_ms()
        try:
            for frame in frames:
                self._replicated.peer_frame(node, frame, now_ms)
                self._requests_in_turn += 1
        except PenstockError as error:
            return error.message
        except Exception as error:
            self._fail(error)
            return None
        self.wake()
        return None

    # -- the layout ------------------------------------------------------------------------------------------

    def apply_layout(self, changes: Iterable[tuple[PartitionEntry, int]]) -> None:
        """Entries of partitions as the store has them."""
        self._call(lambda: self._replicated.apply_layout(changes, self._clock.now_ms()))

    def partition_gone(self, partition: int, *, unreadable: bool = False) -> None:
        """The entry of a partition is no longer in the store, or only newer versions can read it."""
        now_ms = self._clock.now_ms()
        self._call(lambda: self._replicated.partition_gone(partition, now_ms, unreadable=unreadable))

    def queue_named(self, name: str, queue_id: int | None) -> None:
        """Which queue has a name."""
        self._call(lambda: self._replicated.queue_named(name, queue_id, self._clock.now_ms()))

    def apply_nodes(self, nodes: Mapping[str, NodeEntry]) -> None:
        """The nodes that live."""
        self._call(lambda: self._replicated.apply_nodes(nodes))

    def proposal_failed(self, partition: int) -> None:
        """The store did not say what became of a proposal."""
        self._call(lambda: self._replicated.proposal_failed(partition, self._clock.now_ms()))

    def lease_renewed(self, until_ms: int) -> None:
        """Nobody replaces this node before."""
        self._call(lambda: self._replicated.lease_renewed(until_ms, self._clock.now_ms()))

    def new_life(self, started_ms: int) -> None:
        """The lease was lost and made anew."""
        self._call(lambda: self._replicated.new_life(started_ms, self._clock.now_ms()))

    def positions(self, asked: Iterable[int]) -> dict[int, Position]:
        """How far the logs of these partitions go, and of those that this node should lead and cannot."""
        return self._replicated.positions(asked) if self.failure is None else {}

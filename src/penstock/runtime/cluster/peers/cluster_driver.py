"""Drives a node of a cluster: in addition to `Driver`, messages of other nodes and changes of the layout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from penstock.backend.node.node import Node
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.replication.cluster_interface import ClusterModel, LifecycleReport, Proposal
from penstock.runtime.clocks.clock import WallClock
from penstock.runtime.engine.driver import Driver
from penstock.wire.frames import Frame


class ClusterDriver(Driver):
    """Runs one node of a cluster on one event loop."""

    def __init__(
        self,
        node: Node,
        replication: ClusterModel,
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
        """Sends lifecycle rows to their log."""
        self.replication = replication
        super().__init__(node, clock, loop, write=write, congestion_changed=congestion_changed, failed=failed)

    def ship(self) -> None:
        """See `Hands`: sends appended records to the others, and the node's requests to the layout."""
        for name, buffers in self.replication.take_peer_output():
            self.write_peer(name, buffers)
        for proposal in self.replication.take_proposals(self._clock.now_ms()):
            self.propose(proposal)
        for report in self.replication.take_lifecycle_reports(self._clock.now_ms()):
            self.report(report)

    def tell(self, say: Callable[[int], None]) -> None:
        """Calls the node's replication with input from other processes or the store, and the time."""
        self._call(lambda: say(self._clock.now_ms()))

    def peer_connected(self, node: str) -> None:
        """There is a stream to another node."""
        self.tell(partial(self.replication.peer_connected, node))

    def peer_disconnected(self, node: str) -> None:
        """It is gone."""
        self.tell(partial(self.replication.peer_disconnected, node))

    def peer_frames(self, node: str, frames: Sequence[Frame]) -> str | None:
        """Whole frames of another node arrived; why its stream is to be cut, if it is."""
        if self.failure is not None or self._closing:
            return None
        now_ms = self._clock.now_ms()
        try:
            for frame in frames:
                self.replication.peer_frame(node, frame, now_ms)
                self.turns.requests += 1
        except PenstockError as error:
            return error.message
        except Exception as error:
            self._fail(error)
            return None
        self.wake()
        return None

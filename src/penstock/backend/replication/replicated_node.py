"""A node of a cluster: the node as it is, over partitions of which it leads some and follows others.

Whoever drives it does what it does for a node alone, and beside that: tells of the layout (`apply_layout`, `apply_nodes`),
of other nodes (`peer_connected`, `peer_frame`, `peer_disconnected`) and of the lease; writes `take_peer_output` to them
after every turn, before it waits for a flush; and carries out `take_proposals`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.backend.environment import Environment
from penstock.backend.node import Node
from penstock.backend.opening import open_node
from penstock.backend.replication.fitness import positions
from penstock.backend.replication.layout_view import Proposal
from penstock.backend.replication.lifecycle_sending import LifecycleReport
from penstock.backend.replication.replication import Replication
from penstock.cluster.layout import NodeEntry, PartitionEntry, Position
from penstock.model import limits
from penstock.model.batch import Buffer
from penstock.storage.job import Job
from penstock.storage.store import Store
from penstock.wire.frames import Frame


class ReplicatedNode(Node):
    """One node of a cluster over one store."""

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
        opened = open_node(store, now_ms, secret)
        self.replication = Replication(opened[0], name, started_ms, now_ms)
        super().__init__(store, environment, now_ms, max_unflushed_bytes, opened)
        self.replication.state.connections = self._connections
        cutter, installer = self.replication.follower.cutter, self.replication.follower.installer
        cutter.checkpoint_is_under_way = lambda: self._checkpointer.is_under_way
        installer.checkpoint_is_under_way = lambda: self._checkpointer.is_under_way
        self._checkpointer.may_begin = lambda: not cutter.is_cutting and not installer.is_writing

    def has_more(self) -> bool:
        """Whether another turn is wanted though nothing arrives."""
        return super().has_more() or self.replication.follower.installer.is_building

    # -- the layout ------------------------------------------------------------------------------------------

    def apply_layout(self, changes: Iterable[tuple[PartitionEntry, int]], now_ms: int) -> None:
        """Entries of partitions as the store has them now, with their versions; old news does no harm."""
        self._now_ms = now_ms
        self.replication.apply_layout(changes, now_ms)

    def partition_gone(self, partition: int, now_ms: int, *, unreadable: bool = False) -> None:
        """The entry of a partition is no longer in the store, or only newer versions can read it."""
        self._now_ms = self.replication.state.now_ms = now_ms
        self.replication.partition_gone(partition, unreadable=unreadable)

    def queue_named(self, name: str, queue_id: int | None, now_ms: int) -> None:
        """The queue that clients find under a name is this one, by the store; None: there is none."""
        self._now_ms = self.replication.state.now_ms = now_ms
        self.replication.queue_named(name, queue_id)

    def apply_nodes(self, nodes: Mapping[str, NodeEntry]) -> None:
        """The nodes that live, by the store."""
        self.replication.apply_nodes(nodes)

    def take_proposals(self, now_ms: int) -> list[Proposal]:
        """Changes of the layout that this node wants, each on condition of its version.

        The outcome comes as a new entry through `apply_layout`; where it is not known, `proposal_failed`: the same is
        offered again until the entry has another version.
        """
        return self.replication.proposer.take(now_ms)

    def proposal_failed(self, partition: int, now_ms: int) -> None:
        """The store did not answer."""
        self.replication.proposer.failed(partition, now_ms)

    def positions(self, asked: Iterable[int]) -> dict[int, Position]:
        """How far the logs of these partitions go, and of those that this node should lead and cannot."""
        return positions(self.replication.state, self.replication.follower, asked)

    def lease_renewed(self, until_ms: int, now_ms: int) -> None:
        """Up to then, by this node's clock and counted from before the renewal was asked for, nobody replaces it."""
        self.replication.leadership.lease_until_ms = until_ms
        self.replication.leadership.pass_time(now_ms)

    def new_life(self, started_ms: int, now_ms: int) -> None:
        """The lease was lost and made anew, under another time."""
        self.replication.new_life(started_ms, now_ms)

    # -- other nodes -----------------------------------------------------------------------------------------

    def peer_connected(self, node: str, now_ms: int) -> None:
        """There is a stream to another node; one that was there before is gone."""
        self._now_ms = now_ms
        self.replication.peer_connected(node, now_ms)

    def peer_disconnected(self, node: str, now_ms: int) -> None:
        """The stream to another node is gone."""
        self._now_ms = now_ms
        self.replication.peer_disconnected(node, now_ms)

    def peer_frame(self, node: str, frame: Frame, now_ms: int) -> None:
        """Another node said something; raises `PenstockError` where it is not the protocol."""
        self._now_ms = self.replication.state.now_ms = now_ms
        self.replication.dispatch.frame(node, frame)

    def take_peer_output(self) -> list[tuple[str, list[Buffer]]]:
        """What is to be written to other nodes now."""
        return self.replication.take_output()

    # -- what became of messages -----------------------------------------------------------------------------

    def take_lifecycle_reports(self, now_ms: int) -> list[LifecycleReport]:
        """What is to be sent to the log of lifecycles; of each `lifecycle_reported` is to be told the outcome."""
        return self.replication.lifecycle.take(now_ms)

    def lifecycle_reported(self, report: LifecycleReport, now_ms: int, *, stored: bool) -> None:
        """The log has the rows of a report, or may not have them."""
        self._now_ms = self.replication.state.now_ms = now_ms
        if stored:
            self.replication.lifecycle.stored(report, now_ms)
        else:
            self.replication.lifecycle.failed(report, now_ms)

    # -- the node --------------------------------------------------------------------------------------------

    def handle(self, connection: int, frame: Frame, now_ms: int) -> None:
        self.replication.leadership.pass_time(now_ms)
        super().handle(connection, frame, now_ms)

    def tick(self, now_ms: int) -> None:
        self.replication.leadership.tick(now_ms)
        self.replication.dispatch.moves.tick(now_ms)
        super().tick(now_ms)

    def next_wakeup_ms(self) -> int | None:
        times = (super().next_wakeup_ms(), self.replication.next_wakeup_ms())
        return min((time for time in times if time is not None), default=None)

    def _end_turn(self) -> None:
        self.replication.prepare(self._now_ms)
        self.replication.leadership.ship()

    def _commit(self) -> None:
        self.replication.leadership.flushed(self._now_ms)
        super()._commit()

    def _report(self) -> None:
        """Reports are sent through the cluster (`take_lifecycle_reports`)."""

    def _move_some(self, queue_id: int) -> None:
        self.replication.dispatch.moves.move_some(queue_id, self._now_ms)

    def take_jobs(self) -> list[Job]:
        return [*super().take_jobs(), *self.replication.take_jobs()]

    def job_done(self, job: Job, now_ms: int) -> None:
        super().job_done(job, now_ms)
        self.replication.job_done(job, now_ms)
